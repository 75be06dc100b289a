package waits

import (
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	DocWait          store.DocKind = 15 // owner: execution; every record of its waits, by waitRef
	docWaitData      store.DocKind = 16 // owner: execution; bytes of a signal or a continuation
	DocWaitpointAt   store.DocKind = 17 // key: waitpoint id; which execution has it
	DocWaitpointOpen store.DocKind = 18 // key: waitpoint id; there while it is open
	DocLinkAt        store.DocKind = 19 // key: link id; which execution has it
	DocSuspended     store.DocKind = 20 // key: namespace, moment and execution; there while that is suspended
)
