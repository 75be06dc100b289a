package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
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
	class, err := e.dict.classOf(ctx, a.refs.class(&a.s))
	a.class = class
	return a, err
}

func (a *adoption) name() string { return "adopt" }

// want locks the id, so that of several processes one files the submission.
func (a *adoption) want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, a.id.UUID)
	if a.bad == nil {
		a.keepClass()
	}
}

func (a *adoption) more(*unit, *store.Want) {}

func (a *adoption) decide(u *unit) error {
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
func (a *adoption) file(u *unit) {
	u.ch.DropInbox = append(u.ch.DropInbox, a.id.UUID)
	u.ch.Dictionary = u.dict.version
	fx := u.effects(a.caller)
	u.create(core.NewExecution(fx, &a.s, a.id, a.class), fx)
	if a.s.IdempotencyKey != "" { // the window of the key began no later than now (L84)
		timer := u.timerAt(timerKeys, roundUp(u.now.Add(a.s.Policy.DedupWindowMS), core.Minute))
		timer.Texts = append(timer.Texts, encodeKey(a.key()))
	}
}

// quarantine drops a submission that was accepted and cannot be read. Its caller has the answer already and its transaction is committed, so an
// event and a log line report it. It is not tried again.
func (a *adoption) quarantine(u *unit) {
	u.ch.DropInbox = append(u.ch.DropInbox, a.id.UUID)
	u.ch.Events = append(u.ch.Events, quarantined(a.id.UUID, core.CodeCorruption, 1, u.now, 0))
	u.after = append(u.after, func() {
		a.e.notes.Error("a submission of a committed transaction cannot be read", "execution_id", a.id, "error", a.bad)
	})
}
