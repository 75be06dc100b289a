package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Bounds of a grant (S27).
const (
	DefaultGrantTTL = 5 * base.Second
	maxGrantTTL     = base.Minute
)

// CheckGrantTTL requires a grant ttl of 1 ms..60 s, else invalid_argument. The caller fills in the default for an absent one.
func CheckGrantTTL(ms base.Millis) error {
	if ms >= 1 && ms <= maxGrantTTL {
		return nil
	}
	return base.Invalid("grant_ttl_ms", "must be in 1..%d", maxGrantTTL)
}

// GrantCommand states for which worker a grant is (S27).
type GrantCommand struct {
	WorkerID   string
	InstanceID string
	TTL        base.Millis
	RequestKey string // of the call that asked for it
}

// CheckGrant reports whether a grant of x may be issued, in the order of L75 up to admission. Errors: execution_not_active,
// lease_conflict, grant_outstanding, execution_not_eligible, lane_mismatch, lane_not_claimable, capability_mismatch.
func (x *Execution) CheckGrant(t Targeted) error {
	if err := x.checkIdle(); err != nil {
		return err
	}
	if err := x.checkTakeable(base.CodeExecutionNotEligible); err != nil {
		return err
	}
	return x.checkTarget(t)
}

// IssueGrant promises x to a worker and makes the key that the worker claims it with (S27, S28). The caller has checked that x may be taken and has
// admitted it: slots and reservation are left as admission took them. Errors: signing_key_missing, in which case nothing changes.
func (x *Execution) IssueGrant(fx *Effects, ring *keyring.Ring, c GrantCommand) (keyring.GrantKey, error) {
	expires := fx.Now.Add(c.TTL)
	key, kid, err := ring.MintGrant(keyring.GrantFields{ExecutionID: x.ID, WorkerID: c.WorkerID, InstanceID: c.InstanceID, ExpiresAt: expires})
	if err != nil {
		return keyring.GrantKey{}, err
	}
	x.Grant = &Grant{
		Hash: key.Hash(), Kid: kid, WorkerID: c.WorkerID, InstanceID: c.InstanceID, IssuedAt: fx.Now, ExpiresAt: expires, RequestKey: c.RequestKey,
	}
	x.clearBlock()
	x.become(fx.Now, Granted, WaitingForWorker)
	x.emitGrantIssued(fx)
	return key, nil
}

// HoldsGrantOf reports whether the outstanding grant was issued to this very call (L117).
func (x *Execution) HoldsGrantOf(instanceID, requestKey string) bool {
	return x.Grant != nil && requestKey != "" && x.Grant.RequestKey == requestKey && x.Grant.InstanceID == instanceID
}

// GrantedTo reports whether a grant of x is outstanding for this worker.
func (x *Execution) GrantedTo(workerID, instanceID string) bool {
	return x.Grant != nil && x.Grant.WorkerID == workerID && x.Grant.InstanceID == instanceID
}

// SameGrantKey makes the key of the outstanding grant again (L117). The key is not stored, so the signing key must still verify; else ok is false.
func (x *Execution) SameGrantKey(now base.Time, ring *keyring.Ring) (key keyring.GrantKey, ok bool) {
	if x.Grant == nil {
		return keyring.GrantKey{}, false
	}
	key, ok = ring.MintGrantAgain(now, x.Grant.Kid, keyring.GrantFields{
		ExecutionID: x.ID, WorkerID: x.Grant.WorkerID, InstanceID: x.Grant.InstanceID, ExpiresAt: x.Grant.ExpiresAt,
	})
	if !ok {
		return keyring.GrantKey{}, false
	}
	return key, key.Hashes(x.Grant.Hash)
}

// VerifyGrant returns nil if the key belongs to the outstanding grant of the execution that it names. x is that execution with its due timers
// applied; nil if there is none. Errors are those of Ring.VerifyGrant.
func VerifyGrant(r *keyring.Ring, now base.Time, key keyring.GrantKey, x *Execution) error {
	return r.VerifyGrant(now, key, func(id base.ID) *keyring.IssuedGrant {
		if x == nil || x.ID != id || x.Grant == nil {
			return nil
		}
		return &keyring.IssuedGrant{WorkerID: x.Grant.WorkerID, InstanceID: x.Grant.InstanceID, Hash: x.Grant.Hash}
	})
}

// HoldsLeaseFrom reports whether this worker acquired the current lease with this very key (S31 step 0).
func (x *Execution) HoldsLeaseFrom(key keyring.GrantKey, workerID, instanceID string) bool {
	l := x.Lease
	return l != nil && l.WorkerID == workerID && l.InstanceID == instanceID && key.Hashes(l.GrantHash)
}

// ClaimGrant acquires x for the worker to which the grant was issued, and consumes the grant (S31 step 8). The key has been verified; neither
// admission nor the lane is checked again. Errors: grant_signature_mismatch, in which case the grant stays outstanding.
func (x *Execution) ClaimGrant(fx *Effects, a Acquisition) (Acquired, error) {
	if !x.GrantedTo(a.WorkerID, a.InstanceID) {
		return Acquired{}, keyring.GrantMismatch()
	}
	a.GrantHash = x.Grant.Hash
	return x.Acquire(fx, a), nil
}

// ReturnGrant ends the outstanding grant before its expiry (S33). The key has been verified.
func (x *Execution) ReturnGrant(fx *Effects) { x.endGrant(fx, "returned") }

// endGrant ends the outstanding grant, returns its admission and lets x pass the gate (S32).
func (x *Execution) endGrant(fx *Effects, cause string) {
	grant := x.Grant
	x.dropGrant(fx)
	x.gate(fx.Now)
	x.emitGrantEnded(fx, grant, cause)
}
