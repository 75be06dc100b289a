package work

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ingestion files a submission from the inbox. The key was written by the user's own transaction.
type ingestion struct {
	Submit
	bad error // the row cannot be read
}

func (e *Work) newIngestion(ctx context.Context, row store.InboxRow) (*ingestion, error) {
	a := &ingestion{}
	a.e, a.ID = e, row.ID
	if a.bad = a.readBody(row.Body); a.bad != nil {
		return a, nil
	}
	class, err := e.Dict.ClassOf(ctx, a.Refs.Class(&a.S))
	a.Class = class
	return a, err
}

func (a *ingestion) Name() string { return "adopt" }

// Want locks the id, so that of several processes one files the submission.
func (a *ingestion) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, a.ID.UUID)
	if a.bad == nil {
		a.keepClass()
	}
}

func (a *ingestion) More(*txn.Tx, *store.Want) {}

func (a *ingestion) Decide(u *txn.Tx) error {
	switch {
	case !u.NotIngested[a.ID.UUID]: // another process has filed it
	case a.bad != nil:
		a.quarantine(u)
	case !a.LostClass(u):
		a.file(u)
	}
	return nil
}

// file creates the execution.
func (a *ingestion) file(u *txn.Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.ID.UUID)
	u.Changes.Dictionary = u.Dict.Version
	fx := u.Effects(a.caller)
	a.S.LaneRetry = retryOfLane(u.Dict, a.S.Lane)
	u.Create(core.NewExecution(fx, &a.S, a.ID, a.Class), fx)
	if a.S.IdempotencyKey != "" { // the window of the key began no later than now (L84)
		timer := u.TimerAt(txn.TimerKeys, txn.RoundUp(u.Now.Add(a.S.Policy.DedupWindowMS), base.Minute))
		timer.Texts = append(timer.Texts, txn.EncodeKey(a.key()))
	}
}

// quarantine drops a submission that was accepted and cannot be read. Its caller has the answer already and its transaction is committed, so an
// event and a log line report it. It is not tried again.
func (a *ingestion) quarantine(u *txn.Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.ID.UUID)
	u.Changes.Events = append(u.Changes.Events, txn.Quarantined(a.ID.UUID, base.CodeCorruption, 1, u.Now, 0))
	u.After = append(u.After, func() {
		a.e.QuietLog.Error("a submission of a committed transaction cannot be read", "execution_id", a.ID, "error", a.bad)
	})
}
