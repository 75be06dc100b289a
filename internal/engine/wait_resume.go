package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Approve delivers an operator's signal (W65..W67).
func (e *Engine) Approve(ctx context.Context, c Caller, id core.GivenID, cmd core.ApproveCommand, op Operator) (core.SignalAnswer, error) {
	args := cmd
	cmd.Principal, cmd.MintedID = c.Principal, e.mint()
	var answer core.SignalAnswer
	err := e.operate(ctx, c, id, operation{
		name: "approve", op: op, args: args, answer: &answer, waits: true,
		act: func(u *unit, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := u.waitsOf(x)
			if err != nil {
				return false, err
			}
			answer, err = x.Approve(fx, d, cmd)
			return !answer.Duplicate, err
		},
		told: func(_ *unit, x *core.Execution) toldChange {
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
func (e *Engine) Resume(ctx context.Context, c Caller, id core.GivenID, cmd core.ResumeCommand, op Operator) (View, bool, error) {
	cmd.By, cmd.Reason = c.Principal, op.Reason
	if err := cmd.Check(); err != nil {
		return View{}, false, err
	}
	var recorded recordedResume
	var view View
	already := false
	err := e.operate(ctx, c, id, operation{
		name: "resume", op: op, args: cmd, answer: &recorded, waits: true,
		act: func(u *unit, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			d, _, err := u.waitsOf(x)
			if err != nil {
				return false, err
			}
			already, err = x.Resume(fx, d, cmd)
			return !already, err
		},
		after: func(u *unit, ent *entry) {
			view = View{Execution: ent.x.Clone(), Lane: u.laneState(ent.x)}
			recorded = recordedResume{Already: already, View: recordedViewOf(&view)}
		},
		repeat: func(_ *unit, x *core.Execution) (err error) {
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

// BulkSignal is the signal that the bulk action signal delivers to each execution, as Approve does.
type BulkSignal struct {
	Name    string        `json:"name"`
	Suffix  string        `json:"suffix,omitempty"`
	Lane    string        `json:"lane,omitempty"`
	Comment string        `json:"comment,omitempty"`
	Payload *core.Payload `json:"payload,omitempty"`
}

func (s *BulkSignal) command() core.ApproveCommand {
	return core.ApproveCommand{Name: s.Name, Suffix: s.Suffix, Lane: s.Lane, Comment: s.Comment, Payload: s.Payload}
}

// check checks the arguments of bulk actions that have more than a word.
func (a *BulkArgs) check(action string) error { return under("args", a.checkFor(action)) }

// checkAt checks what depends on the time: a repeat of a job that was started must not get it.
func (a *BulkArgs) checkAt(now core.Time) error {
	return under("args", core.CheckDeadline(a.DeadlineAt, now))
}

func (a *BulkArgs) checkFor(action string) error {
	switch action {
	case bulkReplay:
		return core.CheckCascade(a.Cascade)
	case bulkTag:
		return core.CheckTagChanges("tags", a.Tags)
	case bulkResume:
		return (&core.ResumeCommand{DelayMS: a.DelayMS}).Check()
	case bulkSignal:
		if a.Signal == nil {
			return core.Invalid("name", "the action needs a signal")
		}
		cmd := a.Signal.command()
		return cmd.Check()
	}
	return nil
}

// withoutPayload returns the arguments as they may be shown.
func (a BulkArgs) withoutPayload() BulkArgs {
	if a.Signal != nil {
		told := *a.Signal
		told.Payload = nil
		a.Signal = &told
	}
	return a
}

// The bulk actions that look at the waits of executions.
const (
	bulkResume = "resume"
	bulkSignal = "signal"
)

// resumeOne is a bulk action.
func resumeOne(u *unit, j *job, ent *entry, fx *core.Effects) (bool, error) {
	d, err := u.dossier(ent)
	if err != nil {
		return false, err
	}
	already, err := ent.x.Resume(fx, d, core.ResumeCommand{By: j.Caller.Principal, DelayMS: j.Args.DelayMS, Reason: j.Reason})
	return !already, err
}

// signalOne is a bulk action.
func signalOne(u *unit, j *job, ent *entry, fx *core.Effects) (bool, error) {
	d, err := u.dossier(ent)
	if err != nil {
		return false, err
	}
	cmd := j.Args.Signal.command()
	cmd.Principal, cmd.MintedID = j.Caller.Principal, u.e.mint()
	answer, err := ent.x.Approve(fx, d, cmd)
	return !answer.Duplicate, err
}
