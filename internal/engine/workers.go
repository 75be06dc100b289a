package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// worker is the record of an instance, nil when it is not known.
func (u *unit) worker(instanceID string) (*core.Worker, error) {
	return decodeWorker(u.doc(workerRef(instanceID)))
}

func decodeWorker(doc *store.Doc) (*core.Worker, error) {
	if doc == nil {
		return nil, nil
	}
	var w core.Worker
	if err := json.Unmarshal(doc.Body, &w); err != nil {
		return nil, corrupt("worker", err)
	}
	return &w, nil
}

// putWorker writes the record of an instance, which must be locked.
func (u *unit) putWorker(w *core.Worker) { u.putDoc(u.workerDoc(w)) }

// addWorker writes the record of an instance that has none. If somebody else was faster it is Conflict, and not his that is lost.
func (u *unit) addWorker(w *core.Worker) {
	doc := u.workerDoc(w)
	setIn(&u.docs, doc.DocRef, &doc)
	u.ch.NewDocs = append(u.ch.NewDocs, doc)
}

// workerDoc is the record of an instance. It arms the next look at it, unless one that comes no later is armed: the doc's
// ExpiresAt is the time of the armed look.
func (u *unit) workerDoc(w *core.Worker) store.Doc {
	body, _ := json.Marshal(w)
	ref := workerRef(w.InstanceID)
	next := roundUp(max(w.NextLook(), u.now+1), core.Second)
	armed := next
	if doc := u.doc(ref); doc != nil && doc.ExpiresAt > u.now && doc.ExpiresAt <= next {
		armed = doc.ExpiresAt
	} else {
		timer := u.timerAt(timerWorkers, next)
		timer.Texts = append(timer.Texts, w.InstanceID)
	}
	return store.Doc{DocRef: ref, Body: body, ExpiresAt: armed}
}

func newWorker(fx *core.Effects, r core.Registration) (core.Worker, error) {
	if err := r.Normalize(); err != nil {
		return core.Worker{}, err
	}
	w, _, _, err := core.RegisterWorker(fx, nil, r)
	return w, err
}

// onWorker is a command on the record of one instance.
type onWorker struct {
	op         string
	caller     Caller
	instanceID string
	act        func(u *unit, w *core.Worker, fx *core.Effects) (changed *core.Worker, err error)
}

func (o *onWorker) name() string { return o.op }

func (o *onWorker) want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, workerRef(o.instanceID))
	w.LockDocs = true
}

func (o *onWorker) decide(u *unit) error {
	w, err := u.worker(o.instanceID)
	if err != nil {
		return err
	}
	fx := u.effects(o.caller)
	changed, err := o.act(u, w, fx)
	if err != nil || changed == nil {
		return err
	}
	u.putWorker(changed)
	u.keep(fx)
	return nil
}

// Register makes an instance known (S49).
func (e *Engine) Register(ctx context.Context, c Caller, r core.Registration) (RegisterAnswer, error) {
	if err := r.Normalize(); err != nil {
		return RegisterAnswer{}, err
	}
	r.Namespaces = narrow(orNil(r.Namespaces), c.Namespaces)
	var answer RegisterAnswer
	err := e.do(ctx, &onWorker{
		op: "register", caller: c, instanceID: r.InstanceID,
		act: func(_ *unit, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			registered, outcome, changed, err := core.RegisterWorker(fx, w, r)
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
	return answer, err
}

func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Drain tells an instance, or all instances of a worker, to finish what they hold and take nothing more (S53).
func (e *Engine) Drain(ctx context.Context, c Caller, workerID, instanceID string, on bool) error {
	instances := []string{instanceID}
	if instanceID == "" {
		all, err := e.instances(ctx)
		if err != nil {
			return err
		}
		instances = nil
		for _, w := range all {
			if w.WorkerID == workerID {
				instances = append(instances, w.InstanceID)
			}
		}
		if len(instances) == 0 {
			return core.Errorf(core.CodeWorkerNotRegistered, "no instance of worker %q", workerID)
		}
	}
	for _, instance := range instances {
		err := e.do(ctx, &onWorker{
			op: "drain", caller: c, instanceID: instance,
			act: func(_ *unit, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
				if w == nil {
					return nil, core.Errorf(core.CodeWorkerNotRegistered, "no instance %q", instance)
				}
				if !w.SetDrain(fx, on) {
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

// MarkDead says that an instance is gone. With takeLeases its leases lapse at once (S52).
func (e *Engine) MarkDead(ctx context.Context, c Caller, instanceID, reason string, takeLeases bool) error {
	if err := core.CheckReason("reason", reason); err != nil {
		return err
	}
	err := e.do(ctx, &onWorker{
		op: "mark_dead", caller: c, instanceID: instanceID,
		act: func(_ *unit, w *core.Worker, fx *core.Effects) (*core.Worker, error) {
			if w == nil {
				return nil, core.Errorf(core.CodeWorkerNotRegistered, "no instance %q", instanceID)
			}
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
	return e.lapseLeases(ctx, c, instanceID)
}

// lapseLeases lets every lease of an instance lapse.
func (e *Engine) lapseLeases(ctx context.Context, c Caller, instanceID string) error {
	if err := e.follower.reachAll(ctx); err != nil {
		return err
	}
	views, err := e.WorkerLeases(ctx, c, instanceID)
	if err != nil {
		return err
	}
	cmds := make([]command, len(views))
	for i, view := range views {
		cmds[i] = &onOne{
			op: "mark_dead", caller: c, id: view.Execution.ID.Given(),
			act: func(_ *unit, x *core.Execution, fx *core.Effects, _ *core.LeaseRecord) (bool, error) {
				if x.Lease == nil || x.Lease.InstanceID != instanceID {
					return false, nil
				}
				return x.LapseNow(fx), nil
			},
		}
	}
	for _, err := range e.doAll(ctx, cmds) {
		if err != nil && core.CodeOf(err) != core.CodeExecutionNotFound {
			return err
		}
	}
	return nil
}

// instances reads the records of all instances.
func (e *Engine) instances(ctx context.Context) ([]core.Worker, error) {
	loaded, err := e.store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docWorker}}})
	if err != nil {
		return nil, publicFault(err)
	}
	all := make([]core.Worker, 0, len(loaded.Scanned[0]))
	for i := range loaded.Scanned[0] {
		w, err := decodeWorker(&loaded.Scanned[0][i])
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
	scope := "workers\x00" + fingerprint(q.Namespace, q.Lane, q.Capability, q.State)
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
		if view := (WorkerView{Worker: w, State: workerState(&w, now)}); w.InstanceID > after && q.keeps(c, &view) {
			views = append(views, view)
		}
	}
	next := ""
	if len(views) > limit {
		views = views[:limit]
		if limit > 0 {
			next = core.EncodeCursor(scope, []byte(views[limit-1].Worker.InstanceID))
		}
	}
	return views, next, e.countLeases(ctx, views)
}

func workerState(w *core.Worker, now core.Time) string {
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
		(q.Namespace == "" || len(w.Namespaces) == 0 || contains(w.Namespaces, q.Namespace)) &&
		(c.Namespaces == nil || len(w.Namespaces) == 0 || slices.ContainsFunc(w.Namespaces, c.sees))
}

// countLeases fills in how many leases each instance holds.
func (e *Engine) countLeases(ctx context.Context, views []WorkerView) error {
	for i := range views {
		n, err := e.store.Count(ctx, store.Query{Statuses: []core.Status{core.Running}, Instances: []string{views[i].Worker.InstanceID}}, countLimit)
		if err != nil {
			return publicFault(err)
		}
		views[i].Leases = n
	}
	return nil
}

// Worker shows one instance.
func (e *Engine) Worker(ctx context.Context, _ Caller, instanceID string) (WorkerView, error) {
	loaded, err := e.store.Read(ctx, store.Want{Docs: []store.DocRef{workerRef(instanceID)}})
	if err != nil {
		return WorkerView{}, publicFault(err)
	}
	doc, ok := loaded.Docs[workerRef(instanceID)]
	if !ok {
		return WorkerView{}, core.Errorf(core.CodeWorkerNotRegistered, "no instance %q", instanceID)
	}
	w, err := decodeWorker(&doc)
	if err != nil {
		return WorkerView{}, err
	}
	views := []WorkerView{{Worker: *w, State: workerState(w, loaded.Now)}}
	return views[0], e.countLeases(ctx, views)
}

// WorkerLeases lists the executions that an instance holds a lease on.
func (e *Engine) WorkerLeases(ctx context.Context, c Caller, instanceID string) ([]View, error) {
	var all []View
	r := ListRequest{Filter: core.Filter{Status: []string{"running"}, InstanceID: []string{instanceID}}, Order: store.IDAsc, Limit: ptr(core.MaxPage)}
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

func ptr[T any](v T) *T { return &v }
