package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func (w *world) register(r core.Registration) engine.RegisterAnswer {
	w.t.Helper()
	return must(w.e.Register(w.ctx(), client, r))(w.t)
}

// workers lists instance ids by query.
func (w *world) workers(q engine.WorkerQuery) []string {
	w.t.Helper()
	ids := []string{}
	for {
		views, next, err := w.e.Workers(w.ctx(), client, q)
		ok(w.t, err)
		for _, view := range views {
			ids = append(ids, view.Worker.InstanceID)
		}
		if q.Cursor = next; next == "" {
			return ids
		}
	}
}

func TestS49_SC10_an_instance_registers_and_refreshes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		r := core.Registration{WorkerID: "w", InstanceID: "i", Lanes: []string{"a"}, LivenessTTLMS: 9000, Capabilities: []string{"y", "x"}}
		first := w.register(r)
		same(t, "registered", first, engine.RegisterAnswer{Outcome: "registered", ExpiresAt: w.now() + 9000})
		w.turn(3000)
		r.Version, r.Lanes = "2", []string{"b"}
		same(t, "refreshed", w.register(r), engine.RegisterAnswer{Outcome: "refreshed", ExpiresAt: w.now() + 9000})
		view := must(w.e.Worker(w.ctx(), client, "i"))(t)
		same(t, "settings replaced, registered_at kept", [3]any{view.Worker.Version, view.Worker.Lanes[0], view.Worker.RegisteredAt},
			[3]any{"2", "b", w.now() - 3000})
		taken := r
		taken.WorkerID = "other"
		_, err := w.e.Register(w.ctx(), client, taken)
		refused(t, err, base.CodeInstanceIDTaken)
		w.turn(9000)
		same(t, "when it has lapsed", w.register(taken).Outcome, "registered")
		for _, bad := range []core.Registration{
			{WorkerID: "w"}, {InstanceID: "i"}, {WorkerID: "w", InstanceID: "i", LivenessTTLMS: 999}, {WorkerID: "w", InstanceID: "i", LivenessTTLMS: 3_600_001},
		} {
			_, err := w.e.Register(w.ctx(), client, bad)
			refused(t, err, base.CodeInvalidArgument)
		}
		_, err = w.e.Worker(w.ctx(), client, "missing")
		refused(t, err, base.CodeWorkerNotRegistered)
	})
}

func TestS49_an_instance_serves_no_namespace_that_its_key_lacks(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		key := engine.Caller{Principal: "k", Actor: "worker", Namespaces: []string{"a", "b"}}
		for instance, c := range map[string]struct{ asked, given []string }{
			"all": {nil, []string{"a", "b"}}, "one": {[]string{"b"}, []string{"b"}}, "fewer": {[]string{"a", "other"}, []string{"a"}},
		} {
			must(w.e.Register(w.ctx(), key, core.Registration{WorkerID: "w", InstanceID: instance, Namespaces: c.asked}))(t)
			same(t, instance, must(w.e.Worker(w.ctx(), client, instance))(t).Worker.Namespaces, c.given)
		}
		_, err := w.e.Register(w.ctx(), key, core.Registration{WorkerID: "w", InstanceID: "none", Namespaces: []string{"other"}})
		same(t, "field", refused(t, err, base.CodeNamespaceForbidden).Field, "namespaces")
	})
}

func TestI14_a_claim_for_namespaces_that_its_key_lacks_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		key := engine.Caller{Principal: "k", Actor: "worker", Namespaces: []string{"a"}}
		r := ask()
		r.Namespaces = []string{"b"}
		_, err := w.e.Claim(w.ctx(), key, r)
		same(t, "field", refused(t, err, base.CodeNamespaceForbidden).Field, "namespaces")
		same(t, "no instance is registered", w.workers(engine.WorkerQuery{State: "all"}), []string{})
		r.Namespaces = []string{"b", "a"}
		must(w.e.Claim(w.ctx(), key, r))(t)
		same(t, "serves", must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.Namespaces, []string{"a"})
	})
}

func TestSI13_an_instance_id_registered_at_two_servers_at_once_is_of_one_worker(t *testing.T) {
	t.Parallel()
	g := newGate("register")
	onShared(t, engine.Config{Probe: g}, func(t *testing.T, w *world) {
		w.cfg.Probe = nil
		other := w.another()
		first := make(chan error, 1)
		go func() {
			_, err := w.e.Register(w.ctx(), client, core.Registration{WorkerID: "one", InstanceID: "i"})
			first <- err
		}()
		<-g.reached
		must(other.Register(w.ctx(), client, core.Registration{WorkerID: "two", InstanceID: "i"}))(t)
		close(g.open)
		refused(t, <-first, base.CodeInstanceIDTaken)
		same(t, "of", must(w.e.Worker(w.ctx(), client, "i"))(t).Worker.WorkerID, "two")
	})
}

func TestS49_registrations_of_a_new_instance_in_one_batch_are_all_heeded(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				_, err := w.e.Register(w.ctx(), client, core.Registration{WorkerID: "w", InstanceID: "i", MaxConcurrent: n + 1})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		same(t, "registered", w.workers(engine.WorkerQuery{}), []string{"i"})
	})
}

func TestSI13_a_claim_under_the_instance_id_of_another_worker_is_refused_while_that_is_live(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.nothing()
		r := ask()
		r.WorkerID = "other"
		for _, wait := range []time.Duration{0, patience} {
			r.Wait = wait
			_, err := w.e.Claim(w.ctx(), client, r)
			same(t, "whose", refused(t, err, base.CodeInstanceIDTaken).Details["worker_id"], any("w"))
		}
		_, err := w.e.Reclaim(w.ctx(), client, given(task), engine.TargetedRequest{WorkerID: "other", InstanceID: "w1"})
		refused(t, err, base.CodeInstanceIDTaken)
		w.turn(30_000)
		r.Wait = 0
		must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "when it has lapsed", must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.WorkerID, "other")
	})
}

func TestS50_a_claim_registers_and_keeps_alive(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		r := ask()
		r.Capabilities = []string{"gpu"}
		w.take(r)
		view := must(w.e.Worker(w.ctx(), client, "w1"))(t)
		same(t, "registered with what the claim says", [3]any{view.State, view.Worker.WorkerID, view.Worker.Capabilities[0]}, [3]any{"live", "w", "gpu"})
		w.turn(5000)
		w.take(r)
		same(t, "last_seen is written at most once in ttl/3", must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.LastSeen, w.now()-5000)
		w.turn(6000)
		w.take(r)
		same(t, "seen again", must(w.e.Worker(w.ctx(), client, "w1"))(t).Worker.LastSeen, w.now())
		w.pass(30_000)
		same(t, "lapsed", must(w.e.Worker(w.ctx(), client, "w1"))(t).State, "dead")
		eventually(t, "worker.dead", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})) == 1 })
		same(t, "reason", data(t, w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})[0])["reason"], any("lapsed"))
		same(t, "live ones", w.workers(engine.WorkerQuery{}), []string{})
	})
}

func TestS50_a_claim_that_waits_keeps_its_instance_alive(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		r := ask()
		r.InstanceID, r.Wait = "waiting", time.Minute
		answer := w.claiming(r)
		w.seen("waiting")
		w.register(core.Registration{WorkerID: "w", InstanceID: "absent"})
		seen := w.now()
		for range 3 {
			eventually(t, "it is seen again", func() bool {
				if w.now() < seen+28_000 { // the rest of its time is for a machine that is slow
					w.turn(200)
				}
				at := must(w.e.Worker(w.ctx(), client, "waiting"))(t).Worker.LastSeen
				if at != seen && at < seen+10_000 {
					t.Fatalf("written after %d ms, which is more than once in ttl/3", at-seen)
				}
				seen, at = at, seen
				return seen != at
			})
		}
		eventually(t, "the other lapses", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})) == 1 })
		same(t, "live ones", w.workers(engine.WorkerQuery{}), []string{"waiting"})
		id := w.submit(core.Submission{})
		same(t, "and it still waits", given(w.only(answer)), id)
	})
}

func TestS50_a_claim_brings_a_lapsed_instance_back(t *testing.T) {
	t.Parallel()
	for what, wait := range map[string]time.Duration{"at once": 0, "waiting": patience} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				w.register(core.Registration{WorkerID: "w", InstanceID: "w1", Version: "2", LivenessTTLMS: 60_000})
				w.nothing() // the record as it is now is known
				w.pass(60_000)
				eventually(t, "it lapsed", func() bool { return len(w.events(engine.EventFilter{Kinds: []string{"worker.dead"}})) == 1 })
				r := ask()
				r.Wait = wait
				w.submit(core.Submission{})
				same(t, "served", len(w.take(r)), 1)
				view := must(w.e.Worker(w.ctx(), client, "w1"))(t)
				same(t, "live with its settings", [3]any{view.State, view.Worker.LastSeen, view.Worker.Version}, [3]any{"live", w.now(), "2"})
				same(t, "told", len(w.events(engine.EventFilter{Kinds: []string{"worker.registered"}})), 2)
			})
		})
	}
}

func TestS50_a_claim_brings_an_instance_back_whose_lapse_was_not_noticed(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.nothing()
		w.clock.TurnTo(w.clock.Now().Add(31 * time.Second))
		w.started(core.Submission{})
		same(t, "live", w.workers(engine.WorkerQuery{}), []string{"w1"})
	})
}

func TestS50_a_targeted_claim_keeps_its_instance_alive(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.delay(task, w.now()+1000)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w2"})
		w.pass(11_000)
		w.becomes(given(task), core.Ready)
		must(w.e.ClaimResumed(w.ctx(), client, given(task), worker2()))(t)
		same(t, "seen", must(w.e.Worker(w.ctx(), client, "w2"))(t).Worker.LastSeen, w.now())
	})
}

func TestS51_SC10_a_heartbeat_renews_a_thousand_leases_in_one_call(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(1000, core.Submission{})
		r := ask()
		r.Max = 1000
		tasks := w.take(r)
		w.turn(10_000)
		refs := make([]engine.LeaseRef, len(tasks))
		for i, task := range tasks {
			refs[i] = engine.LeaseRef{ID: given(task), Fence: fence(task)}
		}
		refs[500].Fence.Epoch++
		answer := must(w.e.Heartbeat(w.ctx(), client, "w1", refs))(t)
		same(t, "registered", [2]any{answer.Registered, answer.ExpiresAt}, [2]any{true, w.now() + 30_000})
		for i, item := range answer.Leases {
			if i == 500 {
				refused(t, item.Err, base.CodeStaleLease)
				continue
			}
			ok(t, item.Err)
			same(t, "expiry", item.Lease.ExpiresAt, w.now()+30_000)
		}
		unknown := must(w.e.Heartbeat(w.ctx(), client, "stranger", refs[:1]))(t)
		same(t, "unknown instance", [2]any{unknown.Registered, unknown.Leases[0].Err}, [2]any{false, error(nil)})
	})
}

func TestS52_SC10_mark_dead_takes_the_leases_or_leaves_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		refused(t, w.e.MarkDead(w.ctx(), operator, "missing", "", true), base.CodeWorkerNotRegistered)
		kept := w.started(policy(`{"lease_grace_ms":60000}`))
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "stopping", false))
		w.is(given(kept), core.Running, core.ReasonNone)
		w.renewed(kept)
		_, err := w.e.Claim(w.ctx(), client, ask())
		refused(t, err, base.CodeWorkerNotRegistered)
		same(t, "heartbeat", must(w.e.Heartbeat(w.ctx(), client, "w1", nil))(t).Registered, false)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		w.nothing() // it may claim again
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		x := w.is(given(kept), core.Ready, core.WaitingForWorker)
		same(t, "lapsed without grace", [2]any{x.Next, x.ReclaimCount}, [2]any{core.NextReclaim, 1})
		again := w.claimAs(engine.ClaimRequest{WorkerID: "w", InstanceID: "w2", Lanes: []string{"default"}})
		same(t, "cause", again.Execution.Attempt.Lineage.Cause, "worker_dead")
		events := w.events(engine.EventFilter{Kinds: []string{"lease.expired"}})
		same(t, "cause in the event", data(t, events[0])["cause"], any("worker_dead"))
	})
}

func TestS52_targeted_claims_of_a_marked_instance_are_refused_until_it_registers_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		again := engine.TargetedRequest{WorkerID: "w", InstanceID: "w1"}
		w.untouched(given(task), func() error {
			_, err := w.e.Reclaim(w.ctx(), client, given(task), again)
			return err
		}, base.CodeWorkerNotRegistered)
		w.untouched(given(task), func() error {
			_, err := w.e.ClaimResumed(w.ctx(), client, given(task), again)
			return err
		}, base.CodeWorkerNotRegistered)
		w.register(core.Registration{WorkerID: "w", InstanceID: "w1"})
		must(w.e.Reclaim(w.ctx(), client, given(task), again))(t)
	})
}

func TestS52_marking_dead_again_takes_what_an_operator_gave_the_instance_since(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // the clock is set back
		w.nothing()
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		for _, later := range []func(){func() { w.turn(1000) }, func() { w.setBack(500) }} {
			id := w.submit(core.Submission{})
			w.turn(10)
			must(w.e.OperatorClaim(w.ctx(), operator, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "w1"}))(t)
			later()
			ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
			w.is(id, core.Ready, core.WaitingForWorker)
			w.cancel(id)
		}
	})
}

// betweenCommitAndAnswer acts once, after a claim's transaction is committed and before its call is looked at again.
type betweenCommitAndAnswer struct{ act func() error }

// BeforeCommit lets everything pass.
func (*betweenCommitAndAnswer) BeforeCommit([]string) error { return nil }

// AfterCommit acts at the first claim.
func (b *betweenCommitAndAnswer) AfterCommit(commands []string) error {
	act := b.act
	if act == nil || commands[0] != "claim" {
		return nil
	}
	b.act = nil
	return act()
}

func TestS53_a_drain_while_the_claim_is_being_served_reaches_it(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		probe := &betweenCommitAndAnswer{}
		w.cfg.Probe = probe
		w.restart()
		probe.act = func() error { return w.e.Drain(w.ctx(), operator, "", "waiting", true) }
		r := ask()
		r.InstanceID, r.Wait = "waiting", patience
		got := must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "the waiting claim", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
	})
}

func TestS53_a_draining_instance_gets_nothing_and_is_told_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		answer := w.waiting(w.e, ask())
		ok(t, w.e.Drain(w.ctx(), operator, "", "waiting", true))
		got := <-answer
		same(t, "the waiting claim", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		w.submit(core.Submission{})
		r := ask()
		r.InstanceID = "waiting"
		got = must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "later claims", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		same(t, "heartbeats", must(w.e.Heartbeat(w.ctx(), client, "waiting", nil))(t).Drain, true)
		same(t, "state", must(w.e.Worker(w.ctx(), client, "waiting"))(t).State, "draining")
		ok(t, w.e.Drain(w.ctx(), operator, "w", "", false)) // all instances of the worker
		same(t, "off again", len(w.take(r)), 1)
		refused(t, w.e.Drain(w.ctx(), operator, "", "missing", true), base.CodeWorkerNotRegistered)
		refused(t, w.e.Drain(w.ctx(), operator, "missing", "", true), base.CodeWorkerNotRegistered)
		same(t, "events", len(w.events(engine.EventFilter{Kinds: []string{"worker.draining"}})), 2)
	})
}

func TestS53_an_instance_that_leaves_takes_nothing_until_it_registers_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		answer := w.waiting(w.e, ask())
		ok(t, w.e.Leave(w.ctx(), client, "waiting"))
		ok(t, w.e.Leave(w.ctx(), client, "waiting"))
		got := <-answer
		same(t, "the waiting claim", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		w.submit(core.Submission{})
		r := ask()
		r.InstanceID = "waiting"
		got = must(w.e.Claim(w.ctx(), client, r))(t)
		same(t, "later claims", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		same(t, "state", must(w.e.Worker(w.ctx(), client, "waiting"))(t).State, "draining")
		same(t, "drain", w.register(core.Registration{WorkerID: r.WorkerID, InstanceID: "waiting"}).Drain, false)
		same(t, "registered again", len(w.take(r)), 1)
		same(t, "events", len(w.events(engine.EventFilter{Kinds: []string{"worker.draining"}})), 1)
		refused(t, w.e.Leave(w.ctx(), client, "missing"), base.CodeWorkerNotRegistered)
	})
}

// lapsesOnLeaving lets much time pass between the commit with which an instance leaves and everything that follows from it.
type lapsesOnLeaving struct{ turn func(base.Millis) }

// BeforeCommit lets everything pass.
func (*lapsesOnLeaving) BeforeCommit([]string) error { return nil }

// AfterCommit turns the clock.
func (l *lapsesOnLeaving) AfterCommit(commands []string) error {
	if commands[0] == "leave" {
		l.turn(10 * 60_000)
	}
	return nil
}

// A claim that waited when its instance left says nothing about a return: it once took the drain back, and got new work.
func TestS53_a_claim_that_waits_does_not_bring_an_instance_back_that_has_left_and_lapsed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.cfg.Probe = &lapsesOnLeaving{w.turn}
		w.restart()
		answer := w.waiting(w.e, ask())
		ok(t, w.e.Leave(w.ctx(), client, "waiting"))
		got := <-answer
		same(t, "the waiting claim", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
		w.submit(core.Submission{})
		r := ask()
		r.InstanceID = "waiting"
		same(t, "a later claim, of an instance that is back", len(w.take(r)), 1)
	})
}

// An instance leaves at every moment of a pick that looks for its claims. Each claim is answered, and none brings its instance back with work that
// nothing will do.
func TestS53_instances_leave_while_their_claims_are_looked_at(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				r := ask()
				r.InstanceID, r.Wait = fmt.Sprintf("i-%d", i), patience
				for range 6 {
					w.register(core.Registration{WorkerID: r.WorkerID, InstanceID: r.InstanceID})
					answer := make(chan engine.ClaimAnswer, 1)
					go func() { answer <- must(w.e.Claim(w.ctx(), client, r))(t) }()
					ok(t, w.e.Leave(w.ctx(), client, r.InstanceID))
					got := <-answer
					same(t, "answer", [2]any{len(got.Tasks), got.Drain}, [2]any{0, true})
				}
			})
		}
		all.Wait()
	})
}

func TestS53_a_drain_in_one_process_ends_a_waiting_claim_in_another(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		answer := w.waiting(w.e, ask())
		ok(t, other.Drain(w.ctx(), operator, "", "waiting", true))
		same(t, "drain", (<-answer).Drain, true)
	})
}

func TestS54_SC10_workers_are_listed_by_every_filter_and_page_over_dying_rows(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.register(core.Registration{WorkerID: "w", InstanceID: "a", Lanes: []string{"l1"}, Capabilities: []string{"gpu"}, Namespaces: []string{"n1"}})
		w.register(core.Registration{WorkerID: "w", InstanceID: "b", Lanes: []string{"l2"}, LivenessTTLMS: 1000})
		w.register(core.Registration{WorkerID: "w", InstanceID: "c", Lanes: []string{"l1", "l2"}})
		w.register(core.Registration{WorkerID: "w", InstanceID: "d"})
		ok(t, w.e.Drain(w.ctx(), operator, "", "c", true))
		ok(t, w.e.MarkDead(w.ctx(), operator, "d", "", false))
		for name, c := range map[string]struct {
			q    engine.WorkerQuery
			want []string
		}{
			"live":       {engine.WorkerQuery{}, []string{"a", "b", "c"}},
			"draining":   {engine.WorkerQuery{State: "draining"}, []string{"c"}},
			"dead":       {engine.WorkerQuery{State: "dead"}, []string{"d"}},
			"all":        {engine.WorkerQuery{State: "all"}, []string{"a", "b", "c", "d"}},
			"lane":       {engine.WorkerQuery{Lane: "l1"}, []string{"a", "c"}},
			"capability": {engine.WorkerQuery{Capability: "gpu"}, []string{"a"}},
			"namespace":  {engine.WorkerQuery{Namespace: "n2"}, []string{"b", "c"}},
			"pages":      {engine.WorkerQuery{State: "all", Limit: ptr(1)}, []string{"a", "b", "c", "d"}},
		} {
			same(t, name, w.workers(c.q), c.want)
		}
		first, next, err := w.e.Workers(w.ctx(), client, engine.WorkerQuery{Limit: ptr(2)})
		ok(t, err)
		same(t, "first page", len(first), 2)
		w.turn(1000) // b, where the cursor stands, lapses
		same(t, "rest", w.workers(engine.WorkerQuery{Limit: ptr(2), Cursor: next}), []string{"c"})
		w.pass(base.Day + 60_000)
		eventually(t, "removed a day after they were last seen", func() bool { return len(w.workers(engine.WorkerQuery{State: "all"})) == 0 })
	})
}

func TestS54_a_state_that_no_worker_has_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, _, err := w.e.Workers(w.ctx(), operator, engine.WorkerQuery{State: "asleep"})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestS54_leases_of_an_instance_are_counted_and_listed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for i := range 3 {
			r := ask()
			r.InstanceID = fmt.Sprint("i", i%2)
			w.submit(core.Submission{})
			w.claimAs(r)
		}
		same(t, "listed", len(must(w.e.WorkerLeases(w.ctx(), client, "i0"))(t)), 2)
		same(t, "counted", must(w.e.Worker(w.ctx(), client, "i0"))(t).Leases, 2)
	})
}
