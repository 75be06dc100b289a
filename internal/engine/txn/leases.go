package txn

import (
	"context"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// renew extends one lease (L38).
type renew struct {
	caller Caller
	ref    LeaseRef
	lease  LeaseView
}

// renewName is the name of the command that extends a lease.
const renewName = "renew"

func (r *renew) Name() string { return renewName }

func (r *renew) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, r.ref.ID.UUID) }

func (r *renew) Target() base.UUID { return r.ref.ID.UUID }

func (r *renew) Decide(u *Tx) error {
	ent, err := u.Find(r.caller, r.ref.ID)
	if err != nil {
		return err
	}
	u.Settle(ent)
	before := ent.before()
	fx := u.effects(r.caller)
	fx.Now = max(fx.Now, ent.Exec.Latest()) // a clock that was set back does not count for this execution (L5)
	if err := ent.Exec.Renew(fx, r.ref.Fence, r.ref.TTL); err != nil {
		u.doubted = u.doubted || ent.assumed()
		ent.back(before)
		return err
	}
	u.touchLease(ent)
	r.lease = leaseView(ent.Exec)
	return nil
}

func leaseView(x *core.Execution) LeaseView {
	return LeaseView{
		ID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID, InstanceID: x.Lease.InstanceID,
		ExpiresAt: x.Lease.ExpiresAt, TTL: x.Lease.TTL,
	}
}

// Renew extends many leases, each with its own answer.
func (e *Engine) Renew(ctx context.Context, c Caller, leases []LeaseRef) ([]RenewItem, error) {
	items := make([]RenewItem, len(leases))
	var cmds []command
	var at []int
	for i, ref := range leases {
		if items[i].Err = checkRenewal(ref); items[i].Err == nil {
			cmds = append(cmds, &renew{caller: c, ref: ref})
			at = append(at, i)
		}
	}
	for n, err := range e.doAll(ctx, cmds) {
		items[at[n]].Lease, items[at[n]].Err = answered(&cmds[n].(*renew).lease, err)
	}
	e.tellDrains(ctx, items)
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

func checkRenewal(ref LeaseRef) error {
	if err := ref.Fence.Validate(); err != nil {
		return err
	}
	if ref.TTL == 0 {
		return nil
	}
	return base.CheckTTL(ref.TTL)
}

// Heartbeat counts as a sign of life of an instance and renews its leases (S51).
func (e *Engine) Heartbeat(ctx context.Context, c Caller, instanceID string, leases []LeaseRef) (HeartbeatAnswer, error) {
	if err := base.CheckWorkerID("worker_instance_id", instanceID); err != nil {
		return HeartbeatAnswer{}, err
	}
	var answer HeartbeatAnswer
	err := e.Do(ctx, &onWorker{
		op: opHeartbeat, caller: c, instanceID: instanceID,
		act: func(u *Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			answer = HeartbeatAnswer{}
			if w == nil || !w.Live(u.Now) {
				return nil, nil
			}
			changed := w.Claimed(fx, c.registrant())
			answer.Registered, answer.ExpiresAt, answer.Drain = true, w.ExpiresAt(), w.Draining
			if !changed {
				return nil, nil
			}
			return w, nil
		},
	})
	if err != nil {
		return HeartbeatAnswer{}, err
	}
	answer.Leases, err = e.Renew(ctx, c, leases)
	for i := range answer.Leases {
		answer.Leases[i].Err = ofOneLease(answer.Leases[i].Err)
	}
	return answered(&answer, err)
}
