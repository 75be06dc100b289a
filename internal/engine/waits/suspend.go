package waits

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// recordedSuspend is what is kept of an answered suspend (W4): everything else follows from the wait state.
type recordedSuspend struct {
	SuspensionID base.UUID `json:"suspension_id"`
	Satisfied    bool      `json:"satisfied,omitempty"`
}

// Suspend hands the lease back until the condition is met (section 5).
func (e *Waits) Suspend(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.SuspendCommand) (SuspendAnswer, error) {
	if err := cmd.Check(); err != nil {
		return SuspendAnswer{}, err
	}
	var answer SuspendAnswer
	var recorded recordedSuspend
	err := e.Operate(ctx, c, id, e.suspendOperation(c, cmd, &answer, &recorded))
	if err != nil {
		return SuspendAnswer{}, err
	}
	for i := range answer.Waitpoints {
		e.known.add(&answer.Waitpoints[i])
	}
	if answer.Repeated {
		c.Again()
	}
	var data WaitData
	data.signalsWithin(id.UUID, answer.Signals, WaitBytes)
	return answer, e.fill(ctx, c, id, &data)
}

// suspendOperation is the command of Suspend.
func (e *Waits) suspendOperation(c txn.Caller, cmd core.SuspendCommand, answer *SuspendAnswer, recorded *recordedSuspend) admin.Operation {
	return admin.Operation{
		Name: "suspend", Op: txn.Operator{RequestKey: c.RequestKey}, Args: []any{cmd.Fingerprint(), cmd.IdempotencyKey}, Answer: recorded,
		Fence: &cmd.Fence, Wants: wantWaits, Docs: freshRefs(cmd.Waitpoints),
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			c.AsWorker(x, fx)
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			command := cmd
			command.Recorded, command.Keys, command.Mint, command.Taken = u.Record(x.ID.UUID, cmd.Fence.Epoch), ring, e.Mint, func(id base.UUID) bool { return waitpointTaken(u, id) }
			got, err := x.Suspend(fx, d, command)
			if err != nil {
				return false, err
			}
			*answer, err = suspendAnswer(ring, x, known(d, fx), got)
			*recorded = recordedSuspend{SuspensionID: got.SuspensionID, Satisfied: got.Satisfied}
			return !got.Repeated, err
		},
		Repeat: func(u *txn.Tx, x *core.Execution) error {
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return err
			}
			got, err := d.SuspendAnswered(recorded.SuspensionID, recorded.Satisfied)
			if err != nil {
				return err
			}
			*answer, err = suspendAnswer(ring, x, d, got)
			return err
		},
	}
}

// NewLeftSuspend makes the command that applies a suspend which a user's own transaction has left. A wait that is over by then is handed back at once: the
// handler has ended, and when it is called again it passes the wait.
func (e *Waits) NewLeftSuspend(c txn.Caller, id base.GivenID, cmd core.SuspendCommand) txn.Command {
	op := e.suspendOperation(c, cmd, &SuspendAnswer{}, &recordedSuspend{})
	suspend := op.Act
	op.Act = func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
		changed, err := suspend(u, x, fx)
		if err != nil || x.Status == core.Suspended {
			return changed, err
		}
		_, err = x.Release(fx, core.ReleaseCommand{Fence: cmd.Fence, Reason: "the wait is over", Recorded: u.Record(x.ID.UUID, cmd.Fence.Epoch)})
		return true, err
	}
	return e.NewOperation(c, id, op)
}

// CheckLeftSuspend checks a suspend that a user's own transaction leaves, on an execution that is settled and the docs of WaitStateKey. It returns the
// suspension if the wait is over, else the zero UUID.
func CheckLeftSuspend(x *core.Execution, now base.Time, docs []store.Doc, cmd core.SuspendCommand, mint func() base.UUID) (over base.UUID, err error) {
	d, err := waitStateOf(docs)
	if err != nil {
		return base.UUID{}, err
	}
	cmd.Mint = mint
	switch known, err := x.CheckSuspend(now, d, cmd); {
	case err != nil:
		return base.UUID{}, err
	case known == nil:
		return base.UUID{}, nil
	case known.Satisfied:
		return known.SuspensionID, nil
	default:
		return base.UUID{}, x.NotActive()
	}
}

// freshRefs names where waitpoints stand that the caller has given ids.
func freshRefs(bindings []core.Binding) (refs []store.DocRef) {
	for i := range bindings {
		if b := &bindings[i]; !b.UsePending && !b.ID.IsZero() {
			refs = append(refs, waitpointAtRef(b.ID))
		}
	}
	return refs
}

// waitpointTaken reports whether a waitpoint has the id, of whichever execution: for ids that the command has named before.
func waitpointTaken(u *txn.Tx, id base.UUID) bool { return u.Doc(waitpointAtRef(id)) != nil }

// known is a wait state with what this command has begun and closed: how its waitpoints stand depends on that.
func known(d *core.WaitState, fx *core.Effects) *core.WaitState {
	with := *d
	with.Suspensions, with.WaitpointEnds = slices.Clip(d.Suspensions), slices.Clip(d.WaitpointEnds)
	for _, write := range fx.Waits {
		switch write.Record.(type) {
		case *core.Suspension, *core.WaitpointEnd:
			with.Apply([]core.WaitWrite{write})
		}
	}
	return &with
}

// suspendAnswer shows the waitpoints of a suspension with their tokens. Codes: corruption.
func suspendAnswer(ring *keyring.Ring, x *core.Execution, d *core.WaitState, got core.SuspendAnswer) (SuspendAnswer, error) {
	answer := SuspendAnswer{SuspendAnswer: got}
	for i := range got.Waitpoints {
		s, err := standing(x, d, &got.Waitpoints[i])
		if err != nil {
			return SuspendAnswer{}, err
		}
		answer.Tokens, answer.Standings = append(answer.Tokens, tokenFor(ring, got.Waitpoints[i].TokenFields())), append(answer.Standings, s)
	}
	return answer, nil
}
