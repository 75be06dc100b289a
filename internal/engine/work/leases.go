package work

import (
	"context"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// renew extends one lease (L38).
type renew struct {
	caller txn.Caller
	ref    txn.LeaseRef
	lease  txn.LeaseView
}

func (r *renew) Name() string { return txn.RenewName }

// Carried is the lease under which the command is sent; nil: none.
func (r *renew) Carried() *core.Fence { return &r.ref.Fence }

func (r *renew) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, r.ref.ID.UUID) }

// WaitsOnce bounds how long it waits for a transaction of a user that holds the execution: the holder of the lease must know in time.
func (r *renew) WaitsOnce() {}

// HeldError is the answer if it has waited in vain. While the transaction is open the lease cannot be taken over.
func (r *renew) HeldError() error {
	return base.Errorf(base.CodeStoreUnavailable, "a transaction holds the execution").With(base.DetailHeld, true).WithRetryAfter(1000)
}

func (r *renew) Target() base.UUID { return r.ref.ID.UUID }

func (r *renew) Decide(u *txn.Tx) error {
	ent, err := u.Find(r.caller, r.ref.ID)
	if err != nil {
		return err
	}
	u.Settle(ent)
	before := ent.Before()
	fx := u.Effects(r.caller)
	fx.Now = max(fx.Now, ent.Exec.Latest()) // a clock that was set back does not count for this execution (L5)
	if err := ent.Exec.Renew(fx, r.ref.Fence, r.ref.TTL); err != nil {
		u.Doubted = u.Doubted || ent.Assumed()
		ent.Back(before)
		return err
	}
	u.TouchLease(ent)
	r.lease = leaseView(ent.Exec)
	return nil
}

func leaseView(x *core.Execution) txn.LeaseView {
	return txn.LeaseView{
		ID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID, InstanceID: x.Lease.InstanceID,
		ExpiresAt: x.Lease.ExpiresAt, TTL: x.Lease.TTL,
	}
}

// Renew extends many leases, each with its own answer.
func (e *Work) Renew(ctx context.Context, c txn.Caller, leases []txn.LeaseRef) ([]txn.RenewItem, error) {
	items := make([]txn.RenewItem, len(leases))
	var cmds []txn.Command
	var at []int
	for i, ref := range leases {
		if items[i].Err = checkRenewal(ref); items[i].Err == nil {
			cmds = append(cmds, &renew{caller: c, ref: ref})
			at = append(at, i)
		}
	}
	for n, err := range e.DoAll(ctx, cmds) {
		items[at[n]].Lease, items[at[n]].Err = txn.Answered(&cmds[n].(*renew).lease, err)
	}
	e.attachDrains(ctx, items)
	return items, nil
}

// ofOneLease names the field of a refusal relative to the lease, which is the item at fault.
func ofOneLease(err error) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	named := *refusal
	return named.WithField(strings.TrimPrefix(named.Field, "lease."))
}

func checkRenewal(ref txn.LeaseRef) error {
	if err := ref.Fence.Validate(); err != nil {
		return err
	}
	if ref.TTL == 0 {
		return nil
	}
	return base.CheckTTL(ref.TTL)
}

// Heartbeat counts as a sign of life of an instance and renews its leases (S51).
func (e *Work) Heartbeat(ctx context.Context, c txn.Caller, instanceID string, leases []txn.LeaseRef) (txn.HeartbeatAnswer, error) {
	if err := base.CheckWorkerID("worker_instance_id", instanceID); err != nil {
		return txn.HeartbeatAnswer{}, err
	}
	var answer txn.HeartbeatAnswer
	err := e.Do(ctx, &onWorker{
		op: opHeartbeat, caller: c, instanceID: instanceID,
		act: func(u *txn.Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			answer = txn.HeartbeatAnswer{}
			if w == nil || !w.Live(u.Now) {
				return nil, nil
			}
			changed := w.Claimed(fx, c.Registrant())
			answer.Registered, answer.ExpiresAt, answer.Drain, answer.DrainedBy = true, w.ExpiresAt(), w.Draining, w.DrainAsked
			if !changed {
				return nil, nil
			}
			return w, nil
		},
	})
	if err != nil {
		return txn.HeartbeatAnswer{}, err
	}
	answer.Leases, err = e.Renew(ctx, c, leases)
	for i := range answer.Leases {
		answer.Leases[i].Err = ofOneLease(answer.Leases[i].Err)
	}
	return txn.Answered(&answer, err)
}
