package engine

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A claim whose connection broke unnoticed may wait at one server while its repeat is answered at another. If that has something, the record
// of the claim tells the first one of it. If it has nothing, the caller goes on under another key, and whatever the first call got from then
// on would be leased to nobody until it lapses (L117). So the empty answer of a call that says it is a repeat is put on record too: whoever
// would serve the first one, in a pick or by handing over what it is about to file, writes the same record and finds it there. A call that is
// sent once costs nothing of this.

// closedFor is how long the record of an empty answer is kept: longer than any call that began before it waits.
const closedFor = 2 * claimRecordLook

// closedClaim is the body of the record of a claim that was answered with nothing.
type closedClaim struct {
	At core.Time `json:"closed_at"`
}

// closes reports whether the call must not be answered with nothing before that is on record. A process that has the store for itself
// answers the earlier calls itself (finishRepeats).
func (e *Engine) closes(call *claim) bool {
	return call.req.Repeat && call.req.RequestKey != "" && e.store.Info().Shared
}

// closeClaim records that the call is answered with nothing. If another server serves the same request meanwhile, one of the two finds the
// other's record when it commits, and looks again.
func (k *pick) closeClaim(u *unit, call *claim) {
	ref := claimRef(&call.req)
	body, _ := json.Marshal(closedClaim{At: u.now})
	u.putOrAdd(store.Doc{DocRef: ref, Body: body})
	timer := u.timerAt(timerClaims, roundUp(u.now.Add(closedFor), core.Second))
	timer.Texts = append(timer.Texts, ref.Key)
	setIn(&k.over, call, true)
}

// isOver reports whether a repeat of the call, which began no sooner than this one, was answered with nothing. A call that begins later is
// a new one.
func (k *pick) isOver(u *unit, call *claim) bool {
	if call.req.RequestKey == "" {
		return false
	}
	doc := u.doc(claimRef(&call.req))
	if doc == nil {
		return false
	}
	var closed closedClaim
	age := u.e.cfg.Clock.Now().Sub(call.began).Milliseconds()
	if json.Unmarshal(doc.Body, &closed) != nil || closed.At == 0 || closed.At < u.now.Add(-age) {
		return false
	}
	setIn(&k.over, call, true)
	return true
}
