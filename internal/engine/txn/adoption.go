package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// adoption files a submission from the inbox. The key was written by the user's own transaction.
type adoption struct {
	submit
	bad error // the row cannot be read
}

func (e *Engine) newAdoption(ctx context.Context, row store.InboxRow) (*adoption, error) {
	a := &adoption{}
	a.e, a.id = e, row.ID
	if a.bad = a.readBody(row.Body); a.bad != nil {
		return a, nil
	}
	class, err := e.Dict.classOf(ctx, a.refs.class(&a.s))
	a.class = class
	return a, err
}

func (a *adoption) Name() string { return "adopt" }

// Want locks the id, so that of several processes one files the submission.
func (a *adoption) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, a.id.UUID)
	if a.bad == nil {
		a.keepClass()
	}
}

func (a *adoption) More(*Tx, *store.Want) {}

func (a *adoption) Decide(u *Tx) error {
	switch {
	case !u.unfiled[a.id.UUID]: // another process has filed it
	case a.bad != nil:
		a.quarantine(u)
	case !a.lostClass(u):
		a.file(u)
	}
	return nil
}

// file creates the execution.
func (a *adoption) file(u *Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.id.UUID)
	u.Changes.Dictionary = u.dict.version
	fx := u.effects(a.caller)
	u.create(core.NewExecution(fx, &a.s, a.id, a.class), fx)
	if a.s.IdempotencyKey != "" { // the window of the key began no later than now (L84)
		timer := u.TimerAt(timerKeys, RoundUp(u.Now.Add(a.s.Policy.DedupWindowMS), base.Minute))
		timer.Texts = append(timer.Texts, encodeKey(a.key()))
	}
}

// quarantine drops a submission that was accepted and cannot be read. Its caller has the answer already and its transaction is committed, so an
// event and a log line report it. It is not tried again.
func (a *adoption) quarantine(u *Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.id.UUID)
	u.Changes.Events = append(u.Changes.Events, quarantined(a.id.UUID, base.CodeCorruption, 1, u.Now, 0))
	u.After = append(u.After, func() {
		a.e.notes.Error("a submission of a committed transaction cannot be read", "execution_id", a.id, "error", a.bad)
	})
}
