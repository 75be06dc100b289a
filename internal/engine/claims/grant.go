package claims

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// A grant is a claim in two steps: the first picks, admits and reserves an execution for a worker, the second creates the lease (S27, S31). In
// between the worker has a key that is signed and never stored.

// Grant is an execution that is promised to a worker.
type Grant struct {
	ID        base.ID
	Key       keyring.GrantKey `json:"-"` // never recorded: it is derived again from what is recorded
	ExpiresAt base.Time
}

// Grant picks work as a claim does and grants it to the worker, for r.GrantTTL (S27). It waits for up to r.Wait if there is none. Codes: those of a
// claim, signing_key_missing.
func (e *Claims) Grant(ctx context.Context, c txn.Caller, r txn.ClaimRequest) ([]Grant, error) {
	txn.SetDefault(&r.GrantTTL, core.DefaultGrantTTL)
	if err := core.CheckGrantTTL(r.GrantTTL); err != nil {
		return nil, err
	}
	call, err := e.newClaim(c, r)
	if err != nil {
		return nil, err
	}
	call.span = e.StartSpan(ctx, "grant")
	if err := e.served(ctx, call); err != nil {
		return nil, err
	}
	grants := make([]Grant, len(call.answer.Tasks))
	for i := range call.answer.Tasks {
		grants[i] = grant(&call.answer.Tasks[i])
	}
	return grants, nil
}

// GrantOne grants this execution to the worker (L44). Codes: signing_key_missing, execution_not_found, execution_not_active, lease_conflict,
// grant_outstanding, execution_not_eligible, lane_mismatch, lane_not_claimable, capability_mismatch, admission_refused, instance_id_taken,
// worker_not_registered.
func (e *Claims) GrantOne(ctx context.Context, c txn.Caller, id base.GivenID, r txn.TargetedRequest) (Grant, error) {
	txn.SetDefault(&r.GrantTTL, core.DefaultGrantTTL)
	if err := core.CheckGrantTTL(r.GrantTTL); err != nil {
		return Grant{}, err
	}
	cmd := &targeted{op: "grant", caller: c, id: id, req: r, check: (*core.Execution).CheckGrant}
	if err := e.takeOne(ctx, cmd); err != nil {
		return Grant{}, err
	}
	return grant(&cmd.task), nil
}

// grant returns a task that is granted and not leased as a Grant.
func grant(t *txn.Task) Grant {
	return Grant{ID: t.Execution.ID, Key: t.GrantKey, ExpiresAt: t.Execution.Grant.ExpiresAt}
}

// grants reports whether the call wants grants, and no leases.
func (c *claim) grants() bool { return c.req.GrantTTL != 0 }

// has reports whether the execution is what the call, or one that it repeats, was given (L117).
func (c *claim) has(x *core.Execution) bool {
	if c.grants() {
		return x.HoldsGrantOf(c.req.InstanceID, c.req.RequestKey)
	}
	return x.HoldsLeaseOf(c.req.InstanceID, c.req.RequestKey) && x.Lease.AcquiredAt >= c.since
}

// signs reports whether the call may be served: a call for grants needs a key that signs, before anything is looked for (S29).
func (k *pick) signs(u *txn.Tx, call *claim) bool {
	if !call.grants() {
		return true
	}
	ring, err := signingRing(u)
	if err != nil {
		k.errs[call] = err
		return false
	}
	k.ring = ring
	return true
}

// signingRing returns the key set of this transaction, if a key of it signs. Codes: signing_key_missing, and those of opening it.
func signingRing(u *txn.Tx) (*keyring.Ring, error) {
	ring, err := admin.Ring(u)
	if err != nil {
		return nil, err
	}
	_, err = ring.ActiveKid()
	return ring, err
}

// promise grants an execution that was admitted to the call's worker.
func (k *pick) promise(u *txn.Tx, fx *core.Effects, call *claim, ent *txn.Row) {
	key, err := ent.Exec.IssueGrant(fx, k.ring, core.GrantCommand{
		WorkerID: call.req.WorkerID, InstanceID: call.req.InstanceID, TTL: call.req.GrantTTL, RequestKey: call.req.RequestKey,
	})
	if err != nil { // cannot happen: the ring was checked to sign
		k.errs[call] = err
		return
	}
	u.Touch(ent)
	u.Keep(fx)
	k.given[call] = append(k.given[call], grantedTask{ent: ent, key: key})
}

// hadBefore gives a repeated call again what it was given (L117). A grant whose key can no longer be derived does not count.
func (k *pick) hadBefore(u *txn.Tx, call *claim, ent *txn.Row) {
	if !call.grants() {
		k.given[call] = append(k.given[call], grantedTask{ent: ent, got: howAcquired(ent.Exec)})
		return
	}
	if key, ok := ent.Exec.SameGrantKey(u.Now, k.ring); ok {
		k.given[call] = append(k.given[call], grantedTask{ent: ent, key: key})
	}
}

// signs refuses a grant of one execution without a key that signs, before anything is looked for (S29).
func (t *targeted) signs(u *txn.Tx) (err error) {
	if t.req.GrantTTL != 0 {
		t.ring, err = signingRing(u)
	}
	return err
}

// again reports whether the call was answered before, and answers it the same (L117).
func (t *targeted) again(u *txn.Tx, x *core.Execution) bool {
	switch {
	case t.req.GrantTTL == 0 && x.HoldsLeaseOf(t.req.InstanceID, t.req.RequestKey) && x.Lease.AcquiredAt >= t.since:
		got := howAcquired(x)
		t.task = txn.Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom, Remaining: u.Accounts.Remaining(x)}
	case t.req.GrantTTL != 0 && x.HoldsGrantOf(t.req.InstanceID, t.req.RequestKey):
		key, ok := x.SameGrantKey(u.Now, t.ring)
		if !ok {
			return false
		}
		t.task = txn.Task{Execution: x.Clone(), GrantKey: key}
	default:
		return false
	}
	t.caller.Again()
	return true
}

// promise grants the execution, which was admitted.
func (t *targeted) promise(x *core.Execution, fx *core.Effects) (changed bool, err error) {
	key, err := x.IssueGrant(fx, t.ring, core.GrantCommand{
		WorkerID: t.req.WorkerID, InstanceID: t.req.InstanceID, TTL: t.req.GrantTTL, RequestKey: t.req.RequestKey,
	})
	if err != nil {
		return false, err
	}
	t.task = txn.Task{Execution: x.Clone(), GrantKey: key}
	return true, nil
}
