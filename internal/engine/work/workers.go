package work

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// onWorker is a command on the record of one instance.
type onWorker struct {
	op         string
	caller     txn.Caller
	instanceID string
	reason     string
	audited    bool // it is an operator's act, which is recorded in the audit log (U131)
	args       any  // what a repeat under the caller's key is recognised by; nil: by nothing, it states the whole record (L117)
	answer     any  // where act leaves what a repeat needs, and where the repeat finds it; nil: nothing
	act        func(u *txn.Tx, w *core.Worker, fx *core.Effects) (changed *core.Worker, err error)
}

func (o *onWorker) Name() string { return o.op }

func (o *onWorker) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, txn.WorkerRef(o.instanceID))
	w.LockDocs = true
	if request, _ := o.request(); request.Key != "" {
		w.Docs = append(w.Docs, request)
	}
}

// request names the record of the request, and its fingerprint.
func (o *onWorker) request() (store.DocRef, string) {
	if o.args == nil || o.caller.RequestKey == "" {
		return store.DocRef{}, ""
	}
	return txn.RequestRef(o.caller, o.op, o.instanceID, o.caller.RequestKey), txn.Fingerprint(o.args, o.reason)
}

func (o *onWorker) Decide(u *txn.Tx) error {
	request, fingerprint := o.request()
	if repeated, err := u.Repeated(o.caller, request, fingerprint, o.answer); repeated || err != nil {
		return err
	}
	if err := o.change(u); err != nil {
		return err
	}
	u.RecordRequest(request, fingerprint, o.answer)
	return nil
}

func (o *onWorker) change(u *txn.Tx) error {
	w, err := u.Worker(o.instanceID)
	if err != nil {
		return err
	}
	if w != nil && !reaches(o.caller, w, o.op) {
		w = nil
	}
	var before core.AuditedWorker
	if w != nil {
		before = w.Audited()
	}
	fx := u.Effects(o.caller)
	changed, err := o.act(u, w, fx)
	if err != nil || changed == nil {
		return err
	}
	u.PutWorker(changed)
	u.Keep(fx)
	if o.audited && admin.Audits(o.caller) {
		admin.Audit(u, o.caller, core.AuditRow{
			Namespace: admin.ChainOf(changed.Namespaces), Action: o.action(w), Entity: "worker", EntityID: o.instanceID, Reason: o.reason,
		}, before, changed.Audited())
	}
	return nil
}

// action is what the audit log calls the command. Only the owner of an instance signs it off: an operator who says that another's has stopped
// declares it dead.
func (o *onWorker) action(w *core.Worker) string {
	if o.op == opSignOff && !w.OwnedBy(o.caller.Registrant()) {
		return opMarkDead
	}
	return o.op
}

// By returns the caller.
func (o *onWorker) By() txn.Caller { return o.caller }

func (o *onWorker) Chains(u *txn.Tx) []string {
	if !o.audited || !admin.Audits(o.caller) {
		return nil
	}
	w, err := u.Worker(o.instanceID)
	if w == nil || err != nil || !reaches(o.caller, w, o.op) {
		return nil
	}
	return []string{admin.ChainOf(w.Namespaces)}
}

// reaches reports whether a command of the caller finds the instance. A registration finds every one, since ids are unique in the whole
// store; a sign of life counts only from the owner.
func reaches(c txn.Caller, w *core.Worker, op string) bool {
	switch {
	case op == opRegister:
		return true
	case op == opHeartbeat || c.OwnInstances:
		return w.OwnedBy(c.Registrant())
	default:
		return c.SeesWorker(w)
	}
}

// workerView is an instance as the caller may see it: without namespaces that are not the caller's.
func workerView(c txn.Caller, w *core.Worker, now base.Time) txn.WorkerView {
	shown := *w
	if len(w.Namespaces) > 0 {
		shown.Namespaces = txn.Narrow(w.Namespaces, c.Namespaces)
	}
	return txn.WorkerView{Worker: shown, State: txn.WorkerState(w, now)}
}

// The commands on instances that are not an operator's.
const (
	opRegister  = "register"
	opHeartbeat = "heartbeat"
)

// The commands that say that an instance is gone.
const (
	opSignOff  = "sign_off"
	opMarkDead = "mark_dead"
)

// Register makes an instance known (S49).
func (e *Work) Register(ctx context.Context, c txn.Caller, r core.Registration) (txn.RegisterAnswer, error) {
	if err := r.Normalize(); err != nil {
		return txn.RegisterAnswer{}, err
	}
	for _, lane := range r.Lanes { // the lane default, if the caller named none
		if err := c.WorksIn(lane); err != nil {
			return txn.RegisterAnswer{}, err
		}
	}
	var err error
	if r.Namespaces, err = Serving(c, r.Namespaces); err != nil {
		return txn.RegisterAnswer{}, err
	}
	if err := e.Fleet.Admit(ctx, r.Namespaces, r.InstanceID); err != nil {
		return txn.RegisterAnswer{}, err
	}
	var answer txn.RegisterAnswer
	err = e.Do(ctx, &onWorker{
		op: opRegister, caller: c, instanceID: r.InstanceID,
		act: func(_ *txn.Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			registered, outcome, changed, err := core.RegisterWorker(fx, w, r, c.Registrant())
			if err != nil {
				return nil, err
			}
			answer = txn.RegisterAnswer{Outcome: outcome, ExpiresAt: registered.ExpiresAt(), Drain: registered.Draining, DrainedBy: registered.DrainAsked}
			if !changed {
				return nil, nil
			}
			return &registered, nil
		},
	})
	if err == nil {
		e.Dispatcher.RescanWorkers(r.InstanceID)
	}
	return txn.Answered(&answer, err)
}

// Serving are the namespaces that a worker of the caller serves which asks for these; none: all that the caller has. One that would
// serve none of them is refused: it would show as one of all.
func Serving(c txn.Caller, asked []string) ([]string, error) {
	if len(asked) == 0 {
		return c.Namespaces, nil
	}
	kept := txn.Narrow(asked, c.Namespaces)
	if len(kept) == 0 {
		return nil, base.Errorf(base.CodeNamespaceForbidden, "the caller has none of these namespaces").WithField("namespaces")
	}
	return kept, nil
}

// Drain makes an instance, or all instances of a worker, finish what they hold and take nothing more (S53).
func (e *Work) Drain(ctx context.Context, c txn.Caller, workerID, instanceID string, on bool) error {
	instances := []string{instanceID}
	if instanceID == "" {
		all, err := e.Instances(ctx)
		if err != nil {
			return err
		}
		instances = nil
		for _, w := range all {
			if w.WorkerID == workerID && reaches(c, &w, "drain") {
				instances = append(instances, w.InstanceID)
			}
		}
		if len(instances) == 0 {
			return base.Errorf(base.CodeWorkerNotRegistered, "no instance of worker %q", workerID)
		}
	}
	op, by := "drain", ""
	if !on {
		op = "undrain"
	}
	if c.OwnInstances {
		by = c.Registrant().Credential()
	}
	for _, instance := range instances {
		err := e.Do(ctx, &onWorker{
			op: op, caller: c, instanceID: instance, audited: true, args: on,
			act: func(_ *txn.Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
				if w == nil {
					return nil, txn.NotRegistered(instance)
				}
				if err := w.CheckUndrain(by); !on && err != nil {
					return nil, err
				}
				if !w.SetDrain(fx, on, by) {
					return nil, nil
				}
				return w, nil
			},
		})
		if err != nil {
			return err
		}
	}
	e.Dispatcher.RescanWorkers(instances...)
	return nil
}

// Leave is what an instance says that is about to stop: it takes nothing more until it registers again, and what its claims have taken
// by then is in their answers (S53).
func (e *Work) Leave(ctx context.Context, c txn.Caller, instanceID string) error {
	err := e.Do(ctx, &onWorker{
		op: "leave", caller: c, instanceID: instanceID,
		act: func(_ *txn.Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			if w == nil {
				return nil, txn.NotRegistered(instanceID)
			}
			if !w.Leave(fx) {
				return nil, nil
			}
			return w, nil
		},
	})
	if err == nil {
		e.Dispatcher.RescanWorkers(instanceID)
	}
	return err
}

// SignOff is MarkDead by the instance itself, which has stopped. Leases that it has left expire.
func (e *Work) SignOff(ctx context.Context, c txn.Caller, instanceID, reason string) error {
	return e.markGone(ctx, c, opSignOff, instanceID, reason, false)
}

// MarkDead says that an instance is gone. With takeLeases its leases lapse at once (S52).
func (e *Work) MarkDead(ctx context.Context, c txn.Caller, instanceID, reason string, takeLeases bool) error {
	return e.markGone(ctx, c, opMarkDead, instanceID, reason, takeLeases)
}

// markGone records that an instance is gone; op is the action of the audit log.
func (e *Work) markGone(ctx context.Context, c txn.Caller, op, instanceID, reason string, takeLeases bool) error {
	if err := base.CheckReason("reason", reason); err != nil {
		return err
	}
	var gone base.Time // leases that it had until then end, also if it registers again before they do
	err := e.Do(ctx, &onWorker{
		op: op, caller: c, instanceID: instanceID, reason: reason, audited: true, args: takeLeases, answer: &gone,
		act: func(_ *txn.Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			if w == nil {
				return nil, txn.NotRegistered(instanceID)
			}
			gone = fx.Now
			if !w.MarkDead(fx, reason) {
				return nil, nil
			}
			return w, nil
		},
	})
	if err != nil {
		return err
	}
	e.Dispatcher.RescanWorkers(instanceID)
	if !takeLeases {
		return nil
	}
	return e.lapseLeases(ctx, c, instanceID, gone)
}

// lapseLeases lets the leases of an instance lapse that is gone since then.
func (e *Work) lapseLeases(ctx context.Context, c txn.Caller, instanceID string, until base.Time) error {
	if err := e.Follower.ReachAll(ctx); err != nil {
		return err
	}
	views, err := e.WorkerLeases(ctx, c, instanceID)
	if err != nil {
		return err
	}
	cmds := make([]txn.Command, len(views))
	for i, view := range views {
		cmds[i] = &lapse{caller: c, id: view.Execution.ID.Given(), instanceID: instanceID, until: until}
	}
	for _, err := range e.DoAll(ctx, cmds) {
		if err != nil && base.CodeOf(err) != base.CodeExecutionNotFound {
			return err
		}
	}
	return nil
}

// lapse ends the lease that an instance which is gone has on an execution (S52).
type lapse struct {
	caller     txn.Caller
	id         base.GivenID
	instanceID string
	until      base.Time // what it acquired later is new, if it has registered again
}

func (l *lapse) Name() string { return opMarkDead }

func (l *lapse) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, l.id.UUID)
	w.Docs = append(w.Docs, txn.WorkerRef(l.instanceID))
}

func (l *lapse) Decide(u *txn.Tx) error {
	w, err := u.Worker(l.instanceID)
	if err != nil {
		return err
	}
	if l.caller.OwnInstances && (w == nil || !w.OwnedBy(l.caller.Registrant())) {
		return nil // it changed hands meanwhile
	}
	gone := w != nil && w.Marked()
	return u.On(l.caller, l.id, func(x *core.Execution, fx *core.Effects) (bool, error) {
		switch {
		case x.Lease == nil || x.Lease.InstanceID != l.instanceID || !gone && x.Lease.AcquiredAt > l.until:
			return false, nil
		case l.caller.OwnInstances && !w.Acquired(x.Lease.AcquiredAt):
			return false, nil // the lease belongs to the previous owner of the instance
		}
		return x.LapseNow(fx), nil
	})
}

// Workers lists instances by id (S54).
func (e *Work) Workers(ctx context.Context, c txn.Caller, q txn.WorkerQuery) ([]txn.WorkerView, string, error) {
	limit, err := core.PageLimit(q.Limit)
	if err != nil {
		return nil, "", err
	}
	if states := []string{"", "live", "draining", "dead", "all"}; !slices.Contains(states, q.State) {
		return nil, "", base.Invalid("state", "must be live, draining, dead or all")
	}
	if err := cmp.Or(core.CheckFilterText("lane", q.Lane), core.CheckFilterText("capability", q.Capability)); err != nil {
		return nil, "", err
	}
	scope := "workers\x00" + txn.Fingerprint(q.Namespace, q.Lane, q.Capability, q.State)
	after := ""
	if q.Cursor != "" {
		key, err := core.DecodeCursor(scope, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	all, err := e.Instances(ctx)
	if err != nil {
		return nil, "", err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return nil, "", err
	}
	var views []txn.WorkerView
	for _, w := range all {
		if w.InstanceID > after && keeps(&q, c, &txn.WorkerView{Worker: w, State: txn.WorkerState(&w, now)}) {
			views = append(views, workerView(c, &w, now))
		}
	}
	next := ""
	if len(views) > limit {
		views = views[:limit]
		if limit > 0 {
			next = core.EncodeCursor(scope, []byte(views[limit-1].Worker.InstanceID))
		}
	}
	return views, next, e.CountLeases(ctx, c, views)
}

func keeps(q *txn.WorkerQuery, c txn.Caller, v *txn.WorkerView) bool {
	w := &v.Worker
	switch q.State {
	case "", "live":
		if v.State == "dead" {
			return false
		}
	case "all":
	default:
		if v.State != q.State {
			return false
		}
	}
	return (q.Lane == "" || txn.Contains(w.Lanes, q.Lane)) && (q.Capability == "" || txn.Contains(w.Capabilities, q.Capability)) &&
		(q.Namespace == "" || len(w.Namespaces) == 0 || txn.Contains(w.Namespaces, q.Namespace)) && c.SeesWorker(w)
}

// CountLeases fills in how many leases each instance holds, of executions that the caller sees.
func (e *Work) CountLeases(ctx context.Context, c txn.Caller, views []txn.WorkerView) error {
	if len(views) == 0 {
		return nil
	}
	q := store.Query{Statuses: []core.Status{core.Running}, Namespaces: c.Namespaces}
	for i := range views {
		q.Instances = append(q.Instances, views[i].Worker.InstanceID)
	}
	groups, err := e.Store.CountBy(ctx, q, store.GroupBy{Field: store.ByInstance}, countLimit*len(views))
	if err != nil {
		return txn.PublicFault(err)
	}
	held := map[string]int{}
	for _, group := range groups {
		held[group.Text] += group.Rows
	}
	for i := range views {
		views[i].Leases = min(held[views[i].Worker.InstanceID], countLimit)
	}
	return nil
}

// Worker shows one instance.
func (e *Work) Worker(ctx context.Context, c txn.Caller, instanceID string) (txn.WorkerView, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{txn.WorkerRef(instanceID)}})
	if err != nil {
		return txn.WorkerView{}, txn.PublicFault(err)
	}
	var w *core.Worker
	if doc, ok := loaded.Docs[txn.WorkerRef(instanceID)]; ok {
		if w, err = txn.DecodeWorker(&doc); err != nil {
			return txn.WorkerView{}, err
		}
	}
	if w == nil || !reaches(c, w, "") {
		return txn.WorkerView{}, base.Errorf(base.CodeWorkerNotRegistered, "no instance %q", instanceID)
	}
	views := []txn.WorkerView{workerView(c, w, loaded.Now)}
	err = e.CountLeases(ctx, c, views)
	return views[0], err
}

// WorkerLeases lists the executions that an instance holds a lease on.
func (e *Work) WorkerLeases(ctx context.Context, c txn.Caller, instanceID string) ([]txn.View, error) {
	var all []txn.View
	r := txn.ListRequest{Filter: core.Filter{Status: []string{"running"}, InstanceID: []string{instanceID}}, Order: store.IDAsc, Limit: txn.Ptr(core.MaxPage)}
	for {
		page, err := e.List(ctx, c, r)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		r.Cursor = page.Next
	}
}

// sweepWorkers marks instances that have lapsed and removes those that lapsed long ago (S50, S54).
func (e *Work) sweepWorkers(ctx context.Context, t store.Timer) error {
	return e.OnDocs(ctx, txn.DocWorker, t.Texts, func(u *txn.Tx, doc *store.Doc) error {
		w, err := txn.DecodeWorker(doc)
		if err != nil {
			return err
		}
		fx := u.EngineEffects()
		switch {
		case w.Removable(u.Now):
			u.DropDoc(doc.DocRef)
		case !w.Live(u.Now) && w.Lapse(fx):
			u.PutWorker(w)
			u.Keep(fx)
		case doc.ExpiresAt <= u.Now:
			u.PutWorker(w)
		}
		return nil
	})
}
