package claims

import (
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docClaim store.DocKind = 3 // key: instance and request key of a claim
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerClaims store.TimerKind = 5 // Texts: keys of recorded claims
)

// claimRef names the record of a claim. Grants have a space of their own: the same key there is no repeat.
func claimRef(r *txn.ClaimRequest) store.DocRef {
	key := r.InstanceID + "\x01" + r.RequestKey
	if r.GrantTTL != 0 {
		key += grantMark
	}
	return store.DocRef{Kind: docClaim, Key: key}
}

// grantMark ends the key of the record of a grant. No request key has such a byte.
const grantMark = "\x01"
