package core

import (
	"crypto/sha256"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Bounds and default of expires_in_ms of a waitpoint (W36).
const (
	MaxWaitpointExpiry     = base.MaxWaitpointExpiry
	DefaultWaitpointExpiry = base.Day
)

// CreateWaitpointCommand is the command create_waitpoint (W36).
type CreateWaitpointCommand struct {
	Fence          Fence
	Key            string
	ExpiresInMS    *base.Millis // nil: DefaultWaitpointExpiry
	WaitpointID    base.UUID    // the caller's; absent: MintedID
	IdempotencyKey string
	MintedID       base.UUID
	Taken          bool // a waitpoint of that id exists, in any execution
	Keys           *keyring.Ring
}

func invalidWaitpoint(field, why string) error {
	if why == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidWaitpoint, "%s", why).WithField(field)
}

// Check checks the arguments: invalid_waitpoint, reserved_name.
func (c *CreateWaitpointCommand) Check() error {
	if err := checkWaitpointKey(c.Key); err != nil {
		return err
	}
	if ms := c.ExpiresInMS; ms != nil && (*ms < 1 || *ms > MaxWaitpointExpiry) {
		return invalidWaitpoint("expires_in_ms", "must be in 1..31536000000")
	}
	return invalidWaitpoint("idempotency_key", base.CheckPlain(c.IdempotencyKey, 0, base.MaxIdempotencyKey))
}

func checkWaitpointKey(key string) error {
	if err := invalidWaitpoint("waitpoint_key", base.CheckPlain(key, 1, condition.MaxWaitpointKey)); err != nil {
		return err
	}
	return checkReserved("waitpoint_key", key)
}

// CreateWaitpointAnswer is the waitpoint; its token is made from the row.
type CreateWaitpointAnswer struct {
	Waitpoint Waitpoint
	Repeated  bool // it already existed under the idempotency key (W37)
}

// CreateWaitpoint makes a pending waitpoint. It keeps the lease and takes effect even late (L36). Errors: those of Check, those of the
// fence, idempotency_conflict, waitpoint_already_exists, waitpoint_limit_exceeded, signing_key_missing.
func (x *Execution) CreateWaitpoint(fx *Effects, d *WaitState, c CreateWaitpointCommand) (CreateWaitpointAnswer, error) {
	if err := c.Check(); err != nil {
		return CreateWaitpointAnswer{}, err
	}
	if _, err := x.CheckKeep(fx, c.Fence); err != nil {
		return CreateWaitpointAnswer{}, err
	}
	if known, err := x.createdBefore(d, &c); known != nil || err != nil {
		return CreateWaitpointAnswer{Waitpoint: valueOr(known), Repeated: known != nil}, err
	}
	w, err := x.newWaitpoint(fx.Now, d, &c)
	if err != nil {
		return CreateWaitpointAnswer{}, err
	}
	waits := x.ownWaits()
	waits.Open = append(waits.Open, OpenWaitpoint{ID: w.ID, Key: w.Key, ExpiresAt: w.ExpiresAt})
	x.LastMutationAt = fx.Now
	x.arm()
	x.noteWait(fx, &w)
	x.emitWaitpointCreated(fx, &w)
	return CreateWaitpointAnswer{Waitpoint: w}, nil
}

// valueOr returns what p points at, the zero value for nil.
func valueOr[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// createdBefore finds the waitpoint with the idempotency key in this run (W37).
func (x *Execution) createdBefore(d *WaitState, c *CreateWaitpointCommand) (*Waitpoint, error) {
	if c.IdempotencyKey == "" {
		return nil, nil
	}
	known := first(d.Waitpoints, func(w *Waitpoint) bool {
		return w.RunIndex == x.RunIndex() && w.IdempotencyKey == c.IdempotencyKey
	})
	if known != nil && string(known.Fingerprint) != string(c.Fingerprint()) {
		return nil, base.Errorf(base.CodeIdempotencyConflict, "the idempotency key was used for another waitpoint").
			WithField("idempotency_key").With("waitpoint_id", known.ID.String())
	}
	return known, nil
}

// Fingerprint returns the fingerprint of the arguments, without fence and idempotency key (W4).
func (c *CreateWaitpointCommand) Fingerprint() []byte {
	o := base.NewObject(256)
	if c.ExpiresInMS != nil {
		o.Num("expires_in_ms", *c.ExpiresInMS)
	}
	if !c.WaitpointID.IsZero() {
		o.UUID("waitpoint_id", c.WaitpointID)
	}
	o.Str("waitpoint_key", c.Key)
	digest := sha256.Sum256(o.Done())
	return digest[:]
}

// newWaitpoint makes the remaining checks and then the row.
func (x *Execution) newWaitpoint(now base.Time, d *WaitState, c *CreateWaitpointCommand) (Waitpoint, error) {
	id := c.WaitpointID
	if id.IsZero() {
		id = c.MintedID
	}
	if c.Taken || d.Waitpoint(id) != nil {
		return Waitpoint{}, waitpointExists(id)
	}
	if err := x.checkWaitpointLimit(1); err != nil {
		return Waitpoint{}, err
	}
	expires := DefaultWaitpointExpiry
	if c.ExpiresInMS != nil {
		expires = *c.ExpiresInMS
	}
	w := Waitpoint{
		ID: id, ExecutionID: x.ID, Namespace: x.Class.Namespace, Key: c.Key, RunIndex: x.RunIndex(),
		MintedAt: now, CreatedAt: now, ExpiresAt: now.Add(expires),
	}
	if c.IdempotencyKey != "" {
		w.IdempotencyKey, w.Fingerprint = c.IdempotencyKey, c.Fingerprint()
	}
	return w, w.handOut(c.Keys)
}

func waitpointExists(id base.UUID) error {
	return base.Errorf(base.CodeWaitpointAlreadyExists, "a waitpoint has this id").WithField("waitpoint_id").With("waitpoint_id", id.String()).
		WithHint("leave the id out, or bring one that was never used")
}

// checkWaitpointLimit refuses more additional open waitpoints than the limit allows (W36).
func (x *Execution) checkWaitpointLimit(more int) error {
	if open := len(x.openWaitpoints()); open+more > MaxOpenWaitpoints {
		return base.Errorf(base.CodeWaitpointLimitExceeded, "%d waitpoints are open, at most %d may be", open, MaxOpenWaitpoints).
			With("limit", MaxOpenWaitpoints)
	}
	return nil
}

// waitpointNotFound is the same error for a waitpoint that does not exist and one of another execution.
func waitpointNotFound() *base.Error {
	return base.Errorf(base.CodeWaitpointNotFound, "there is no such waitpoint").WithField("waitpoint_id")
}

// CloseWaitpointCommand is the command close_waitpoint (W38). Fence is that of the lease holder, nil for an operator.
type CloseWaitpointCommand struct {
	Fence       *Fence
	WaitpointID base.UUID
	Reason      string
}

// CloseWaitpoint closes a pending waitpoint. already reports that it was closed before. Errors: invalid_argument, with a fence those of the fence,
// waitpoint_not_found, waitpoint_active.
func (x *Execution) CloseWaitpoint(fx *Effects, d *WaitState, c CloseWaitpointCommand) (already bool, err error) {
	if err := base.CheckReason("reason", c.Reason); err != nil {
		return false, err
	}
	if err := x.checkHolder(fx, c.Fence); err != nil {
		return false, err
	}
	open := x.openWaitpoint(c.WaitpointID)
	switch {
	case d.Waitpoint(c.WaitpointID) == nil:
		return false, waitpointNotFound()
	case open == nil:
		return true, nil
	case open.Active:
		return false, base.Errorf(base.CodeWaitpointActive, "a suspension waits at the waitpoint").
			WithHint("resume or cancel the execution instead; reissue the token to stop one that leaked")
	}
	x.closeWaitpoints(fx, func(w OpenWaitpoint) CloseReason {
		if w.ID == c.WaitpointID {
			return ClosedByRequest
		}
		return ""
	})
	x.LastMutationAt = fx.Now
	x.arm()
	return false, nil
}

// checkHolder is the fence check of commands that operators may use too; they have no fence.
func (x *Execution) checkHolder(fx *Effects, f *Fence) error {
	if f == nil {
		return nil
	}
	_, err := x.CheckKeep(fx, *f)
	return err
}

// ReadToken finds the waitpoint whose token is to be shown to an operator (W31). Errors: waitpoint_not_found, also for a closed one;
// signing_key_missing.
func (x *Execution) ReadToken(fx *Effects, d *WaitState, waitpoint base.UUID, keys *keyring.Ring) (Waitpoint, error) {
	w, err := x.tokenOf(d, waitpoint)
	if err != nil {
		return Waitpoint{}, err
	}
	kid, err := keys.ActiveKid()
	if err != nil {
		return Waitpoint{}, err
	}
	x.emitToken(fx, "waitpoint.token_read", w.ID, kid)
	return w, nil
}

// ReissueToken invalidates every token and link of the waitpoint that was issued before (W32); the new token is made from the row. Errors: those of
// ReadToken.
func (x *Execution) ReissueToken(fx *Effects, d *WaitState, waitpoint base.UUID, keys *keyring.Ring) (Waitpoint, error) {
	w, err := x.tokenOf(d, waitpoint)
	if err != nil {
		return Waitpoint{}, err
	}
	kid, err := keys.ActiveKid()
	if err != nil {
		return Waitpoint{}, err
	}
	w.MintedAt = base.Later(fx.Now, w.MintedAt+1)
	x.noteWait(fx, &w)
	x.emitToken(fx, "waitpoint.token_reissued", w.ID, kid)
	return w, nil
}

// tokenOf returns an open waitpoint of x.
func (x *Execution) tokenOf(d *WaitState, id base.UUID) (Waitpoint, error) {
	w := d.Waitpoint(id)
	if w == nil || x.openWaitpoint(id) == nil {
		return Waitpoint{}, waitpointNotFound()
	}
	return *w, nil
}
