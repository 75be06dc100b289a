package claims

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A claim whose connection broke unnoticed may wait at one server while its repeat is answered at another. If the repeat gets work, the record of
// the claim shows the first server what it got. If the repeat gets nothing, the client continues under another key, and work that the first call
// gets after that would be leased without anyone working on it until it lapses (L117). Therefore the empty answer of a call that says it is a
// repeat is recorded too. A transaction that serves the first call, a pick or a hand-over, writes the same record and finds it there. A call that
// is sent once has no such cost.

// closedFor is how long the record of an empty answer is kept: longer than any earlier call can wait.
const closedFor = 2 * txn.ClaimRecordLook

// closedClaim is the body of the record of a claim that was answered with nothing.
type closedClaim struct {
	At base.Time `json:"closed_at"`
}

// closes reports whether the call must not be answered with nothing before that is recorded. A process with a store of its own answers the earlier
// calls itself (finishRepeats).
func (e *Claims) closes(call *claim) bool {
	return call.req.Repeat && call.req.RequestKey != "" && e.Store.Info().Shared
}

// closeClaim records that the call is answered with nothing. If another server serves the same request meanwhile, one of the two finds the record
// of the other when it commits, and looks again.
func (k *pick) closeClaim(u *txn.Tx, call *claim) {
	ref := claimRef(&call.req)
	body, _ := json.Marshal(closedClaim{At: u.Now})
	u.PutOrAdd(store.Doc{DocRef: ref, Body: body})
	timer := u.TimerAt(timerClaims, txn.RoundUp(u.Now.Add(closedFor), base.Second))
	timer.Texts = append(timer.Texts, ref.Key)
	txn.SetIn(&k.over, call, true)
}

// isOver reports whether a repeat of the call, which began no earlier than this one, was answered with nothing. A call that begins later is a new
// one.
func (k *pick) isOver(u *txn.Tx, call *claim) bool {
	if call.req.RequestKey == "" {
		return false
	}
	doc := u.Doc(claimRef(&call.req))
	if doc == nil {
		return false
	}
	var closed closedClaim
	age := u.Engine.Cfg.Clock.Now().Sub(call.began).Milliseconds()
	if json.Unmarshal(doc.Body, &closed) != nil || closed.At == 0 || closed.At < u.Now.Add(-age) {
		return false
	}
	txn.SetIn(&k.over, call, true)
	return true
}
