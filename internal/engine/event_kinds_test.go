package engine_test

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// everyEvent lets each kind of event happen, with each of its fields.
func (w *world) everyEvent() {
	w.gateEvents()
	w.leaseEvents()
	w.lateEvents()
	w.endEvents()
	w.waitEvents()
	w.childEvents()
	w.flowEvents()
	w.budgetEvents()
	w.sharedEvents()
	w.keyEvents()
	w.quarantineEvents()
}

// spending starts an execution and reports usage under its lease.
func (w *world) spending(s core.Submission) engine.Task {
	w.t.Helper()
	task := w.started(s)
	w.report(task, 3)
	return task
}

func (w *world) gateEvents() {
	w.quota("full", core.QuotaSettings{RateLimit: 1, WindowMS: base.Hour})
	held := w.submit(core.Submission{DelayMS: ptr(int64(1000)), PolicyJSON: []byte(`{"timeout_policy":{"execution_deadline_ms":3600000}}`)})
	w.hold(held)
	w.releaseHold(held) // it is delayed again
	w.turn(1000)
	w.becomes(held, core.Ready)
	w.cancel(held)
	w.complete(w.started(attached(use("full"))))
	waits := w.submit(attached(use("full")))
	w.nothing()
	w.is(waits, core.Blocked, core.WaitingForQuota)
	w.cancel(waits)

	id := w.submit(core.Submission{Tags: base.Tags{"a": "b"}})
	must(w.e.SetPriority(w.ctx(), operator, id, 7, engine.Operator{}))(w.t)
	must(w.e.SetTags(w.ctx(), operator, id, map[string]*string{"x": ptr("1")}, engine.Operator{}))(w.t)
	must(w.e.ReleaseHold(w.ctx(), operator, w.heldNow(id), engine.Operator{Reason: "go"}))(w.t)
	g := w.grantAs(ask())
	ok(w.t, w.e.ReturnGrant(w.ctx(), client, g.Key))
	w.complete(w.claim())
	must(w.e.Retain(w.ctx(), operator, id, w.now().Add(1000), engine.Operator{Reason: "evidence"}))(w.t)
	must(w.e.Unretain(w.ctx(), operator, id, engine.Operator{Reason: "done"}))(w.t)
	ok(w.t, w.delete(id))
}

// heldNow holds an execution.
func (w *world) heldNow(id base.GivenID) base.GivenID {
	w.hold(id)
	return id
}

func (w *world) leaseEvents() {
	retry := policy(`{"retry_policy":{"max_retries":3,"backoff":{"strategy":"fixed","delay_ms":1000}}}`)
	task := w.spending(retry)
	w.fail(task, "")
	w.pass(1000)
	w.becomes(given(task), core.Ready)
	w.delay(w.spendingOn(w.claim()), w.now().Add(1000))
	w.pass(1000)
	w.becomes(given(task), core.Ready)
	w.release(w.spendingOn(w.claim()))
	w.spendingOn(w.claim())
	must(w.e.Revoke(w.ctx(), operator, given(task), toSecond(), engine.Operator{Reason: "stuck"}))(w.t)
	w.cancel(given(task))

	w.register(core.Registration{WorkerID: "w", InstanceID: "w1", Lanes: []string{"default"}, Capabilities: []string{"x"}})
	lost := w.spending(core.Submission{})
	ok(w.t, w.e.Drain(w.ctx(), operator, "", "w1", true))
	ok(w.t, w.e.Drain(w.ctx(), operator, "", "w1", false))
	ok(w.t, w.e.MarkDead(w.ctx(), operator, "w1", "burnt", true))
	w.is(given(lost), core.Ready, core.WaitingForWorker)
	must(w.e.OperatorClaim(w.ctx(), operator, given(lost), engine.TargetedRequest{Force: true, Reason: "mine"}))(w.t)
	w.cancel(given(lost))
	w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
}

// spendingOn reports usage under the lease of a task.
func (w *world) spendingOn(task engine.Task) engine.Task {
	w.t.Helper()
	w.report(task, 3)
	return task
}

// lateEvents lets leases lapse whose holders end them all the same.
func (w *world) lateEvents() {
	for _, end := range []func(task engine.Task){
		func(task engine.Task) { w.delay(task, w.now().Add(base.Hour)) },
		func(task engine.Task) { w.fail(task, "") },
		func(task engine.Task) { w.suspend(task, atA, timingOut(base.Hour, core.BehaviorFail)) },
		func(task engine.Task) { w.complete(task) },
	} {
		task := w.spending(policy(`{"retry_policy":{"max_retries":3}}`))
		w.turn(30_000)
		w.becomes(given(task), core.Ready)
		end(task)
		if !w.get(given(task)).Status.Terminal() {
			w.cancel(given(task))
		}
	}
	parent := w.parent()
	w.spawn(parent, "late")
	w.turn(30_000)
	w.becomes(given(parent), core.Ready)
	w.parked(parent, within(base.Hour))
	w.end("late")
	w.cancel(given(parent))
}

func (w *world) endEvents() {
	failed := w.spending(policy(`{"retry_policy":{"max_retries":0}}`))
	w.fail(failed, "permanent")
	w.replay(given(failed))
	result := &core.Payload{Data: []byte("{}"), ContentType: "application/json"}
	task := w.spendingOn(w.claim())
	must(w.e.Complete(w.ctx(), client, given(task), fence(task), result))(w.t)
	w.bulk(engine.BulkRequest{Action: "cancel", Filter: kindFilter("none"), Reason: "clean"})
}

func (w *world) waitEvents() {
	task := w.started(core.Submission{})
	early := w.pending(task, "a")
	must(w.signal(early.ID, early.Token, "go"))(w.t)
	must(w.e.Suspend(w.ctx(), client, given(task), waitFor(task, goAtA, adopting(early.ID))))(w.t)
	later := w.pending(task, "later")
	must(w.e.ReadToken(w.ctx(), operator, given(task), later.ID))(w.t)
	w.report(task, 3)
	s := w.suspend(task, goAtA, timingOut(1000, core.BehaviorEscalate), func(c *core.SuspendCommand) { c.ResumeDelayMS = 1000 })
	at := s.Waitpoints[0].ID
	token := must(w.e.ReissueToken(w.ctx(), operator, at, engine.Operator{}))(w.t).Token
	ann, bob := w.link(at, "ann"), w.link(at, "bob")
	must(w.decideLink(ann, "approve"))(w.t)
	ok(w.t, w.e.RevokeLink(w.ctx(), operator, bob.ID, nil, engine.Operator{}))
	w.pass(1000)
	eventually(w.t, "it is escalated", func() bool { return w.count(given(task), "execution.escalated") == 1 })
	must(w.signal(at, token, "go"))(w.t)
	w.cancel(given(task))

	id, _ := w.asleep(atA)
	_, _, err := w.resume(id, core.ResumeCommand{})
	ok(w.t, err)
	w.cancel(id)
}

func (w *world) childEvents() {
	parent := w.parent()
	w.spawn(parent, "soon")
	w.report(parent, 3)
	w.parked(parent, within(base.Hour))
	w.end("soon")
	w.complete(w.claimKind("parent"))
}

func (w *world) flowEvents() {
	line := w.submitFlow(chain("a", "b"))
	w.fail(w.claimMember(line, "a"), "permanent")
	same(w.t, "state", w.flow(line).State, core.FlowFailed)
	ok(w.t, w.replayMember(line, "a", engine.ReplayRequest{}))
	w.run(line, "a")
	ok(w.t, w.deleteFlow(line, "erase"))
	slow := chain("d", "e")
	slow.Nodes[1].DelayMS = ptr(base.Hour)
	delayed := w.submitFlow(slow)
	w.run(delayed, "d") // its successor is free, and delayed
	w.cancelFlow(delayed, core.CancelAll, "no more")
	w.flowBecomes(delayed, core.FlowStopped)
	open := w.emptyFlow()
	w.extend(open, core.FlowExtension{Nodes: nodesNamed("c"), Seal: true})
	w.cancelFlow(open, core.CancelAll, "no more")
	w.flowBecomes(open, core.FlowStopped)
	w.ranLine(func(*core.FlowSubmission) {})
}

func (w *world) budgetEvents() {
	hourly := resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: w.now()})
	id, _ := w.asking(hourly, softly(1))
	payload := &core.Payload{ContentType: "application/json", Data: []byte(`{"raise":{"tokens":5}}`)}
	must(w.approve("ann", id, core.ApproveCommand{Name: "budget_approved", Payload: payload}))(w.t)
	task := w.claim()
	w.report(task, 2)
	w.report(task, 100, spent)
	w.cancel(id)
	must(w.e.ResetBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(w.t)
	must(w.e.UpdateBudget(w.ctx(), operator, ofName("team"), core.BudgetUpdate{
		Dimensions: map[string]core.DimensionUpdate{"tokens": {Hard: core.LimitChange{Set: true, Value: ptr(int64(200))}}},
	}, engine.AdminAction{}))(w.t)
	must(w.e.CloseBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(w.t)
	must(w.e.ReopenBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(w.t)
	w.deleteBudget("team")
}

func (w *world) sharedEvents() {
	w.lane("l", core.LaneSettings{MaxConcurrent: 3})
	must(w.e.SetLaneState(w.ctx(), operator, "l", core.LanePaused, engine.Operator{Reason: "quiet"}))(w.t)
	ok(w.t, w.deleteQuota("full", true))
}

func (w *world) keyEvents() {
	must(w.rotateKey("b", 2, 1000))(w.t)
	w.turn(base.Minute)
	eventually(w.t, "the first key is purged", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"key.purged"}})) == 1 })
	must(w.rotateKey("c", 3, base.Hour))(w.t)
	must(w.revokeKey("b", false))(w.t)
	must(w.revokeKey("c", true))(w.t)
	same(w.t, "seeded", must(w.seedKey("d", 4))(w.t).Kid, "d")
}

func (w *world) quarantineEvents() {
	bad := w.submit(core.Submission{Kind: "bad", DelayMS: ptr(int64(1000))})
	closeEngine(w.t, w.e)
	poison := &poisoned{Store: w.store, id: bad.UUID}
	w.store = poison
	w.e = w.openEngine(poison)
	w.turn(1000)
	eventually(w.t, "it is set aside", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"sweep.quarantined"}})) > 0 })
	poison.cure.Store(true)
}
