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
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "suspend", Op: txn.Operator{RequestKey: c.RequestKey}, Args: []any{cmd.Fingerprint(), cmd.IdempotencyKey}, Answer: &recorded,
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
			answer, err = suspendAnswer(ring, x, known(d, fx), got)
			recorded = recordedSuspend{SuspensionID: got.SuspensionID, Satisfied: got.Satisfied}
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
			answer, err = suspendAnswer(ring, x, d, got)
			return err
		},
	})
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
