package claims

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// targeted takes one named execution (S34, S35).
type targeted struct {
	op     string
	caller txn.Caller
	id     base.GivenID
	req    txn.TargetedRequest
	check  func(x *core.Execution, t core.Targeted) error
	ring   *keyring.Ring // of a grant
	since  base.Time     // when the caller got the instance: earlier leases belong to another caller
	task   txn.Task
}

// ClaimResumed takes an execution whose wait is over (L46).
func (e *Claims) ClaimResumed(ctx context.Context, c txn.Caller, id base.GivenID, r txn.TargetedRequest) (txn.Task, error) {
	return e.claimOne(ctx, &targeted{op: "claim_resumed", caller: c, id: id, req: r, check: (*core.Execution).CheckClaimResumed})
}

// Reclaim takes over an execution whose lease was lost (L47, L114).
func (e *Claims) Reclaim(ctx context.Context, c txn.Caller, id base.GivenID, r txn.TargetedRequest) (txn.Task, error) {
	return e.claimOne(ctx, &targeted{op: "reclaim", caller: c, id: id, req: r, check: (*core.Execution).CheckReclaim})
}

// OperatorClaim takes an execution for an operator, whatever capabilities it asks for (S35).
func (e *Claims) OperatorClaim(ctx context.Context, c txn.Caller, id base.GivenID, r txn.TargetedRequest) (txn.Task, error) {
	txn.SetDefault(&r.WorkerID, "operator")
	txn.SetDefault(&r.InstanceID, "operator")
	return e.claimOne(ctx, &targeted{op: "operator_claim", caller: c, id: id, req: r, check: (*core.Execution).CheckOperatorClaim})
}

func (e *Claims) claimOne(ctx context.Context, cmd *targeted) (txn.Task, error) {
	if err := e.takeOne(ctx, cmd); err != nil {
		return txn.Task{}, err
	}
	return e.attachOne(ctx, cmd.task)
}

// takeOne checks the arguments and takes the execution.
func (e *Claims) takeOne(ctx context.Context, cmd *targeted) error {
	r := &cmd.req
	if err := checkWorker(r.WorkerID, r.InstanceID); err != nil {
		return err
	}
	txn.SetDefault(&r.TTL, e.Cfg.LeaseTTL)
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
	if base.CodeOf(err) == base.CodeExecutionNotFound && e.Appeared(ctx, cmd.id.UUID) { // of a user's own transaction (L88)
		err = e.Do(ctx, cmd)
	}
	return err
}

func (t *targeted) Name() string { return t.op }

// Subject is the execution that the command is about.
func (t *targeted) Subject() base.UUID { return t.id.UUID }

func (t *targeted) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, t.id.UUID)
	w.Inputs = true
	if t.req.GrantTTL != 0 {
		admin.WantKeys(w)
	}
	if t.byInstance() {
		w.Docs = append(w.Docs, txn.WorkerRef(t.req.InstanceID))
		w.LockDocs = true
	}
}

// byInstance reports whether the claim is one of the instance that it names, and not of an operator.
func (t *targeted) byInstance() bool { return t.op != "operator_claim" }

func (t *targeted) More(u *txn.Tx, w *store.Want) {
	if ent, err := u.Find(t.caller, t.id); err == nil {
		limits.WantTaking(u, w, ent.Exec)
	}
}

func (t *targeted) Decide(u *txn.Tx) error {
	t.task = txn.Task{}
	if err := t.signs(u); err != nil {
		return err
	}
	ent, err := u.Find(t.caller, t.id)
	if err != nil {
		return err
	}
	// Due timers act first (L18). A repeated call is answered with the lease that it got before anything is checked that its first try has changed.
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
		admin.AuditExecution(u, t.caller, t.op, t.req.Reason, ent.Exec, before, ent.Exec.Audited())
	}
	return nil
}

// admitWorker refuses the claims of an instance that was marked dead or belongs to another worker (S52, SI13). seen counts the claim as a sign of
// life (S50). It registers no instance, since the claim names no lanes and kinds.
func (t *targeted) admitWorker(u *txn.Tx) (seen func(), err error) {
	if !t.byInstance() {
		return func() {}, nil
	}
	find := u.Claimant
	if t.req.GrantTTL != 0 {
		find = u.Target
	}
	w, err := find(t.caller, t.req.WorkerID, t.req.InstanceID)
	switch {
	case w == nil:
		t.since = 0
	case w.OwnedBy(t.caller.Registrant()):
		t.since = w.LeasedSince()
	default:
		t.since = u.Now + 1
	}
	return func() { sawClaimant(u, t.caller, w, t.req.WorkerID) }, err
}

// sawClaimant counts a claim as a sign of life of the worker's instance (S50), if that is the caller's.
func sawClaimant(u *txn.Tx, c txn.Caller, w *core.Worker, workerID string) {
	fx := u.Effects(c)
	if w != nil && w.WorkerID == workerID && w.OwnedBy(c.Registrant()) && w.Claimed(fx, c.Registrant()) {
		u.PutWorker(w)
		u.Keep(fx)
	}
}

// audits reports whether the claim is an operator's act, which is recorded in the audit log (U131).
func (t *targeted) audits() bool { return t.op == "operator_claim" && admin.Audits(t.caller) }

// By returns the caller.
func (t *targeted) By() txn.Caller { return t.caller }

func (t *targeted) Chains(u *txn.Tx) []string {
	if !t.audits() {
		return nil
	}
	return admin.ExecutionChain(u, t.caller, t.id)
}

// acquire checks whether the execution may be taken, and takes it.
func (t *targeted) acquire(u *txn.Tx) func(x *core.Execution, fx *core.Effects) (bool, error) {
	return func(x *core.Execution, fx *core.Effects) (bool, error) {
		lane := u.Lane(x)
		err := t.check(x, core.Targeted{
			Lane: lane, GivenLane: t.req.Lane, Capabilities: t.req.Capabilities, Force: t.req.Force,
			InstanceID: t.req.InstanceID, RequestKey: t.req.RequestKey,
		})
		if err != nil {
			return false, err
		}
		if err := limits.Admit(u, x, fx, t.req.Force); err != nil {
			return false, err
		}
		if t.byInstance() {
			fx.Actor = core.Actor{Type: "worker", ID: t.req.WorkerID}
		}
		if t.req.GrantTTL != 0 {
			return t.promise(x, fx)
		}
		u.Entries[x.ID.UUID].Acquiring(fx.Now)
		got := x.Acquire(fx, core.Acquisition{
			LeaseID: u.Engine.MintMarked(), AttemptID: u.Engine.MintMarked(), WorkerID: t.req.WorkerID, InstanceID: t.req.InstanceID,
			TTL: t.req.TTL, RequestKey: t.req.RequestKey, Forced: t.req.Force,
		})
		t.task = txn.Task{Execution: x.Clone(), How: got.How, ResumedFrom: got.ResumedFrom, Remaining: u.Accounts.Remaining(x)}
		return true, nil
	}
}
