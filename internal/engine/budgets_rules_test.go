package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB8_B11_work_is_blocked_on_the_first_of_the_budgets_that_refuse_it(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		reset := func(name string) {
			t.Helper()
			must(w.e.ResetBudget(w.ctx(), operator, ofName(name), engine.AdminAction{}))(t)
		}
		w.create(tokens("top", 1))
		w.create(tokens("above", 1, below("top")))
		named := []engine.BudgetView{w.create(tokens("one", 1, below("above"))), w.create(tokens("two", 1))}
		slices.SortFunc(named, func(a, b engine.BudgetView) int { return slices.Compare(a.ID[:], b.ID[:]) })
		sub := &core.FlowSubmission{Nodes: []core.FlowNode{{
			Name: "x", Kind: "x", Tags: base.Tags{"team": "red"}, PolicyJSON: []byte(`{"budget_ids":["two","one"]}`),
		}}}
		flow := w.submitFlow(nodeOf(sub))
		inside := w.subflow(flow, "n")
		x := inside.Members["x"].Given()
		w.create(tokens("namespace", 1, covering(core.ScopeNamespace, "")))
		w.create(tokens("lane", 1, covering(core.ScopeLane, "default")))
		w.create(tokens("tag", 1, covering(core.ScopeTag, "team=red")))
		w.create(tokens("outer", 1, covering(core.ScopeFlow, flow.Flow.ID.String())))
		w.create(tokens("inner", 1, covering(core.ScopeFlow, inside.Flow.ID.String())))
		w.create(tokens("own", 1, covering(core.ScopeExecution, x.ID().String())))
		order := []string{named[0].Name, named[1].Name, "own", "inner", "outer", "tag", "lane", "namespace", "above", "top"}
		for _, name := range order {
			if name != "above" && name != "top" { // which are charged by what is below them
				must(w.charge(name, 1))(t)
			}
		}
		for i, name := range order {
			w.nothing()
			on := w.is(x, core.Blocked, core.WaitingForBudget).BlockedOn
			same(t, "refused by "+name+" first", on, core.BudgetKey(w.budget(name).ID))
			for _, other := range order {
				if blocked := w.budget(other).BlockedExecutions; (blocked == 1) != (other == order[i]) {
					t.Fatalf("%d are blocked on %s, while %s is the first", blocked, other, name)
				}
			}
			reset(name)
		}
		same(t, "nothing refuses it", given(w.claim()), x)
	})
}

func TestB25_an_ancestor_that_was_reset_loses_at_most_what_its_own_ledger_holds_now(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("top", 1000))
		w.create(tokens("above", 1000, below("top")))
		w.create(tokens("team", 1000, below("above")))
		a, b := w.started(costing(0, "team")), w.started(costing(0, "team"))
		used := func(team, above, top int64) {
			t.Helper()
			same(t, "used", [][3]int64{w.numbers("team"), w.numbers("above"), w.numbers("top")}, [][3]int64{{team, 0, 0}, {above, 0, 0}, {top, 0, 0}})
		}
		release := func(want map[string]int64) {
			t.Helper()
			same(t, "released", must(w.e.ReleaseBudget(w.ctx(), operator, ofName("team"), given(a), engine.AdminAction{}))(t), want)
		}
		w.report(a, 30)
		must(w.e.ResetBudget(w.ctx(), operator, ofName("above"), engine.AdminAction{}))(t)
		w.report(b, 20)
		used(50, 20, 50)
		release(map[string]int64{"tokens": 30})
		used(20, 20, 20) // of the epoch that goes on above, a had used nothing
		w.report(a, 30)
		must(w.e.ResetBudget(w.ctx(), operator, ofName("above"), engine.AdminAction{}))(t)
		w.report(a, 5)
		w.report(b, 10)
		used(65, 15, 65)
		release(map[string]int64{"tokens": 35})
		used(30, 10, 30)
		same(t, "its ledger", w.spend("above"), []int64{10})
		release(map[string]int64{})
		used(30, 10, 30)
	})
}

func TestB26_the_key_of_a_report_is_kept_as_long_as_the_execution(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 100))
		s := costing(0, "team")
		s.ID = &base.GivenID{UUID: base.UUID{0: 3, 15: 1}}
		w.report(w.started(s), 10, once("a"))
		for range 3 {
			w.pass(30 * base.Day)
			task := w.claim() // its lease has lapsed: another attempt asks
			again := w.report(task, 10, once("a"))
			same(t, "remembered", []any{again.Repeated, again.Outcome}, []any{true, core.UsageOK})
			_, err := w.reporting(task, 11, once("a"))
			refused(t, err, base.CodeIdempotencyConflict)
		}
		same(t, "booked once", w.numbers("team"), [3]int64{10, 0, 0})
		w.cancel(*s.ID)
		ok(t, w.e.Delete(w.ctx(), operator, *s.ID, engine.Operator{}))
		same(t, "another execution of that id", w.report(w.started(s), 10, once("a")).Repeated, false)
		same(t, "booked", w.numbers("team"), [3]int64{20, 0, 0})
	})
}

// holders claims so many executions whose leases are charged to the budget.
func (w *world) holders(n int, budget string) (tasks []engine.Task) {
	w.t.Helper()
	w.submitMany(n, costing(1, budget))
	r := ask()
	r.Max, r.TTL = n, base.Hour
	for len(tasks) < n {
		tasks = append(tasks, w.take(r)...)
	}
	return tasks
}

func TestB27_of_many_holders_256_are_cancelled_in_the_transaction_of_the_breach_and_the_rest_afterwards(t *testing.T) {
	t.Parallel()
	const all, atOnce = 600, 256
	for name, breach := range map[string]func(w *world, reporter engine.Task) (reporters int){
		"a charge": func(w *world, _ engine.Task) int {
			must(w.charge("team", 2000))(w.t)
			return 0
		},
		"a report": func(w *world, reporter engine.Task) int {
			same(w.t, "action", w.report(reporter, 2000).Action, core.ActionCancelled)
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBudgets(t, func(t *testing.T, w *world) {
				stop := &stopAfter{name: "cancel_for_budget"}
				w.cfg.Probe = stop
				w.restart()
				w.create(tokens("team", 1000, onHard(core.OnHardCancelRunning)))
				tasks := w.holders(all, "team")
				reporters := breach(w, tasks[all-1])
				eventually(t, "the rest was tried", func() bool { return stop.refused.Load() > 0 })
				cancelled := 0
				for _, task := range tasks {
					if w.get(given(task)).Status == core.Cancelled {
						cancelled++
					}
				}
				if cancelled < atOnce || cancelled > atOnce+reporters {
					t.Fatalf("%d were cancelled at once", cancelled)
				}
				same(t, "what they held is free", w.numbers("team"), [3]int64{0, int64(all - cancelled), 0})
				stop.open.Store(true)
				w.turning(250, "the rest is cancelled", func() bool { return w.budget("team").LiveHolds == 0 })
				for _, task := range tasks {
					x := w.is(given(task), core.Cancelled, core.BudgetExceeded)
					same(t, "by", x.Cancellation.Source, "budget")
				}
				same(t, "one breach", w.budget("team").Breaches, int64(1))
			})
		})
	}
}
