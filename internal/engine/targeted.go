package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// targeted takes one named execution (S34, S35).
type targeted struct {
	op     string
	caller Caller
	id     core.GivenID
	req    TargetedRequest
	check  func(x *core.Execution, t core.Targeted) error
	task   Task
}

// ClaimResumed takes an execution whose wait is over (L46).
func (e *Engine) ClaimResumed(ctx context.Context, c Caller, id core.GivenID, r TargetedRequest) (Task, error) {
	return e.claimOne(ctx, &targeted{op: "claim_resumed", caller: c, id: id, req: r, check: (*core.Execution).CheckClaimResumed})
}

// Reclaim takes over an execution whose lease was lost (L47, L114).
func (e *Engine) Reclaim(ctx context.Context, c Caller, id core.GivenID, r TargetedRequest) (Task, error) {
	return e.claimOne(ctx, &targeted{op: "reclaim", caller: c, id: id, req: r, check: (*core.Execution).CheckReclaim})
}

// OperatorClaim takes an execution for an operator, whatever capabilities it asks for (S35).
func (e *Engine) OperatorClaim(ctx context.Context, c Caller, id core.GivenID, r TargetedRequest) (Task, error) {
	setDefault(&r.WorkerID, "operator")
	setDefault(&r.InstanceID, "operator")
	return e.claimOne(ctx, &targeted{op: "operator_claim", caller: c, id: id, req: r, check: (*core.Execution).CheckOperatorClaim})
}

func (e *Engine) claimOne(ctx context.Context, cmd *targeted) (Task, error) {
	r := &cmd.req
	if err := checkWorker(r.WorkerID, r.InstanceID); err != nil {
		return Task{}, err
	}
	setDefault(&r.TTL, e.cfg.LeaseTTL)
	if err := core.CheckTTL(r.TTL); err != nil {
		return Task{}, err
	}
	if r.RequestKey != "" {
		if err := core.CheckRequestKey(r.RequestKey); err != nil {
			return Task{}, err
		}
	}
	var err error
	if r.Capabilities, err = core.ParseCapabilities("worker", r.Capabilities); err != nil {
		return Task{}, err
	}
	err = e.do(ctx, cmd)
	if core.CodeOf(err) == core.CodeExecutionNotFound && e.appeared(ctx, cmd.id.UUID) { // of a user's own transaction (L88)
		err = e.do(ctx, cmd)
	}
	if err != nil {
		return Task{}, err
	}
	return e.tellWait(ctx, cmd.task)
}

func (t *targeted) name() string { return t.op }

func (t *targeted) want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, t.id.UUID)
	w.Inputs = true
	if t.byInstance() {
		w.Docs = append(w.Docs, workerRef(t.req.InstanceID))
		w.LockDocs = true
	}
}

// byInstance tells whether the claim is one of the instance that it names, and not of an operator.
func (t *targeted) byInstance() bool { return t.op != "operator_claim" }

// more locks the lane, so that a pause is a barrier for targeted claims too (S4), and counts its places.
func (t *targeted) more(u *unit, w *store.Want) {
	ent, err := u.find(t.caller, t.id)
	if err != nil {
		return
	}
	if lane := u.lane(ent.x); lane != nil {
		w.ShareLanes = append(w.ShareLanes, lane.ID)
		if lane.Settings.MaxConcurrent > 0 {
			w.Counters = append(w.Counters, laneCounter(lane.Name))
		}
	}
}

func (t *targeted) decide(u *unit) error {
	t.task = Task{}
	ent, err := u.find(t.caller, t.id)
	if err != nil {
		return err
	}
	u.settle(ent)
	seen, err := t.admitWorker(u)
	if err != nil {
		return err
	}
	if ent.x.HoldsLeaseOf(t.req.InstanceID, t.req.RequestKey) {
		t.caller.Again()
		got := howAcquired(ent.x)
		t.task = Task{Execution: ent.x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom}
		seen()
		return nil
	}
	if err := ent.x.CheckExpect(t.req.Expect); err != nil {
		return err
	}
	before := ent.x.Audited()
	if err := u.apply(t.caller, ent, t.acquire(u)); err != nil {
		return err
	}
	seen()
	if t.audits() {
		u.auditExecution(t.caller, t.op, t.req.Reason, ent.x, before, ent.x.Audited())
	}
	return nil
}

// admitWorker refuses the claims of an instance that was marked dead or is another worker's (S52, SI13). seen counts the claim as a
// sign of life (S50); it registers nobody: of lanes and kinds it says nothing.
func (t *targeted) admitWorker(u *unit) (seen func(), err error) {
	if !t.byInstance() {
		return func() {}, nil
	}
	w, err := u.claimant(t.caller, t.req.WorkerID, t.req.InstanceID)
	return func() {
		fx := u.effects(t.caller)
		if w != nil && w.WorkerID == t.req.WorkerID && w.Claimed(fx) {
			u.putWorker(w)
			u.keep(fx)
		}
	}, err
}

// audits tells whether the claim is an operator's act, which the audit log tells of (U131).
func (t *targeted) audits() bool { return t.op == "operator_claim" && t.caller.audits() }

func (t *targeted) chains(u *unit) []string {
	if !t.audits() {
		return nil
	}
	return u.executionChain(t.caller, t.id)
}

// acquire checks whether the execution may be taken, and takes it.
func (t *targeted) acquire(u *unit) func(x *core.Execution, fx *core.Effects) (bool, error) {
	return func(x *core.Execution, fx *core.Effects) (bool, error) {
		lane := u.lane(x)
		err := t.check(x, core.Targeted{
			Lane: lane, GivenLane: t.req.Lane, Capabilities: t.req.Capabilities, Force: t.req.Force,
			InstanceID: t.req.InstanceID, RequestKey: t.req.RequestKey,
		})
		if err != nil {
			return false, err
		}
		if lane != nil && !t.req.Force && (lane.Counting || !u.hasPlace(lane)) {
			u.e.meter.full()
			return false, core.Errorf(core.CodeAdmissionRefused, "lane %q is at its cap of %d", lane.Name, lane.Settings.MaxConcurrent).
				With("key", laneCounter(lane.Name))
		}
		u.takePlace(lane, x)
		if t.byInstance() {
			fx.Actor = core.Actor{Type: "worker", ID: t.req.WorkerID}
		}
		u.entries[x.ID.UUID].acquiring(fx.Now)
		got := x.Acquire(fx, core.Acquisition{
			LeaseID: u.e.mint(), AttemptID: u.e.mint(), WorkerID: t.req.WorkerID, InstanceID: t.req.InstanceID,
			TTL: t.req.TTL, RequestKey: t.req.RequestKey, Forced: t.req.Force,
		})
		t.task = Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom}
		return true, nil
	}
}
