package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// worker is the record of an instance, nil when it is not known.
func (u *Tx) worker(instanceID string) (*core.Worker, error) {
	return DecodeWorker(u.Doc(workerRef(instanceID)))
}

// DecodeWorker reads the record of a worker instance. Codes: corruption.
func DecodeWorker(doc *store.Doc) (*core.Worker, error) {
	if doc == nil {
		return nil, nil
	}
	var w core.Worker
	if err := json.Unmarshal(doc.Body, &w); err != nil {
		return nil, Corrupt("worker", err)
	}
	return &w, nil
}

// putWorker writes the record of an instance, which must be locked if there is one.
func (u *Tx) putWorker(w *core.Worker) { u.putOrAdd(u.workerDoc(w)) }

// workerDoc is the record of an instance. It arms the next look at it, unless one that comes no later is armed: the doc's
// ExpiresAt is the time of the armed look.
func (u *Tx) workerDoc(w *core.Worker) store.Doc {
	body, _ := json.Marshal(w)
	ref := workerRef(w.InstanceID)
	next := RoundUp(max(w.NextLook(), u.Now+1), base.Second)
	armed := next
	if doc := u.Doc(ref); doc != nil && doc.ExpiresAt > u.Now && doc.ExpiresAt <= next {
		armed = doc.ExpiresAt
	} else {
		timer := u.TimerAt(timerWorkers, next)
		timer.Texts = append(timer.Texts, w.InstanceID)
	}
	return store.Doc{DocRef: ref, Body: body, ExpiresAt: armed}
}

// onWorker is a command on the record of one instance.
type onWorker struct {
	op         string
	caller     Caller
	instanceID string
	reason     string
	audited    bool // it is an operator's act, which is recorded in the audit log (U131)
	args       any  // what a repeat under the caller's key is recognised by; nil: by nothing, it states the whole record (L117)
	answer     any  // where act leaves what a repeat needs, and where the repeat finds it; nil: nothing
	act        func(u *Tx, w *core.Worker, fx *core.Effects) (changed *core.Worker, err error)
}

func (o *onWorker) Name() string { return o.op }

func (o *onWorker) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, workerRef(o.instanceID))
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
	return RequestRef(o.caller, o.op, o.instanceID, o.caller.RequestKey), Fingerprint(o.args, o.reason)
}

func (o *onWorker) Decide(u *Tx) error {
	request, print := o.request()
	if repeated, err := u.Repeated(o.caller, request, print, o.answer); repeated || err != nil {
		return err
	}
	if err := o.change(u); err != nil {
		return err
	}
	u.RecordRequest(request, print, o.answer)
	return nil
}

func (o *onWorker) change(u *Tx) error {
	w, err := u.worker(o.instanceID)
	if err != nil {
		return err
	}
	if w != nil && !o.caller.reaches(w, o.op) {
		w = nil
	}
	var before core.AuditedWorker
	if w != nil {
		before = w.Audited()
	}
	fx := u.effects(o.caller)
	changed, err := o.act(u, w, fx)
	if err != nil || changed == nil {
		return err
	}
	u.putWorker(changed)
	u.keep(fx)
	if o.audited && o.caller.Audits() {
		u.Audit(o.caller, core.AuditRow{
			Namespace: ChainOf(changed.Namespaces), Action: o.op, Entity: "worker", EntityID: o.instanceID, Reason: o.reason,
		}, before, changed.Audited())
	}
	return nil
}

func (o *onWorker) Chains(u *Tx) []string {
	if !o.audited || !o.caller.Audits() {
		return nil
	}
	w, err := u.worker(o.instanceID)
	if w == nil || err != nil || !o.caller.reaches(w, o.op) {
		return nil
	}
	return []string{ChainOf(w.Namespaces)}
}

// reaches reports whether a command of the caller finds the instance. A registration finds every one, since ids are unique in the whole
// store; a sign of life counts only from the owner.
func (c Caller) reaches(w *core.Worker, op string) bool {
	switch {
	case op == opRegister:
		return true
	case op == opHeartbeat || c.OwnInstances:
		return w.OwnedBy(c.registrant())
	default:
		return c.SeesWorker(w)
	}
}

// registrant is the caller as the owner of instances.
func (c Caller) registrant() core.Registrant {
	return core.Registrant{Name: c.Principal, KeyID: c.KeyID, Namespaces: c.Namespaces}
}

// submitter returns the caller as a submitter.
func (c Caller) submitter() core.Submitter { return core.Submitter{Name: c.Principal, KeyID: c.KeyID} }

// SeesWorker reports whether an instance concerns the caller: it serves one of its namespaces (U121).
func (c Caller) SeesWorker(w *core.Worker) bool {
	return c.Namespaces == nil || len(w.Namespaces) == 0 || slices.ContainsFunc(w.Namespaces, c.Sees)
}

// claimant is the record of the instance that a claim names, nil when it is not known, if the claim may be served.
func (u *Tx) claimant(c Caller, workerID, instanceID string) (*core.Worker, error) {
	w, err := u.worker(instanceID)
	switch {
	case err != nil || w == nil:
		return nil, err
	case !c.SeesWorker(w) && !w.OwnedBy(c.registrant()):
		return nil, core.InstanceTaken()
	}
	return w, w.CheckClaim(u.Now, workerID, c.registrant())
}

// Target is claimant for a grant to an instance, which need not be the caller's.
func (u *Tx) Target(c Caller, workerID, instanceID string) (*core.Worker, error) {
	w, err := u.worker(instanceID)
	switch {
	case err != nil || w == nil:
		return nil, err
	case !c.SeesWorker(w):
		return nil, core.InstanceTaken()
	}
	return w, w.CheckTarget(u.Now, workerID)
}

// workerView is an instance as the caller may see it: without namespaces that are not the caller's.
func (c Caller) workerView(w *core.Worker, now base.Time) WorkerView {
	shown := *w
	if len(w.Namespaces) > 0 {
		shown.Namespaces = narrow(w.Namespaces, c.Namespaces)
	}
	return WorkerView{Worker: shown, State: workerState(w, now)}
}

// The commands on instances that are not an operator's.
const (
	opRegister  = "register"
	opHeartbeat = "heartbeat"
)

// Register makes an instance known (S49).
func (e *Engine) Register(ctx context.Context, c Caller, r core.Registration) (RegisterAnswer, error) {
	if err := r.Normalize(); err != nil {
		return RegisterAnswer{}, err
	}
	for _, lane := range r.Lanes { // the lane default, if the caller named none
		if err := c.worksIn(lane); err != nil {
			return RegisterAnswer{}, err
		}
	}
	var err error
	if r.Namespaces, err = c.serving(r.Namespaces); err != nil {
		return RegisterAnswer{}, err
	}
	var answer RegisterAnswer
	err = e.Do(ctx, &onWorker{
		op: opRegister, caller: c, instanceID: r.InstanceID,
		act: func(_ *Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			registered, outcome, changed, err := core.RegisterWorker(fx, w, r, c.registrant())
			if err != nil {
				return nil, err
			}
			answer = RegisterAnswer{Outcome: outcome, ExpiresAt: registered.ExpiresAt(), Drain: registered.Draining}
			if !changed {
				return nil, nil
			}
			return &registered, nil
		},
	})
	if err == nil {
		e.picker.recheck(r.InstanceID)
	}
	return answered(&answer, err)
}

// serving are the namespaces that a worker of the caller serves which asks for these; none: all that the caller has. One that would
// serve none of them is refused: it would show as one of all.
func (c Caller) serving(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return c.Namespaces, nil
	}
	kept := narrow(asked, c.Namespaces)
	if len(kept) == 0 {
		return nil, base.Errorf(base.CodeNamespaceForbidden, "the caller has none of these namespaces").WithField("namespaces")
	}
	return kept, nil
}

func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Drain makes an instance, or all instances of a worker, finish what they hold and take nothing more (S53).
func (e *Engine) Drain(ctx context.Context, c Caller, workerID, instanceID string, on bool) error {
	instances := []string{instanceID}
	if instanceID == "" {
		all, err := e.instances(ctx)
		if err != nil {
			return err
		}
		instances = nil
		for _, w := range all {
			if w.WorkerID == workerID && c.reaches(&w, "drain") {
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
		by = c.registrant().Credential()
	}
	for _, instance := range instances {
		err := e.Do(ctx, &onWorker{
			op: op, caller: c, instanceID: instance, audited: true, args: on,
			act: func(_ *Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
				if w == nil {
					return nil, notRegistered(instance)
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
	e.picker.recheck(instances...)
	return nil
}

// Leave is what an instance says that is about to stop: it takes nothing more until it registers again, and what its claims have taken
// by then is in their answers (S53).
func (e *Engine) Leave(ctx context.Context, c Caller, instanceID string) error {
	err := e.Do(ctx, &onWorker{
		op: "leave", caller: c, instanceID: instanceID,
		act: func(_ *Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			if w == nil {
				return nil, notRegistered(instanceID)
			}
			if !w.Leave(fx) {
				return nil, nil
			}
			return w, nil
		},
	})
	if err == nil {
		e.picker.recheck(instanceID)
	}
	return err
}

func notRegistered(instanceID string) error {
	return base.Errorf(base.CodeWorkerNotRegistered, "no instance %q", instanceID)
}

// MarkDead says that an instance is gone. With takeLeases its leases lapse at once (S52).
func (e *Engine) MarkDead(ctx context.Context, c Caller, instanceID, reason string, takeLeases bool) error {
	if err := base.CheckReason("reason", reason); err != nil {
		return err
	}
	var gone base.Time // leases that it had until then end, also if it registers again before they do
	err := e.Do(ctx, &onWorker{
		op: "mark_dead", caller: c, instanceID: instanceID, reason: reason, audited: true, args: takeLeases, answer: &gone,
		act: func(_ *Tx, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			if w == nil {
				return nil, notRegistered(instanceID)
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
	e.picker.recheck(instanceID)
	if !takeLeases {
		return nil
	}
	return e.lapseLeases(ctx, c, instanceID, gone)
}

// lapseLeases lets the leases of an instance lapse that is gone since then.
func (e *Engine) lapseLeases(ctx context.Context, c Caller, instanceID string, until base.Time) error {
	if err := e.Follower.ReachAll(ctx); err != nil {
		return err
	}
	views, err := e.WorkerLeases(ctx, c, instanceID)
	if err != nil {
		return err
	}
	cmds := make([]command, len(views))
	for i, view := range views {
		cmds[i] = &lapse{caller: c, id: view.Execution.ID.Given(), instanceID: instanceID, until: until}
	}
	for _, err := range e.doAll(ctx, cmds) {
		if err != nil && base.CodeOf(err) != base.CodeExecutionNotFound {
			return err
		}
	}
	return nil
}

// lapse ends the lease that an instance which is gone has on an execution (S52).
type lapse struct {
	caller     Caller
	id         base.GivenID
	instanceID string
	until      base.Time // what it acquired later is new, if it has registered again
}

func (l *lapse) Name() string { return "mark_dead" }

func (l *lapse) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, l.id.UUID)
	w.Docs = append(w.Docs, workerRef(l.instanceID))
}

func (l *lapse) Decide(u *Tx) error {
	w, err := u.worker(l.instanceID)
	if err != nil {
		return err
	}
	if l.caller.OwnInstances && (w == nil || !w.OwnedBy(l.caller.registrant())) {
		return nil // it changed hands meanwhile
	}
	gone := w != nil && w.Marked()
	return u.on(l.caller, l.id, func(x *core.Execution, fx *core.Effects) (bool, error) {
		switch {
		case x.Lease == nil || x.Lease.InstanceID != l.instanceID || !gone && x.Lease.AcquiredAt > l.until:
			return false, nil
		case l.caller.OwnInstances && !w.Acquired(x.Lease.AcquiredAt):
			return false, nil // the lease belongs to the previous owner of the instance
		}
		return x.LapseNow(fx), nil
	})
}

// instances reads the records of all instances.
func (e *Engine) instances(ctx context.Context) ([]core.Worker, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: DocWorker}}})
	if err != nil {
		return nil, PublicFault(err)
	}
	all := make([]core.Worker, 0, len(loaded.Scanned[0]))
	for i := range loaded.Scanned[0] {
		w, err := DecodeWorker(&loaded.Scanned[0][i])
		if err != nil {
			return nil, err
		}
		all = append(all, *w)
	}
	return all, nil
}

// Workers lists instances by id (S54).
func (e *Engine) Workers(ctx context.Context, c Caller, q WorkerQuery) ([]WorkerView, string, error) {
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
	scope := "workers\x00" + Fingerprint(q.Namespace, q.Lane, q.Capability, q.State)
	after := ""
	if q.Cursor != "" {
		key, err := core.DecodeCursor(scope, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	all, err := e.instances(ctx)
	if err != nil {
		return nil, "", err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return nil, "", err
	}
	var views []WorkerView
	for _, w := range all {
		if w.InstanceID > after && q.keeps(c, &WorkerView{Worker: w, State: workerState(&w, now)}) {
			views = append(views, c.workerView(&w, now))
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

func workerState(w *core.Worker, now base.Time) string {
	switch {
	case !w.Live(now):
		return "dead"
	case w.Draining:
		return "draining"
	default:
		return "live"
	}
}

func (q *WorkerQuery) keeps(c Caller, v *WorkerView) bool {
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
	return (q.Lane == "" || contains(w.Lanes, q.Lane)) && (q.Capability == "" || contains(w.Capabilities, q.Capability)) &&
		(q.Namespace == "" || len(w.Namespaces) == 0 || contains(w.Namespaces, q.Namespace)) && c.SeesWorker(w)
}

// CountLeases fills in how many leases each instance holds, of executions that the caller sees.
func (e *Engine) CountLeases(ctx context.Context, c Caller, views []WorkerView) error {
	if len(views) == 0 {
		return nil
	}
	q := store.Query{Statuses: []core.Status{core.Running}, Namespaces: c.Namespaces}
	for i := range views {
		q.Instances = append(q.Instances, views[i].Worker.InstanceID)
	}
	groups, err := e.Store.CountBy(ctx, q, store.GroupBy{Field: store.ByInstance}, countLimit*len(views))
	if err != nil {
		return PublicFault(err)
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
func (e *Engine) Worker(ctx context.Context, c Caller, instanceID string) (WorkerView, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{workerRef(instanceID)}})
	if err != nil {
		return WorkerView{}, PublicFault(err)
	}
	var w *core.Worker
	if doc, ok := loaded.Docs[workerRef(instanceID)]; ok {
		if w, err = DecodeWorker(&doc); err != nil {
			return WorkerView{}, err
		}
	}
	if w == nil || !c.reaches(w, "") {
		return WorkerView{}, base.Errorf(base.CodeWorkerNotRegistered, "no instance %q", instanceID)
	}
	views := []WorkerView{c.workerView(w, loaded.Now)}
	err = e.CountLeases(ctx, c, views)
	return views[0], err
}

// WorkerLeases lists the executions that an instance holds a lease on.
func (e *Engine) WorkerLeases(ctx context.Context, c Caller, instanceID string) ([]View, error) {
	var all []View
	r := ListRequest{Filter: core.Filter{Status: []string{"running"}, InstanceID: []string{instanceID}}, Order: store.IDAsc, Limit: Ptr(core.MaxPage)}
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

// Ptr returns a pointer to a value.
func Ptr[T any](v T) *T { return &v }
