package engine_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// explain asks why an execution is not running.
func (w *world) explain(id base.GivenID) core.Explanation {
	w.t.Helper()
	return must(w.e.Explain(w.ctx(), client, id, 0))(w.t)
}

// blockers are the codes of an explanation.
func (w *world) blockers(id base.GivenID) (codes []string) {
	w.t.Helper()
	for _, b := range w.explain(id).Blockers {
		codes = append(codes, b.Code)
	}
	return codes
}

// staff registers the instance for which the claims of these tests are, so that it lives as long as they do.
func (w *world) staff(places int, capabilities ...string) {
	w.t.Helper()
	must(w.e.Register(w.ctx(), client, core.Registration{
		WorkerID: "w", InstanceID: "w1", Capabilities: capabilities, MaxConcurrent: places, LivenessTTLMS: base.Hour,
	}))(w.t)
}

// obstacle is a cause of S57: how it comes about and how it goes.
type obstacle struct {
	code string
	make func(w *world) base.GivenID
	end  func(w *world, id base.GivenID)
}

func obstacles() []obstacle {
	return []obstacle{
		{"suspended", func(w *world) base.GivenID {
			task := w.started(core.Submission{})
			w.suspend(task, operatorOnly)
			return given(task)
		}, func(w *world, id base.GivenID) {
			_, _, err := w.resume(id, core.ResumeCommand{})
			ok(w.t, err)
		}},
		{"delay", func(w *world) base.GivenID {
			return w.submit(core.Submission{DelayUntil: w.now().Add(1000)})
		}, func(w *world, _ base.GivenID) { w.turn(1000) }},
		{"operator_hold", func(w *world) base.GivenID {
			id := w.submit(core.Submission{})
			w.hold(id)
			return id
		}, func(w *world, id base.GivenID) { w.releaseHold(id) }},
		{"lane_state", func(w *world) base.GivenID {
			id := w.submit(core.Submission{})
			w.lane("default", core.LaneSettings{State: core.LanePaused})
			return id
		}, func(w *world, _ base.GivenID) { w.lane("default", core.LaneSettings{}) }},
		{"lane_cap", func(w *world) base.GivenID {
			w.lane("default", core.LaneSettings{MaxConcurrent: 1})
			w.started(core.Submission{})
			return w.submit(core.Submission{})
		}, func(w *world, _ base.GivenID) { w.lane("default", core.LaneSettings{MaxConcurrent: 2}) }},
		{"budget", func(w *world) base.GivenID {
			w.create(tokens("month", 10))
			w.started(costing(8, "month"))
			id := w.submit(costing(5, "month"))
			w.nothing()
			return id
		}, func(w *world, _ base.GivenID) {
			must(w.e.UpdateBudget(w.ctx(), operator, ofName("month"), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{
				"tokens": {Hard: core.LimitChange{Set: true, Value: ptr(int64(20))}},
			}}, engine.AdminAction{}))(w.t)
		}},
		{"rate", func(w *world) base.GivenID {
			w.quota("q", core.QuotaSettings{RateLimit: 1, WindowMS: 1000})
			w.complete(w.started(underQuota("")))
			id := w.submit(underQuota(""))
			w.nothing()
			return id
		}, func(w *world, _ base.GivenID) { w.turn(1000) }},
		{"concurrency", func(w *world) base.GivenID {
			w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
			w.started(underQuota(""))
			return w.submit(underQuota(""))
		}, func(w *world, _ base.GivenID) { w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2}) }},
		{"no_capable_worker", func(w *world) base.GivenID {
			return w.submit(policy(`{"routing_requirements":{"required_capabilities":["gpu"]}}`))
		}, func(w *world, _ base.GivenID) { w.staff(0, "gpu") }},
	}
}

func TestSI14_to_remove_what_is_listed_makes_the_execution_claimable(t *testing.T) {
	t.Parallel()
	for _, o := range obstacles() {
		t.Run(o.code, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				w.staff(0)
				id := o.make(w)
				same(t, "blockers", w.blockers(id), []string{o.code})
				before := w.get(id)
				w.explain(id)
				same(t, "to look changes nothing", w.get(id), before)
				o.end(w, id)
				same(t, "what is left", w.blockers(id), []string{"in_line"})
				request := ask()
				request.Capabilities = []string{"gpu"}
				same(t, "claimed", given(w.claimAs(request)), id)
				e := w.explain(id)
				same(t, "running", [3]any{e.Status, len(e.Blockers), e.Running != nil}, [3]any{core.Running, 0, true})
			})
		})
	}
}

func TestS57_without_a_live_worker_that_is_the_cause(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		same(t, "blockers", w.blockers(id), []string{"no_live_worker"})
		w.staff(0)
		same(t, "blockers", w.blockers(id), []string{"in_line"})
	})
}

func TestS57_a_grant_names_its_worker_and_its_end(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.staff(0)
		w.quota("q", core.QuotaSettings{RateLimit: 1, ConcurrencyLimit: 1})
		w.capped("default", 1) // whose one place is its own
		g := w.granted(underQuota(""))
		e := w.explain(g.ID.Given())
		same(t, "blockers", len(e.Blockers), 1)
		same(t, "code", e.Blockers[0].Code, "grant")
		same(t, "until", e.NextEligibleAt, g.ExpiresAt)
		w.turnTo(g.ExpiresAt)
		same(t, "blockers", w.blockers(g.ID.Given()), []string{"in_line"})
	})
}

func TestS57_workers_that_have_their_hands_full_are_told(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(1)
		task := w.started(core.Submission{})
		id := w.submit(core.Submission{})
		same(t, "blockers", w.blockers(id), []string{"workers_busy"})
		e := w.explain(id)
		same(t, "nearest", e.Workers.Nearest[0].Unmet, []string{core.UnmetNoPlace})
		w.complete(task)
		same(t, "blockers", w.blockers(id), []string{"in_line"})
	})
}

func TestSC15_numbers_holders_and_the_next_claim_agree(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(0)
		w.quota("q", core.QuotaSettings{RateLimit: 5, WindowMS: 60_000, ConcurrencyLimit: 1})
		holder := w.started(underQuota(""))
		id := w.submit(underQuota(""))
		w.nothing()
		e := w.explain(id)
		same(t, "as the claim said", e.Blockers[0].Key, w.get(id).BlockedOn)
		same(t, "since", e.Blockers[0].Since, w.get(id).StatusSince)
		var d struct {
			InUse   int      `json:"in_use"`
			Limit   int      `json:"limit"`
			Holders []string `json:"holders"`
		}
		ok(t, json.Unmarshal(e.Blockers[0].Data, &d))
		same(t, "numbers", [2]int{d.InUse, d.Limit}, [2]int{1, 1})
		same(t, "holders", d.Holders, []string{holder.Execution.ID.String()})
	})
}

func TestB41_SC15_a_budget_names_its_numbers_and_who_holds_them(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(0)
		w.create(tokens("month", 10, resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: w.now()})))
		holder := w.started(costing(8, "month"))
		id := w.submit(costing(5, "month"))
		e := w.explain(id)
		var d struct {
			Dimension string   `json:"dimension"`
			Need      int      `json:"need"`
			Available int      `json:"available"`
			Reserved  int      `json:"reserved"`
			Limit     int      `json:"limit"`
			Holders   []string `json:"holders"`
		}
		ok(t, json.Unmarshal(e.Blockers[0].Data, &d))
		same(t, "numbers", [5]any{d.Dimension, d.Need, d.Available, d.Reserved, d.Limit}, [5]any{"tokens", 5, 2, 8, 10})
		same(t, "holders", d.Holders, []string{holder.Execution.ID.String()})
		same(t, "a reset leaves what is reserved as it is", e.NextEligibleAt, 0)
		w.report(holder, 8)
		same(t, "eligible", w.explain(id).NextEligibleAt, w.budget("month").Budget.NextResetAt)
	})
}

func TestS57_the_line_counts_who_comes_before_in_the_lane_and_under_the_key(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(0)
		w.submitMany(3, core.Submission{Kind: "other"})
		w.turn(1)
		w.submitMany(2, core.Submission{Priority: 7})
		last := w.submit(core.Submission{})
		w.turn(1)
		w.submitMany(4, core.Submission{})
		e := w.explain(last)
		same(t, "position", *e.Position, core.Line{Ahead: 5})
		w.lane("default", core.LaneSettings{Fairness: core.FairnessByKey, FairnessWeights: map[string]int{"a": 3}})
		keyed := w.submit(policy(`{"fairness_key":"a"}`))
		e = w.explain(keyed)
		same(t, "under its key", *e.Position, core.Line{Ahead: 10, FairnessKey: "a", AheadOfKey: 0, Keys: 2, Weight: 3})
	})
}

func TestS57_the_line_of_a_lane_with_work_of_two_namespaces_tells_of_their_turns(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(0)
		w.submit(core.Submission{})
		w.turn(1)
		id := w.submit(core.Submission{})
		same(t, "one namespace", *w.explain(id).Position, core.Line{Ahead: 1})
		w.submitMany(5, core.Submission{Namespace: "greedy", Priority: 9})
		same(t, "two", *w.explain(id).Position, core.Line{Ahead: 6, FairnessKey: "default", AheadOfKey: 1, Keys: 2, Weight: 1})
	})
}

func TestS57_the_history_tells_what_happened_to_the_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{})
		w.release(task)
		w.submitMany(20, core.Submission{Kind: "noise"})
		w.hold(given(task))
		eventually(t, "the history", func() bool {
			var told []core.Status
			for _, change := range w.explain(given(task)).History {
				told = append(told, change.Status)
			}
			return len(told) == 4 && told[0] == core.Ready && told[1] == core.Running && told[2] == core.Ready && told[3] == core.Blocked
		})
	})
}

func TestU44_an_explanation_can_be_waited_for_until_it_changes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.staff(0)
		id := w.submit(core.Submission{})
		answers := make(chan core.Explanation, 1)
		go func() {
			e, err := w.e.Explain(w.ctx(), client, id, 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			answers <- e
		}()
		var changed core.Explanation
		held := false
		eventually(t, "a change", func() bool { // whenever the call has had its first look
			if held = !held; held {
				w.hold(id)
			} else {
				w.releaseHold(id)
			}
			select {
			case changed = <-answers:
				return true
			default:
				return false
			}
		})
		same(t, "answered", changed.ExecutionID, id.ID())
		refused(t, second(w.e.Explain(w.ctx(), client, id, -1)), base.CodeInvalidArgument)
		refused(t, second(w.e.Explain(w.ctx(), client, id, math.MaxInt64)), base.CodeInvalidArgument)
		refused(t, second(w.e.Explain(w.ctx(), client, base.GivenID{UUID: base.UUID{1}}, 0)), base.CodeExecutionNotFound)
	})
}

func TestI14_an_explanation_tells_a_tenant_nothing_of_others(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.started(underQuota(""))
		w.submitMany(3, core.Submission{})
		tenant := engine.Caller{Principal: "t", Actor: "client", Namespaces: []string{"acme"}}
		s := underQuota("")
		s.Namespace, s.Kind = "acme", "work"
		answer := must(w.e.Submit(w.ctx(), tenant, s))(t)
		e := must(w.e.Explain(w.ctx(), tenant, answer.ID.Given(), 0))(t)
		same(t, "ahead", e.Position.Ahead, 0)
		var d struct {
			Holders []string `json:"holders"`
		}
		for _, b := range e.Blockers {
			if b.Code == core.BlockerConcurrency {
				ok(t, json.Unmarshal(b.Data, &d))
			}
		}
		same(t, "holders", len(d.Holders), 0)
		refused(t, second(w.e.Explain(w.ctx(), tenant, w.submit(core.Submission{}), 0)), base.CodeExecutionNotFound)
	})
}
