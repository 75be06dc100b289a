package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

// targeted takes one named execution (S34, S35).
type targeted struct {
	op     string
	caller Caller
	id     base.GivenID
	req    TargetedRequest
	check  func(x *core.Execution, t core.Targeted) error
	ring   *keyring.Ring // of a grant
	since  base.Time     // when the caller got the instance: earlier leases belong to another caller
	task   Task
}

// ClaimResumed takes an execution whose wait is over (L46).
func (e *Engine) ClaimResumed(ctx context.Context, c Caller, id base.GivenID, r TargetedRequest) (Task, error) {
	return e.claimOne(ctx, &targeted{op: "claim_resumed", caller: c, id: id, req: r, check: (*core.Execution).CheckClaimResumed})
}

// Reclaim takes over an execution whose lease was lost (L47, L114).
func (e *Engine) Reclaim(ctx context.Context, c Caller, id base.GivenID, r TargetedRequest) (Task, error) {
	return e.claimOne(ctx, &targeted{op: "reclaim", caller: c, id: id, req: r, check: (*core.Execution).CheckReclaim})
}

// OperatorClaim takes an execution for an operator, whatever capabilities it asks for (S35).
func (e *Engine) OperatorClaim(ctx context.Context, c Caller, id base.GivenID, r TargetedRequest) (Task, error) {
	setDefault(&r.WorkerID, "operator")
	setDefault(&r.InstanceID, "operator")
	return e.claimOne(ctx, &targeted{op: "operator_claim", caller: c, id: id, req: r, check: (*core.Execution).CheckOperatorClaim})
}

func (e *Engine) claimOne(ctx context.Context, cmd *targeted) (Task, error) {
	if err := e.takeOne(ctx, cmd); err != nil {
		return Task{}, err
	}
	return e.tellTask(ctx, cmd.task)
}

// takeOne checks the arguments and takes the execution.
func (e *Engine) takeOne(ctx context.Context, cmd *targeted) error {
	r := &cmd.req
	if err := checkWorker(r.WorkerID, r.InstanceID); err != nil {
		return err
	}
	setDefault(&r.TTL, e.Cfg.LeaseTTL)
	if err := base.CheckTTL(r.TTL); err != nil {
		return err
	}
	if r.RequestKey != "" {
		if err := base.CheckRequestKey(r.RequestKey); err != nil {
			return err
		}
	}
	var err error
	if r.Capabilities, err = core.ParseCapabilities("worker", r.Capabilities); err != nil {
		return err
	}
	err = e.Do(ctx, cmd)
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.appeared(ctx, cmd.id.UUID) { // of a user's own transaction (L88)
		err = e.Do(ctx, cmd)
	}
	return err
}

func (t *targeted) Name() string { return t.op }

func (t *targeted) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, t.id.UUID)
	w.Inputs = true
	if t.req.GrantTTL != 0 {
		wantKeys(w)
	}
	if t.byInstance() {
		w.Docs = append(w.Docs, workerRef(t.req.InstanceID))
		w.LockDocs = true
	}
}

// byInstance reports whether the claim is one of the instance that it names, and not of an operator.
func (t *targeted) byInstance() bool { return t.op != "operator_claim" }

func (t *targeted) More(u *Tx, w *store.Want) {
	if ent, err := u.Find(t.caller, t.id); err == nil {
		u.wantTaking(w, ent.Exec)
	}
}

// wantTaking adds the rows that decide whether the execution may be taken now. Its lane is locked, so that a pause is a barrier for targeted claims
// too (S4), and its places are counted.
func (u *Tx) wantTaking(w *store.Want, x *core.Execution) {
	if u.limits(x) {
		u.wantRoom(w, x)
	}
	if lane := u.Lane(x); lane != nil {
		w.ShareLanes = append(w.ShareLanes, lane.ID)
		if lane.Settings.MaxConcurrent > 0 {
			w.Counters = append(w.Counters, LaneCounter(lane.Name))
		}
	}
}

func (t *targeted) Decide(u *Tx) error {
	t.task = Task{}
	if err := t.signs(u); err != nil {
		return err
	}
	ent, err := u.Find(t.caller, t.id)
	if err != nil {
		return err
	}
	u.Settle(ent)
	seen, err := t.admitWorker(u)
	if err != nil {
		return err
	}
	if t.again(u, ent.Exec) {
		seen()
		return nil
	}
	if err := ent.Exec.CheckExpect(t.req.Expect); err != nil {
		return err
	}
	before := ent.Exec.Audited()
	if err := u.Apply(t.caller, ent, t.acquire(u)); err != nil {
		return err
	}
	seen()
	if t.audits() {
		u.auditExecution(t.caller, t.op, t.req.Reason, ent.Exec, before, ent.Exec.Audited())
	}
	return nil
}

// admitWorker refuses the claims of an instance that was marked dead or belongs to another worker (S52, SI13). seen counts the claim as a sign of
// life (S50). It registers no instance, since the claim names no lanes and kinds.
func (t *targeted) admitWorker(u *Tx) (seen func(), err error) {
	if !t.byInstance() {
		return func() {}, nil
	}
	find := u.claimant
	if t.req.GrantTTL != 0 {
		find = u.Target
	}
	w, err := find(t.caller, t.req.WorkerID, t.req.InstanceID)
	switch {
	case w == nil:
		t.since = 0
	case w.OwnedBy(t.caller.registrant()):
		t.since = w.OwnedSince()
	default:
		t.since = u.Now + 1
	}
	return func() { u.sawClaimant(t.caller, w, t.req.WorkerID) }, err
}

// sawClaimant counts a claim as a sign of life of the worker's instance (S50), if that is the caller's.
func (u *Tx) sawClaimant(c Caller, w *core.Worker, workerID string) {
	fx := u.effects(c)
	if w != nil && w.WorkerID == workerID && w.OwnedBy(c.registrant()) && w.Claimed(fx, c.registrant()) {
		u.putWorker(w)
		u.keep(fx)
	}
}

// audits reports whether the claim is an operator's act, which is recorded in the audit log (U131).
func (t *targeted) audits() bool { return t.op == "operator_claim" && t.caller.Audits() }

func (t *targeted) Chains(u *Tx) []string {
	if !t.audits() {
		return nil
	}
	return u.executionChain(t.caller, t.id)
}

// acquire checks whether the execution may be taken, and takes it.
func (t *targeted) acquire(u *Tx) func(x *core.Execution, fx *core.Effects) (bool, error) {
	return func(x *core.Execution, fx *core.Effects) (bool, error) {
		lane := u.Lane(x)
		err := t.check(x, core.Targeted{
			Lane: lane, GivenLane: t.req.Lane, Capabilities: t.req.Capabilities, Force: t.req.Force,
			InstanceID: t.req.InstanceID, RequestKey: t.req.RequestKey,
		})
		if err != nil {
			return false, err
		}
		if err := u.admit(x, fx, t.req.Force); err != nil {
			return false, err
		}
		if t.byInstance() {
			fx.Actor = core.Actor{Type: "worker", ID: t.req.WorkerID}
		}
		if t.req.GrantTTL != 0 {
			return t.promise(x, fx)
		}
		u.Entries[x.ID.UUID].acquiring(fx.Now)
		got := x.Acquire(fx, core.Acquisition{
			LeaseID: u.Engine.mintMarked(), AttemptID: u.Engine.mintMarked(), WorkerID: t.req.WorkerID, InstanceID: t.req.InstanceID,
			TTL: t.req.TTL, RequestKey: t.req.RequestKey, Forced: t.req.Force,
		})
		t.task = Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom, Remaining: u.books.Remaining(x)}
		return true, nil
	}
}
