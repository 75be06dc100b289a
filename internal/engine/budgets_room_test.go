package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestB11_what_is_blocked_for_another_reason_is_not_blocked_on_a_budget(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10))
		first := w.started(costing(8, "team"))
		held := w.submit(costing(5, "team"))
		w.hold(held)
		later := costing(5, "team")
		later.DelayUntil = w.now().Add(base.Day)
		delayed := w.submit(later)
		w.nothing()
		w.is(held, core.Blocked, core.PausedByOperator)
		w.is(delayed, core.Delayed, core.WaitingForDelay)
		w.complete(first)
		w.nothing()
	})
}

func TestB6_SI10_a_tag_that_is_taken_away_takes_its_budget_along(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("red", 10, covering(core.ScopeTag, "team=red")))
		red := costing(8)
		red.Tags = base.Tags{"team": "red"}
		w.started(red)
		waiting := w.submit(red)
		w.nothing()
		w.is(waiting, core.Blocked, core.WaitingForBudget)
		must(w.e.SetTags(w.ctx(), operator, waiting, map[string]*string{"other": ptr("x")}, engine.Operator{}))(t)
		w.is(waiting, core.Blocked, core.WaitingForBudget)
		must(w.e.SetTags(w.ctx(), operator, waiting, map[string]*string{"team": nil}, engine.Operator{}))(t)
		w.becomes(waiting, core.Ready)
		same(t, "taken", given(w.claim()), waiting)
	})
}

func TestS19_S46_a_refusal_that_holds_for_one_leaves_no_work_behind(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("red", 10, covering(core.ScopeTag, "team=red")))
		red := costing(8)
		red.Tags = base.Tags{"team": "red"}
		first := w.started(red)
		waiting := w.submitMany(3, red)
		r := ask()
		r.Max = 3
		same(t, "no room", len(w.take(r)), 0)
		for _, id := range waiting {
			w.is(id, core.Blocked, core.WaitingForBudget)
		}
		w.complete(first)
		for range waiting {
			w.complete(w.claim())
		}
	})
}

func TestS19_B34_a_refusal_does_not_speak_for_who_needs_less(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("outer", 20))
		w.create(tokens("inner", 10, below("outer")))
		lacks := func(id base.GivenID, budget string) {
			t.Helper()
			same(t, "blocked on", w.is(id, core.Blocked, core.WaitingForBudget).BlockedOn, core.BudgetKey(w.budget(budget).ID))
		}
		spender := w.started(costing(10, "inner"))
		large := w.submit(costing(8, "inner"))
		w.nothing()
		lacks(large, "inner")
		w.started(costing(9, "outer"))
		small := w.submit(costing(2, "outer"))
		w.nothing()
		lacks(small, "outer")
		w.complete(spender)
		must(w.charge("outer", 6))(t)
		same(t, "taken", given(w.claim()), small)
		lacks(large, "outer")
	})
}

func TestB33_B34_who_is_reached_no_more_does_not_wait_behind_who_is(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("outer", 10))
		w.create(tokens("red", 100, covering(core.ScopeTag, "team=red"), below("outer")))
		w.create(tokens("blue", 100, covering(core.ScopeTag, "team=blue"), below("outer")))
		team := func(name string) core.Submission {
			s := costing(6)
			s.Tags = base.Tags{"team": name}
			return s
		}
		w.started(team("red"))
		first := w.submit(team("red"))
		w.turn(1)
		second := w.submit(team("blue"))
		r := ask()
		r.Max = 2
		same(t, "no room", len(w.take(r)), 0)
		for _, id := range []base.GivenID{first, second} {
			same(t, "blocked on", w.is(id, core.Blocked, core.WaitingForBudget).BlockedOn, core.BudgetKey(w.budget("outer").ID))
		}
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("blue"), engine.AdminAction{}))
		w.becomes(second, core.Ready)
		same(t, "taken", given(w.claim()), second)
		w.is(first, core.Blocked, core.WaitingForBudget)
	})
}

func TestS48_who_goes_on_does_not_wait_for_a_rate_with_those_who_start(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.quota("mail", core.QuotaSettings{RateLimit: 1, WindowMS: base.Day})
		w.create(tokens("team", 10))
		both := policy(`{"quotas":[{"quota":"mail"}],"budget_ids":["team"],"estimate":{"tokens":8}}`)
		paused := w.started(both) // the one start of the day
		w.delay(paused, w.now().Add(5*base.Second))
		spender := w.started(costing(8, "team"))
		w.turn(5 * base.Second)
		w.becomes(given(paused), core.Ready)
		w.nothing()
		both.Priority = 9
		fresh := w.submit(both)
		w.nothing()
		for _, id := range []base.GivenID{given(paused), fresh} {
			w.is(id, core.Blocked, core.WaitingForBudget)
		}
		w.complete(spender)
		same(t, "taken", given(w.claim()), given(paused))
		w.blockedOn(fresh, "rate:mail")
	})
}

func TestB17_an_estimate_of_no_time_does_not_lift_the_limit(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		d := core.BudgetDefinition{Name: "time", OnHard: "fail", Dimensions: limits(map[string]int64{"wall_ms": 5000})}
		w.create(d)
		task := w.started(policy(`{"budget_ids":["time"],"estimate":{"wall_ms":0}}`))
		same(t, "held", w.budget("time").Numbers["wall_ms"].Reserved, 5000)
		w.turn(6000)
		w.becomes(given(task), core.Failed)
	})
}

func TestB34_BI8_no_execution_stays_blocked_while_there_is_room(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		const runs = 150
		w.create(tokens("team", 3))
		engines := []*engine.Engine{w.e, w.another1()}
		for range runs {
			w.submit(costing(1, "team"))
		}
		var ended atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 { // more than have room: some are always refused while others give room back
			e := engines[i%2]
			wg.Go(func() {
				for ended.Load() < runs {
					r := ask()
					r.InstanceID, r.Wait = fmt.Sprint("w", i), patience
					answer, err := e.Claim(w.ctx(), client, r)
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					if len(answer.Tasks) == 0 && ended.Load() < runs {
						t.Errorf("a claim found nothing after %d of %d", ended.Load(), runs)
						return
					}
					for _, task := range answer.Tasks {
						if _, err := e.Complete(w.ctx(), client, given(task), fence(task), nil); err != nil {
							t.Errorf("complete: %v", err)
							return
						}
						if ended.Add(1) == runs {
							w.submitMany(8, core.Submission{}) // calls that still wait are answered
						}
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestE25_L131_lists_know_of_changes_that_no_event_tells(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.quota("mail", core.QuotaSettings{ConcurrencyLimit: 1})
		w.create(tokens("team", 10))
		spender, sender := w.started(costing(8, "team")), w.started(attached(use("mail")))
		id := w.submit(policy(`{"quotas":[{"quota":"mail"}],"budget_ids":["team"],"estimate":{"tokens":4}}`))
		listed := func(r core.Reason) int {
			return len(w.walk(engine.ListRequest{Filter: core.Filter{Status: []string{"blocked"}, Reason: []string{r.String()}}}, func(int) {}))
		}
		w.nothing()
		same(t, "by the budget", []int{listed(core.WaitingForBudget), listed(core.WaitingForQuota)}, []int{1, 0})
		w.complete(spender)
		w.nothing()
		w.blockedOn(id, "slots:mail")
		same(t, "by the quota (S48)", []int{listed(core.WaitingForBudget), listed(core.WaitingForQuota)}, []int{0, 1})
		ok(t, w.deleteQuota("mail", true))
		w.becomes(id, core.Ready)
		same(t, "by nothing (S47)", []int{listed(core.WaitingForBudget), listed(core.WaitingForQuota)}, []int{0, 0})
		same(t, "one event", w.count(id, "execution.blocked"), 1)
		for _, ev := range w.events(engine.EventFilter{}) {
			if ev.Kind == core.SilentChange {
				t.Errorf("a reader sees %+v", ev)
			}
		}
		w.complete(sender)
	})
}

func TestB38_children_and_ancestors_reset_each_by_its_own_schedule(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		anchor := w.now()
		every := func(ms base.Millis) func(*core.BudgetDefinition) {
			return resetting(core.BudgetReset{Type: "interval", EveryMS: ms, AnchorAt: anchor})
		}
		w.create(tokens("year", 1000, every(3*base.Hour)))
		w.create(tokens("day", 100, every(base.Hour), below("year")))
		must(w.charge("day", 40))(t)
		w.turnTo(anchor.Add(base.Hour))
		must(w.charge("day", 30))(t)
		same(t, "the child began anew", [2][3]int64{w.numbers("day"), w.numbers("year")}, [2][3]int64{{30, 0, 0}, {70, 0, 0}})
		w.turnTo(anchor.Add(3 * base.Hour))
		must(w.charge("day", 5))(t)
		same(t, "both", [2][3]int64{w.numbers("day"), w.numbers("year")}, [2][3]int64{{5, 0, 0}, {5, 0, 0}})
		same(t, "epochs", [2]int64{w.budget("day").Epoch, w.budget("year").Epoch}, [2]int64{3, 2})
	})
}

func TestB39_a_budget_shows_its_numbers_of_one_moment(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 20, softly(5)))
		task := w.started(costing(8, "team"))
		w.report(task, 6)
		waiting := w.submit(costing(15, "team"))
		w.nothing()
		view := w.budget("team")
		tokens := view.Numbers["tokens"]
		same(t, "numbers", []int64{tokens.Used, tokens.Reserved, tokens.Overrun, *tokens.Hard, *tokens.EffectiveHard, *tokens.Soft, *tokens.Available}, []int64{6, 2, 0, 20, 20, 5, 12})
		same(t, "who", []any{view.BlockedExecutions, view.LiveHolds, len(view.Exhausted)}, []any{1, int64(1), 0})
		same(t, "breaches", []int64{view.Breaches, view.SoftBreaches}, []int64{0, 1})
		w.report(task, 14)
		view = w.budget("team")
		same(t, "exhausted", view.Exhausted, []string{"tokens"})
		refusal := w.report(task, 1)
		same(t, "refused", refusal.Outcome, core.UsageHardBreach)
		view = w.budget("team")
		same(t, "breach", []any{view.Breaches, view.LastBreach.Dimension, view.LastBreach.ExecutionID}, []any{int64(1), "tokens", task.Execution.ID})
		w.complete(task)
		w.cancel(waiting)
		same(t, "missing", []any{w.budget("team").BlockedExecutions, w.budget("team").LiveHolds}, []any{0, int64(0)})
	})
}
