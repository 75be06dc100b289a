package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Approve delivers an operator's signal (W65..W67).
func (e *Waits) Approve(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.ApproveCommand, op txn.Operator) (core.SignalAnswer, error) {
	args := cmd
	cmd.Principal, cmd.MintedID = c.Principal, e.Mint()
	var answer core.SignalAnswer
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "approve", Op: op, Args: args, Answer: &answer, Wants: wantWaits,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			answer, err = x.Approve(fx, d, cmd)
			return !answer.Duplicate, err
		},
		Audited: func(_ *txn.Tx, x *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{Entity: "execution", ID: x.ID.String(), After: map[string]any{
				"name": cmd.Name, "signal_id": answer.SignalID, "effect": answer.Effect,
			}}
		},
	})
	return txn.Answered(&answer, err)
}

// recordedResume is how the answer of a resume is kept.
type recordedResume struct {
	Already bool             `json:"already,omitempty"`
	View    txn.RecordedView `json:"view"`
}

// Resume ends a suspension on an operator's word (W78). already: the expected one was resumed before.
func (e *Waits) Resume(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.ResumeCommand, op txn.Operator) (txn.View, bool, error) {
	cmd.By, cmd.Reason = c.Principal, op.Reason
	if err := cmd.Check(); err != nil {
		return txn.View{}, false, err
	}
	var recorded recordedResume
	var view txn.View
	already := false
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "resume", Op: op, Args: cmd, Answer: &recorded, Wants: wantWaits,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			already, err = x.Resume(fx, d, cmd)
			return !already, err
		},
		After: func(u *txn.Tx, ent *txn.Row) {
			view = txn.View{Execution: ent.Exec.Clone(), Lane: u.LaneState(ent.Exec)}
			recorded = recordedResume{Already: already, View: txn.RecordedViewOf(&view)}
		},
		Repeat: func(_ *txn.Tx, x *core.Execution) (err error) {
			already = recorded.Already
			view, err = recorded.View.Of(x)
			return err
		},
	})
	if err != nil { // a caller that gave up must not look at what the command is writing
		return txn.View{}, false, err
	}
	return view, already, nil
}
