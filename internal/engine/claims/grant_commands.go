package claims

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// GrantClaim names the worker that claims a grant (S31).
type GrantClaim struct {
	WorkerID   string
	InstanceID string
	TTL        base.Millis // of the lease
}

// VerifyGrant returns nil if a grant key is valid (S30). Codes: grant_malformed, grant_expired, grant_unknown_kid, grant_unknown,
// grant_signature_mismatch.
func (e *Claims) VerifyGrant(ctx context.Context, c txn.Caller, key keyring.GrantKey) error {
	return e.Do(ctx, &onGrant{op: "verify_grant", caller: c, key: key, act: func(*txn.Tx, *txn.Row) error { return nil }})
}

// ReturnGrant ends a grant early; the execution passes the gate at once (S33). Codes: those of VerifyGrant.
func (e *Claims) ReturnGrant(ctx context.Context, c txn.Caller, key keyring.GrantKey) error {
	if err := base.CheckRequestKey(c.RequestKey); err != nil {
		return err
	}
	cmd := &onGrant{op: "return_grant", caller: c, key: key}
	if id, ok := key.Target(); ok && c.RequestKey != "" {
		sum := sha256.Sum256([]byte(key.Reveal()))
		cmd.request = txn.RequestRef(c, cmd.op, hex.EncodeToString(sum[:]), c.RequestKey)
		cmd.request.Owner = txn.Owner(id.UUID) // it is removed with the execution (L141)
	}
	cmd.act = func(u *txn.Tx, ent *txn.Row) error {
		return u.Apply(c, ent, func(x *core.Execution, fx *core.Effects) (bool, error) {
			fx.Actor = core.Actor{Type: "worker", ID: x.Grant.WorkerID}
			x.ReturnGrant(fx)
			return true, nil
		})
	}
	return e.Do(ctx, cmd)
}

// ClaimGrant takes the execution that was granted to the worker (S31). It is not admitted again, and the state of its lane does not matter. Codes:
// invalid_argument, those of VerifyGrant, instance_id_taken, worker_not_registered.
func (e *Claims) ClaimGrant(ctx context.Context, c txn.Caller, key keyring.GrantKey, r GrantClaim) (txn.Task, error) {
	if err := checkWorker(r.WorkerID, r.InstanceID); err != nil {
		return txn.Task{}, err
	}
	txn.SetDefault(&r.TTL, e.Cfg.LeaseTTL)
	if err := base.CheckTTL(r.TTL); err != nil {
		return txn.Task{}, err
	}
	var task txn.Task
	cmd := &onGrant{op: "claim_from_grant", caller: c, key: key, instance: r.InstanceID}
	cmd.had = func(u *txn.Tx, x *core.Execution) bool {
		if !x.HoldsLeaseFrom(key, r.WorkerID, r.InstanceID) {
			return false
		}
		got := howAcquired(x)
		task = txn.Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom, Remaining: u.Accounts.Remaining(x)}
		return true
	}
	cmd.act = func(u *txn.Tx, ent *txn.Row) (err error) {
		task, err = claimGrant(u, c, ent, r)
		return err
	}
	if err := e.Do(ctx, cmd); err != nil {
		return txn.Task{}, err
	}
	return e.attachOne(ctx, task)
}

// claimGrant acquires an execution with a valid key. That the instance was marked dead, or belongs to another worker, is reported only to the
// holder of the grant.
func claimGrant(u *txn.Tx, c txn.Caller, ent *txn.Row, r GrantClaim) (task txn.Task, err error) {
	var worker *core.Worker
	err = u.Apply(c, ent, func(x *core.Execution, fx *core.Effects) (_ bool, err error) {
		if x.GrantedTo(r.WorkerID, r.InstanceID) {
			if worker, err = u.Claimant(c, r.WorkerID, r.InstanceID); err != nil {
				return false, err
			}
		}
		fx.Actor = core.Actor{Type: "worker", ID: r.WorkerID}
		ent.Acquiring(fx.Now)
		got, err := x.ClaimGrant(fx, core.Acquisition{
			LeaseID: u.Engine.MintMarked(), AttemptID: u.Engine.MintMarked(), WorkerID: r.WorkerID, InstanceID: r.InstanceID, TTL: r.TTL,
		})
		task = txn.Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom, Remaining: u.Accounts.Remaining(x)}
		return true, err
	})
	if err == nil {
		sawClaimant(u, c, worker, r.WorkerID)
	}
	return task, err
}

// onGrant is a command of a caller with a grant key.
type onGrant struct {
	op       string
	caller   txn.Caller
	key      keyring.GrantKey
	instance string       // the claiming instance; "": none claims
	request  store.DocRef // zero: no request key
	// had reports, before the key is verified, whether the same command was done before; nil: never.
	had func(u *txn.Tx, x *core.Execution) bool
	act func(u *txn.Tx, ent *txn.Row) error // the key is good
}

func (o *onGrant) Name() string { return o.op }

func (o *onGrant) Want(w *store.Want, _ bool) {
	admin.WantKeys(w)
	if id, ok := o.key.Target(); ok {
		w.Executions = append(w.Executions, id.UUID)
	}
	if o.instance != "" {
		w.Inputs, w.LockDocs = true, true
		w.Docs = append(w.Docs, txn.WorkerRef(o.instance))
	}
	if o.request.Key != "" {
		w.Docs = append(w.Docs, o.request)
	}
}

func (o *onGrant) Decide(u *txn.Tx) error {
	ring, err := admin.Ring(u)
	if err != nil {
		return err
	}
	ent, err := o.promised(u)
	if err != nil {
		return err
	}
	now, x := u.Now, (*core.Execution)(nil)
	if ent != nil {
		now, x = max(u.Now, ent.Exec.Latest()), ent.Exec
		if o.had != nil && o.had(u, x) {
			o.caller.Again()
			return nil
		}
	}
	if repeated, err := u.Repeated(o.caller, o.request, "", nil); repeated || err != nil {
		return err
	}
	if err := core.VerifyGrant(ring, now, o.key, x); err != nil {
		return err
	}
	if err := o.act(u, ent); err != nil {
		return err
	}
	u.RecordRequest(o.request, "", nil)
	return nil
}

// promised returns the execution that the key names, settled, or nil if the caller sees none (W5). The key is not verified yet.
func (o *onGrant) promised(u *txn.Tx) (*txn.Row, error) {
	id, ok := o.key.Target()
	if !ok {
		return nil, nil
	}
	ent, err := u.Find(o.caller, id.Given())
	switch {
	case base.CodeOf(err) == base.CodeExecutionNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	u.Settle(ent)
	return ent, nil
}
