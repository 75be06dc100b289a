package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// recordedWaitpoint is what is kept of an answer that showed a waitpoint (W4): its token is made of its row each time.
type recordedWaitpoint struct {
	WaitpointID base.UUID `json:"waitpoint_id"`
	ExpiresAt   base.Time `json:"expires_at,omitzero"` // as it was
}

// CreateWaitpoint makes a pending waitpoint for the holder of the lease (W36, W37).
func (e *Waits) CreateWaitpoint(ctx context.Context, c txn.Caller, id base.GivenID, cmd core.CreateWaitpointCommand) (Issued, error) {
	if err := cmd.Check(); err != nil {
		return Issued{}, err
	}
	cmd.MintedID = e.Mint()
	var docs []store.DocRef
	if !cmd.WaitpointID.IsZero() {
		docs = append(docs, waitpointAtRef(cmd.WaitpointID))
	}
	var answer Issued
	var recorded recordedWaitpoint
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "create_waitpoint", Op: txn.Operator{RequestKey: c.RequestKey}, Args: []any{cmd.Fingerprint(), cmd.IdempotencyKey}, Answer: &recorded,
		Wants: wantWaits, Docs: docs, Held: &cmd.Fence,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			c.AsWorker(x, fx)
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			command := cmd
			command.Keys, command.Taken = ring, !cmd.WaitpointID.IsZero() && waitpointTaken(u, cmd.WaitpointID)
			got, err := x.CreateWaitpoint(fx, d, command)
			if err != nil {
				return false, err
			}
			answer, err = issued(ring, x, d, got.Waitpoint)
			answer.Repeated = got.Repeated
			recorded = recordedWaitpoint{WaitpointID: got.Waitpoint.ID, ExpiresAt: got.Waitpoint.ExpiresAt}
			return !got.Repeated, err
		},
		Repeat: func(u *txn.Tx, x *core.Execution) (err error) {
			answer, err = issuedAgain(u, x, &recorded)
			return err
		},
	})
	if err != nil {
		return Issued{}, err
	}
	e.known.add(&answer.Waitpoint)
	if answer.Repeated {
		c.Again()
	}
	return answer, nil
}

// issued shows a waitpoint with its token. Codes: corruption.
func issued(ring *keyring.Ring, x *core.Execution, d *core.WaitState, w core.Waitpoint) (Issued, error) {
	s, err := standing(x, d, &w)
	return Issued{Waitpoint: w, Standing: s, Token: tokenFor(ring, w.TokenFields())}, err
}

// standing is how a waitpoint stands by what the wait state has of its end, its signals and its links. Codes: corruption.
func standing(x *core.Execution, d *core.WaitState, w *core.Waitpoint) (Standing, error) {
	v, err := x.WaitpointView(d, w)
	return Standing{
		State: v.State, CloseReason: v.CloseReason, ClosedAt: v.ClosedAt,
		SignalCount: v.SignalCount, MatchedSignals: v.MatchedSignals, LastSignalAt: v.LastSignalAt, LinkCount: v.LinkCount,
	}, err
}

// issuedAgain shows a waitpoint to whom it was shown before.
func issuedAgain(u *txn.Tx, x *core.Execution, recorded *recordedWaitpoint) (Issued, error) {
	d, ring, err := waitsOf(u, x)
	if err != nil {
		return Issued{}, err
	}
	row := d.Waitpoint(recorded.WaitpointID)
	if row == nil {
		return Issued{}, noWaitpoint()
	}
	shown := *row
	shown.ExpiresAt = recorded.ExpiresAt
	answer, err := issued(ring, x, d, shown)
	answer.Repeated = true
	return answer, err
}

// CloseWaitpoint closes a pending waitpoint, for an operator or, with a fence, for the holder of the lease (W38).
func (e *Waits) CloseWaitpoint(ctx context.Context, c txn.Caller, waitpoint base.UUID, f *core.Fence, op txn.Operator) (bool, error) {
	var already bool
	err := e.operateAt(ctx, c, waitpointAtRef(waitpoint), noWaitpoint(), admin.Operation{
		Name: "close_waitpoint", Op: op, Answer: &already, Held: f,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if f != nil {
				c.AsWorker(x, fx)
			}
			d, _, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			already, err = x.CloseWaitpoint(fx, d, core.CloseWaitpointCommand{Fence: f, WaitpointID: waitpoint, Reason: op.Reason})
			return !already, err
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{
				Entity: "waitpoint", ID: waitpoint.String(),
				Before: map[string]string{"state": core.WaitpointPending}, After: map[string]string{"state": core.WaitpointClosed},
			}
		},
	})
	return txn.Answered(&already, err)
}

// ReadToken shows the token of an open waitpoint of the execution (W31). The record is left as it is: the event is all that it writes.
func (e *Waits) ReadToken(ctx context.Context, c txn.Caller, id base.GivenID, waitpoint base.UUID) (Issued, error) {
	var answer Issued
	err := e.Operate(ctx, c, id, admin.Operation{
		Name: "read_waitpoint_token", Wants: wantWaits, Shows: true,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			row, err := x.ReadToken(fx, d, waitpoint, ring)
			if err != nil {
				return false, err
			}
			if answer, err = issued(ring, x, d, row); err != nil {
				return false, err
			}
			u.Keep(fx)
			return false, nil
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{Entity: "waitpoint", ID: waitpoint.String()}
		},
	})
	return txn.Answered(&answer, err)
}

// ReissueToken kills every token and link of a waitpoint and shows the new token (W32).
func (e *Waits) ReissueToken(ctx context.Context, c txn.Caller, waitpoint base.UUID, op txn.Operator) (Issued, error) {
	var answer Issued
	var recorded recordedWaitpoint
	var before base.Time
	err := e.operateAt(ctx, c, waitpointAtRef(waitpoint), noWaitpoint(), admin.Operation{
		Name: "reissue_token", Op: op, Answer: &recorded,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			if row := d.Waitpoint(waitpoint); row != nil {
				before = row.MintedAt
			}
			row, err := x.ReissueToken(fx, d, waitpoint, ring)
			if err != nil {
				return false, err
			}
			if answer, err = issued(ring, x, d, row); err != nil {
				return false, err
			}
			recorded = recordedWaitpoint{WaitpointID: row.ID, ExpiresAt: row.ExpiresAt}
			return true, nil
		},
		Repeat: func(u *txn.Tx, x *core.Execution) (err error) {
			answer, err = issuedAgain(u, x, &recorded)
			return err
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{
				Entity: "waitpoint", ID: waitpoint.String(),
				Before: map[string]base.Time{"minted_at": before}, After: map[string]base.Time{"minted_at": answer.MintedAt},
			}
		},
	})
	return txn.Answered(&answer, err)
}
