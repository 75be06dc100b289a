package admin

import (
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docAPIKey      store.DocKind = 8  // key: key id
	docNamespace   store.DocKind = 9  // key: name
	DocAuditChain  store.DocKind = 10 // key: namespace, * for what belongs to none; the head of its audit chain
	docAuditRow    store.DocKind = 11 // key: namespace and number of the row
	docSigningKeys store.DocKind = 14 // one record: the signing keys of the installation
	docAuditRoll   store.DocKind = 43 // key: number of a list of audit chains, two digits; all are there as soon as there is an audit key
	docDataKey     store.DocKind = 49 // one record: the key that seals the secrets of other rooms
)

// The kinds of rules: they are part of the dictionary. Values are stored: never renumber them.
const (
	docRollbacks store.DocKind = store.FirstRule + 3 // one record: commits that the database came back without
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerAudit       store.TimerKind = 9  // Texts: audit chains whose oldest rows may go
	timerSigningKeys store.TimerKind = 11 // Texts: kids whose time is over
)
