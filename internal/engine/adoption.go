package engine

import (
	"bytes"
	"context"
	"encoding/json"

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
	class, err := e.dict.classOf(ctx, a.s.Class())
	a.class = class
	return a, err
}

func (a *adoption) name() string { return "adopt" }

func (a *adoption) want(w *store.Want, careful bool) {
	if a.bad != nil {
		return
	}
	a.keepClass()
	if !careful {
		return
	}
	w.Inputs = true // the fingerprint of an execution that has this id is recomputed
	w.Executions = append(w.Executions, a.id.UUID)
	if a.s.IdempotencyKey != "" {
		w.Keys = append(w.Keys, a.key())
	}
}

func (a *adoption) more(*unit, *store.Want) {}

func (a *adoption) decide(u *unit) error {
	u.ch.DropInbox = append(u.ch.DropInbox, a.id.UUID)
	switch ent := u.entries[a.id.UUID]; {
	case a.bad != nil:
		a.refuse(u, core.CodeCorruption)
	case ent != nil && a.sameAs(ent.x): // the same work was submitted while the transaction was open (L85)
		a.armKey(u)
	case ent != nil:
		a.freeKey(u)
		a.refuse(u, core.CodeIDConflict)
	case !a.lostClass(u):
		a.file(u)
	}
	return nil
}

// file creates the execution.
func (a *adoption) file(u *unit) {
	u.ch.Dictionary = u.dict.version
	fx := u.effects(a.caller)
	u.create(core.NewExecution(fx, &a.s, a.id, a.class), fx)
	a.armKey(u)
}

// armKey arms the removal of the key, whose window began no later than now (L84).
func (a *adoption) armKey(u *unit) {
	if a.s.IdempotencyKey != "" {
		a.dropKeyAt(u, u.now.Add(a.s.Policy.DedupWindowMS))
	}
}

func (a *adoption) dropKeyAt(u *unit, at core.Time) {
	timer := u.timerAt(timerKeys, roundUp(at, core.Minute))
	timer.Texts = append(timer.Texts, encodeKey(a.key()))
}

// freeKey ends the window of a refused submission's key: the id that it names is that of other work (I8).
func (a *adoption) freeKey(u *unit) {
	row, ok := u.keys[a.key()]
	if !ok || row.ID != a.id || !bytes.Equal(row.Fingerprint, a.s.Fingerprint()) {
		return
	}
	row.ExpiresAt = u.now
	setIn(&u.keys, row.Key, row)
	u.ch.ReplaceKeys = append(u.ch.ReplaceKeys, row)
	a.dropKeyAt(u, u.now)
}

// refuse tells of a submission that was accepted and cannot be filed. Its caller has had the answer and its transaction is
// committed, so that the event log and the log are where people learn of it. It is not tried again.
func (a *adoption) refuse(u *unit, why core.Code) {
	data, _ := json.Marshal(map[string]any{"row": a.id.UUID, "error": string(why), "failures": 1})
	u.ch.Events = append(u.ch.Events, core.Event{
		Kind: "sweep.quarantined", At: u.now, Namespace: a.s.Namespace, AttemptIndex: -1,
		Actor: core.Actor{Type: "engine", ID: "engine"}, RequestID: a.caller.RequestID, Data: core.EventDataOfJSON(data),
	})
	u.after = append(u.after, func() {
		a.e.notes.Error("a submission of a committed transaction is refused", "execution_id", a.id, "namespace", a.s.Namespace, "lane", a.s.Lane,
			"principal", a.caller.Principal, "request_id", a.caller.RequestID, "code", string(why))
	})
}
