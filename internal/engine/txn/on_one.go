package txn

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OnOne is a worker's command on one execution.
type OnOne struct {
	Op     string
	Caller Caller
	ID     base.GivenID
	Fence  *core.Fence // of a lease-ending command: its recorded answer may be wanted (L34)
	Held   *core.Fence // of a command that keeps the lease
	Act    func(u *Tx, x *core.Execution, fx *core.Effects, rec *core.LeaseRecord) (changed bool, err error)
}

// Name returns the name of the operation.
func (o *OnOne) Name() string { return o.Op }

// Carried is the lease under which the command is sent; nil: none.
func (o *OnOne) Carried() *core.Fence { return cmp.Or(o.Held, o.Fence) }

// Want adds the execution.
func (o *OnOne) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, o.ID.UUID) }

// Target is the execution whose lease the command carries.
func (o *OnOne) Target() base.UUID { return o.ID.UUID }

// More loads the lease history entry of a fence that is not the current lease's.
func (o *OnOne) More(u *Tx, w *store.Want) {
	if o.Fence == nil {
		return
	}
	ent, err := u.Find(o.Caller, o.ID)
	if err != nil || !ent.Exec.NeedsRecord(*o.Fence) {
		return
	}
	if u.Doubted = u.Doubted || ent.Assumed(); !ent.Assumed() {
		w.History = append(w.History, store.HistoryRef{ID: o.ID.UUID, Epoch: o.Fence.Epoch})
	}
}

// Decide applies the command to the execution.
func (o *OnOne) Decide(u *Tx) error {
	return u.On(o.Caller, o.ID, func(x *core.Execution, fx *core.Effects) (bool, error) {
		var rec *core.LeaseRecord
		if o.Fence != nil {
			rec = u.Record(x.ID.UUID, o.Fence.Epoch)
		}
		return o.Act(u, x, fx, rec)
	})
}

// OnExecution runs a command on one execution. An execution that a user's own transaction has just submitted is ingested first (L88).
func (e *Engine) OnExecution(ctx context.Context, cmd *OnOne) error {
	err := e.Do(ctx, cmd)
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.Appeared(ctx, cmd.ID.UUID) {
		return e.Do(ctx, cmd)
	}
	return err
}
