package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Approve delivers an operator's signal (W65..W67).
func (e *Engine) Approve(ctx context.Context, c Caller, id base.GivenID, cmd core.ApproveCommand, op Operator) (core.SignalAnswer, error) {
	args := cmd
	cmd.Principal, cmd.MintedID = c.Principal, e.Mint()
	var answer core.SignalAnswer
	err := e.operate(ctx, c, id, operation{
		name: "approve", op: op, args: args, answer: &answer, waits: true,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := u.waitsOf(x)
			if err != nil {
				return false, err
			}
			answer, err = x.Approve(fx, d, cmd)
			return !answer.Duplicate, err
		},
		told: func(_ *Tx, x *core.Execution) toldChange {
			return toldChange{entity: "execution", id: x.ID.String(), after: map[string]any{
				"name": cmd.Name, "signal_id": answer.SignalID, "effect": answer.Effect,
			}}
		},
	})
	return answered(&answer, err)
}

// recordedResume is how the answer of a resume is kept.
type recordedResume struct {
	Already bool         `json:"already,omitempty"`
	View    recordedView `json:"view"`
}

// Resume ends a suspension on an operator's word (W78). already: the expected one was resumed before.
func (e *Engine) Resume(ctx context.Context, c Caller, id base.GivenID, cmd core.ResumeCommand, op Operator) (View, bool, error) {
	cmd.By, cmd.Reason = c.Principal, op.Reason
	if err := cmd.Check(); err != nil {
		return View{}, false, err
	}
	var recorded recordedResume
	var view View
	already := false
	err := e.operate(ctx, c, id, operation{
		name: "resume", op: op, args: cmd, answer: &recorded, waits: true,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := u.waitsOf(x)
			if err != nil {
				return false, err
			}
			already, err = x.Resume(fx, d, cmd)
			return !already, err
		},
		after: func(u *Tx, ent *Row) {
			view = View{Execution: ent.Exec.Clone(), Lane: u.LaneState(ent.Exec)}
			recorded = recordedResume{Already: already, View: recordedViewOf(&view)}
		},
		repeat: func(_ *Tx, x *core.Execution) (err error) {
			already = recorded.Already
			view, err = recorded.View.of(x)
			return err
		},
	})
	if err != nil { // a caller that gave up must not look at what the command is writing
		return View{}, false, err
	}
	return view, already, nil
}
