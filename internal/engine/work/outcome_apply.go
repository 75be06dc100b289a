package work

import (
	"bytes"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// outcomes applies what an execution carries.
type outcomes struct {
	e    *Work
	id   base.UUID
	body []byte // as it was read before the execution was locked
	left []leftOutcome
	cmds []txn.Command // what each of them does
	bad  error         // they cannot be read
}

// outcomesOf makes the commands that apply what executions carry. Those that carry nothing any more have none.
func (e *Work) outcomesOf(ctx context.Context, ids []base.UUID) ([]txn.Command, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	want := store.Want{}
	for _, id := range ids {
		want.Docs = append(want.Docs, outcomesRef(id))
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	var cmds []txn.Command
	for _, id := range ids {
		if doc, found := loaded.Docs[outcomesRef(id)]; found {
			cmds = append(cmds, e.newOutcomes(id, &doc))
		}
	}
	return cmds, nil
}

func (e *Work) newOutcomes(id base.UUID, doc *store.Doc) *outcomes {
	o := &outcomes{e: e, id: id, body: doc.Body}
	if o.left, o.bad = decodeOutcomes(doc); o.bad != nil {
		o.left = nil
		return o
	}
	for i := range o.left {
		cmd, err := e.commandOf(id, &o.left[i])
		if err != nil {
			o.left, o.cmds, o.bad = nil, nil, err
			return o
		}
		o.cmds = append(o.cmds, cmd)
	}
	return o
}

// commandOf returns the command that a user's own transaction has left. Sizes were checked then.
func (e *Work) commandOf(id base.UUID, left *leftOutcome) (txn.Command, error) {
	given, c := base.GivenID{UUID: id}, left.Caller
	switch left.Op {
	case OutcomeComplete:
		return &txn.OnOne{
			Op: "complete", Caller: c, ID: given, Fence: &left.Fence,
			Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (bool, error) {
				c.AsWorker(x, fx)
				answer, err := x.Complete(fx, core.Completion{Fence: left.Fence, Result: left.payload(), Recorded: rec})
				return !answer.Repeated, err
			},
		}, nil
	case OutcomeStep:
		return &putStep{caller: c, id: given, fence: left.Fence, step: left.Step, result: *left.payload()}, nil
	case OutcomeSuspend:
		cmd, err := left.suspend()
		if err != nil {
			return nil, err
		}
		return e.NewLeftSuspend(c, given, cmd), nil
	default:
		return nil, txn.Corrupt("outcomes", errMalformed)
	}
}

func (o *outcomes) Name() string { return "outcome" }

// Subject is the execution that the command is about.
func (o *outcomes) Subject() base.UUID { return o.id }

// AppliesTo is the execution that it frees of its outcomes.
func (o *outcomes) AppliesTo() base.UUID { return o.id }

func (o *outcomes) Want(w *store.Want, careful bool) {
	w.Executions = append(w.Executions, o.id)
	w.Docs = append(w.Docs, outcomesRef(o.id))
	for _, cmd := range o.cmds {
		cmd.Want(w, careful)
	}
}

func (o *outcomes) More(u *txn.Tx, w *store.Want) {
	for _, cmd := range o.cmds {
		if more, ok := cmd.(interface{ More(*txn.Tx, *store.Want) }); ok {
			more.More(u, w)
		}
	}
}

// Decide applies the commands, each at the time at which it was accepted. If the execution carries something else by now, another process has applied
// this, or a further transaction of the user has added to it: the next command on the execution looks again.
func (o *outcomes) Decide(u *txn.Tx) error {
	ent, doc := u.Entries[o.id], u.Doc(outcomesRef(o.id))
	if ent == nil || !store.Carries(ent.Exec.Version) || doc == nil || !bytes.Equal(doc.Body, o.body) {
		return nil
	}
	u.At("outcome", o.id)
	now := u.Now
	for i, cmd := range o.cmds {
		u.Now = o.left[i].At
		err := cmd.Decide(u)
		u.Now = now
		if err != nil {
			o.quarantine(u, err)
		}
	}
	o.prolong(u, ent)
	if o.bad != nil {
		o.quarantine(u, o.bad)
	}
	u.DropDoc(outcomesRef(o.id))
	u.Changes.DropInbox = append(u.Changes.DropInbox, o.id)
	u.TouchLease(ent) // at least the mark goes
	return nil
}

// prolong renews the lease if nothing but steps was stored under it: while the transaction was open it could not be renewed, and the commit is a sign of
// life of the holder.
func (o *outcomes) prolong(u *txn.Tx, ent *txn.Row) {
	if len(o.left) == 0 || ent.Exec.Status != core.Running {
		return
	}
	last := o.left[len(o.left)-1]
	fx := u.Effects(last.Caller)
	fx.Now = max(fx.Now, ent.Exec.Latest())
	_ = ent.Exec.Renew(fx, last.Fence, 0) // a lease that is another one by now is not renewed
}

// quarantine reports an outcome that was accepted and cannot be applied. Its transaction is committed, and no caller waits for an answer.
func (o *outcomes) quarantine(u *txn.Tx, why error) {
	u.Changes.Events = append(u.Changes.Events, txn.Quarantined(o.id, base.CodeOf(why), 1, u.Now, 0))
	u.After = append(u.After, func() {
		o.e.QuietLog.Error("an outcome of a committed transaction cannot be applied", "execution_id", o.id, "error", why)
	})
}
