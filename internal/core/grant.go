package core

// Bounds of a grant (S27).
const (
	DefaultGrantTTL = 5 * Second
	maxGrantTTL     = Minute
)

// CheckGrantTTL wants a time of 1 ms..60 s for a grant, else invalid_argument. The default for an absent one is the caller's to fill in.
func CheckGrantTTL(ms Millis) error {
	if ms >= 1 && ms <= maxGrantTTL {
		return nil
	}
	return Invalid("grant_ttl_ms", "must be in 1..%d", maxGrantTTL)
}

// GrantCommand says for whom a grant is (S27).
type GrantCommand struct {
	WorkerID   string
	InstanceID string
	TTL        Millis
	RequestKey string // of the call that asked for it
}

// CheckGrant reports whether a grant of x may be issued, in the order of L75 up to admission. Errors: execution_not_active,
// lease_conflict, grant_outstanding, execution_not_eligible, lane_mismatch, lane_not_claimable, capability_mismatch.
func (x *Execution) CheckGrant(t Targeted) error {
	if err := x.checkIdle(); err != nil {
		return err
	}
	if err := x.checkTakeable(CodeExecutionNotEligible); err != nil {
		return err
	}
	return x.checkTarget(t)
}

// IssueGrant promises x to a worker and makes the key that he claims it with (S27, S28). The caller has checked that x may be taken and
// admitted it: slots and reservation stay as that left them. Errors: signing_key_missing, nothing changes then.
func (x *Execution) IssueGrant(fx *Effects, ring *KeyRing, c GrantCommand) (GrantKey, error) {
	kid, err := ring.ActiveKid()
	if err != nil {
		return GrantKey{}, err
	}
	secret, _ := ring.secret(kid)
	expires := fx.Now.Add(c.TTL)
	key := signGrant(secret, kid, GrantFields{ExecutionID: x.ID, WorkerID: c.WorkerID, InstanceID: c.InstanceID, ExpiresAt: expires})
	x.Grant = &Grant{
		Hash: key.hash(), Kid: kid, WorkerID: c.WorkerID, InstanceID: c.InstanceID, IssuedAt: fx.Now, ExpiresAt: expires, RequestKey: c.RequestKey,
	}
	x.clearBlock()
	x.become(fx.Now, Granted, WaitingForWorker)
	x.emitGrantIssued(fx)
	return key, nil
}

// HoldsGrantOf reports whether the grant that is out was issued to this very call (L117).
func (x *Execution) HoldsGrantOf(instanceID, requestKey string) bool {
	return x.Grant != nil && requestKey != "" && x.Grant.RequestKey == requestKey && x.Grant.InstanceID == instanceID
}

// GrantedTo reports whether a grant of x is out for this worker.
func (x *Execution) GrantedTo(workerID, instanceID string) bool {
	return x.Grant != nil && x.Grant.WorkerID == workerID && x.Grant.InstanceID == instanceID
}

// SameGrantKey makes the key of the grant that is out once more (L117). It is not stored, so the key that signed it must still verify;
// else there is no key.
func (x *Execution) SameGrantKey(now Time, ring *KeyRing) (key GrantKey, ok bool) {
	if x.Grant == nil {
		return GrantKey{}, false
	}
	secret, fault := ring.verifying(now, x.Grant.Kid)
	if fault != 0 {
		return GrantKey{}, false
	}
	key = signGrant(secret, x.Grant.Kid, GrantFields{
		ExecutionID: x.ID, WorkerID: x.Grant.WorkerID, InstanceID: x.Grant.InstanceID, ExpiresAt: x.Grant.ExpiresAt,
	})
	return key, key.hashes(x.Grant.Hash)
}

// HoldsLeaseFrom reports whether this worker acquired the current lease with this very key (S31 step 0).
func (x *Execution) HoldsLeaseFrom(key GrantKey, workerID, instanceID string) bool {
	l := x.Lease
	return l != nil && l.WorkerID == workerID && l.InstanceID == instanceID && key.hashes(l.GrantHash)
}

// ClaimGrant acquires x for the worker to whom the grant was issued, which is used up by that (S31 step 8). The key was verified; no
// second admission and no look at the lane. Errors: grant_signature_mismatch, and the grant stays out.
func (x *Execution) ClaimGrant(fx *Effects, a Acquisition) (Acquired, error) {
	if !x.GrantedTo(a.WorkerID, a.InstanceID) {
		return Acquired{}, grantMismatch()
	}
	a.GrantHash = x.Grant.Hash
	return x.Acquire(fx, a), nil
}

// ReturnGrant ends the grant that is out before its time (S33). The key was verified.
func (x *Execution) ReturnGrant(fx *Effects) { x.endGrant(fx, "returned") }

// endGrant ends the grant that is out, returns its admission and lets x pass the gate (S32).
func (x *Execution) endGrant(fx *Effects, cause string) {
	grant := x.Grant
	x.dropGrant(fx)
	x.gate(fx.Now)
	x.emitGrantEnded(fx, grant, cause)
}
