package engine_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestB6_every_level_and_scope_counts(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("all", 100, covering(core.ScopeNamespace, "")))
		w.create(tokens("lane", 90, covering(core.ScopeLane, "default")))
		w.create(tokens("tagged", 80, covering(core.ScopeTag, "team=red")))
		w.create(tokens("above", 70))
		w.create(tokens("named", 60, below("above")))
		s := costing(10, "named")
		s.Tags = base.Tags{"team": "red"}
		task := w.started(s)
		w.create(tokens("own", 50, covering(core.ScopeExecution, given(task).UUID.String())))
		var order []string
		applicable := must(w.e.ApplicableBudgets(w.ctx(), client, given(task)))(t)
		for _, b := range applicable.Budgets {
			order = append(order, b.Name)
		}
		same(t, "B8", order, []string{"named", "own", "tagged", "lane", "all", "above"})
		for _, name := range []string{"all", "lane", "tagged", "above", "named"} {
			same(t, name, w.numbers(name), [3]int64{0, 10, 0})
		}
		same(t, "B7: one that came later", w.numbers("own"), [3]int64{0, 0, 0})
		w.release(task)
		task = w.claim()
		same(t, "counts from the next claim", w.numbers("own"), [3]int64{0, 10, 0})
		same(t, "the tightest", w.report(task, 51).Budget, w.budget("own").ID)
		w.complete(task)
	})
}

func TestB9_B11_work_waits_until_there_is_room(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 10))
		first := w.started(costing(8, "team"))
		waiting := w.submit(costing(5, "team"))
		w.turn(1) // so that it comes first
		small := w.submit(costing(2, "team"))
		same(t, "the next candidate is taken", w.claim().Execution.ID.UUID, small.UUID)
		x := w.is(waiting, core.Blocked, core.WaitingForBudget)
		same(t, "blocked on", x.BlockedOn, core.BudgetKey(w.budget("team").ID))
		var detail struct {
			Dimension       string
			Need, Available int64
		}
		ok(t, json.Unmarshal(x.BlockingDetail, &detail))
		same(t, "detail", [3]any{detail.Dimension, detail.Need, detail.Available}, [3]any{"tokens", int64(5), int64(2)})
		same(t, "told", w.count(waiting, "execution.blocked"), 1)
		same(t, "shown", w.budget("team").BlockedExecutions, 1)
		r := ask()
		r.Wait = patience
		answer := w.claiming(r)
		w.complete(first)
		same(t, "B33: room wakes the claim", w.only(answer).Execution.ID.UUID, waiting.UUID)
		same(t, "nothing waits", w.budget("team").BlockedExecutions, 0)
	})
}

func TestB33_every_return_of_room_wakes_claims(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		raised := int64(10)
		causes := map[string]func(name string, holder base.GivenID) error{
			"release_budget": func(name string, holder base.GivenID) error {
				_, err := w.e.ReleaseBudget(w.ctx(), operator, ofName(name), holder, engine.AdminAction{})
				return err
			},
			"reset": func(name string, _ base.GivenID) error {
				_, err := w.e.ResetBudget(w.ctx(), operator, ofName(name), engine.AdminAction{})
				return err
			},
			"raise": func(name string, _ base.GivenID) error {
				_, err := w.e.UpdateBudget(w.ctx(), operator, ofName(name), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{
					"tokens": {Hard: core.LimitChange{Set: true, Value: &raised}},
				}}, engine.AdminAction{})
				return err
			},
			"remove": func(name string, _ base.GivenID) error {
				_, err := w.e.UpdateBudget(w.ctx(), operator, ofName(name), core.BudgetUpdate{Dimensions: map[string]core.DimensionUpdate{
					"tokens": {Hard: core.LimitChange{Set: true}},
				}}, engine.AdminAction{})
				return err
			},
			"delete": func(name string, _ base.GivenID) error {
				return w.e.DeleteBudget(w.ctx(), operator, ofName(name), engine.AdminAction{})
			},
		}
		for name, cause := range causes {
			w.create(tokens(name, 5, covering(core.ScopeTag, "cause="+name)))
			tagged := core.Submission{Tags: base.Tags{"cause": name}}
			task := w.started(tagged)
			w.report(task, 5)
			w.complete(task)
			waiting := w.submit(tagged)
			w.nothing()
			w.is(waiting, core.Blocked, core.WaitingForBudget)
			r := ask()
			r.Wait = patience
			answer := w.claiming(r)
			ok(t, cause(name, given(task)))
			got := w.only(answer)
			same(t, name, got.Execution.ID.UUID, waiting.UUID)
			w.complete(got)
		}
	})
}

func TestB3_a_budget_that_cannot_be_read_blocks(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		made := w.create(tokens("team", 10))
		w.unaudited = true
		bad, other := w.submit(costing(1, "team")), core.Submission{Kind: "other"}
		ref := store.DocRef{Kind: 21, Key: made.ID.String()}
		was := must(w.store.Read(w.ctx(), store.Want{Docs: []store.DocRef{ref}}))(t).Docs[ref]
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: ref, Body: []byte(`{"id":`)}}})
		fine := w.submit(other)
		free := w.claim()
		same(t, "others are not affected", free.Execution.ID.UUID, fine.UUID)
		w.complete(free)
		w.nothing()
		w.is(bad, core.Blocked, core.WaitingForBudget)
		_, err := w.charge("team", 1)
		refused(t, err, base.CodeCorruption)
		w.tamper(store.Changes{PutDocs: []store.Doc{was}})
		w.pass(base.Minute)
		same(t, "S45: tried again", w.claim().Execution.ID.UUID, bad.UUID)
	})
}

func TestB10_a_thousand_attempts_on_two_engines_never_pass_the_limit(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		const all, hard, each = 1000, 700, 7
		w.create(tokens("team", hard))
		w.submitMany(all, costing(each, "team"))
		engines := []*engine.Engine{w.e, w.another1()}
		var taken atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r := ask()
				r.InstanceID, r.Max = fmt.Sprintf("w%d", i), 13
				for {
					answer, err := engines[i%2].Claim(w.ctx(), client, r)
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					if len(answer.Tasks) == 0 {
						return
					}
					taken.Add(int64(len(answer.Tasks)))
				}
			})
		}
		wg.Wait()
		same(t, "taken", taken.Load(), int64(hard/each))
		n := w.budget("team")
		same(t, "BI1", []int64{n.Numbers["tokens"].Used, n.Numbers["tokens"].Reserved, n.LiveHolds}, []int64{0, hard, hard / each})
	})
}

func TestBI1_reports_and_charges_from_everywhere_never_pass_the_limit(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		const hard = 500
		w.create(tokens("team", hard))
		engines := []*engine.Engine{w.e, w.another1()}
		task := w.started(costing(100, "team"))
		var booked atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				out, err := engines[i%2].ReportUsage(w.ctx(), client, given(task), engine.UsageRequest{Fence: fence(task), Usage: map[string]int64{"tokens": 4}})
				if err == nil && out.Applied {
					booked.Add(4)
				}
			})
			wg.Go(func() {
				out, err := engines[i%2].Charge(w.ctx(), client, ofName("team"), engine.ChargeRequest{Usage: map[string]int64{"tokens": 3}, AlreadySpent: i%10 == 0})
				if err == nil && out.Applied {
					booked.Add(3)
				}
			})
		}
		wg.Wait()
		w.complete(task)
		n := w.numbers("team")
		same(t, "BI3: what was booked", n[0]+n[2], booked.Load())
		if n[0] > hard || n[1] != 0 {
			t.Fatalf("BI1: %v", n)
		}
	})
}

func TestB10_a_crash_storm_leaves_no_hold_behind(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		w.create(tokens("team", 1000))
		w.submitMany(40, costing(25, "team"))
		for range 4 {
			r := ask()
			r.Max, r.TTL = 10, 1000
			w.take(r)
			w.restart() // the holders of leases are gone, with all that this process remembered
			w.pass(base.Minute)
			eventually(t, "every lease has lapsed", func() bool { return w.budget("team").LiveHolds == 0 })
		}
		same(t, "BI2", w.numbers("team"), [3]int64{0, 0, 0})
	})
}

func TestB36_an_epoch_begins_on_the_schedule_however_late(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		anchor := w.now()
		w.create(tokens("team", 10, resetting(core.BudgetReset{Type: "interval", EveryMS: base.Hour, AnchorAt: anchor})))
		task := w.started(costing(4, "team"))
		w.report(task, 6)
		waiting := w.submit(costing(8, "team"))
		w.nothing()
		w.is(waiting, core.Blocked, core.WaitingForBudget)
		w.renewed(task)
		w.turnTo(anchor.Add(3*base.Hour + 10*base.Minute))
		view := w.budget("team")
		same(t, "three missed boundaries are one reset", []any{view.Epoch, view.NextResetAt}, []any{int64(2), anchor.Add(4 * base.Hour)})
		epochs, _, err := w.e.BudgetEpochs(w.ctx(), client, ofName("team"), "", nil)
		ok(t, err)
		same(t, "history", []any{len(epochs), epochs[0].Dimensions["tokens"].Used}, []any{1, int64(6)})
		resets := func() int { return len(w.events(engine.EventFilter{Kinds: []string{"budget.reset"}})) }
		eventually(t, "the sweep writes it", func() bool { return resets() > 0 })
		same(t, "told once", resets(), 1)
		w.cancel(given(task)) // its lease has lapsed meanwhile
		same(t, "B33", w.claim().Execution.ID.UUID, waiting.UUID)
	})
}

func TestBI9_two_servers_at_one_boundary_reset_once(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		anchor := w.now()
		w.create(tokens("team", 1_000_000, resetting(core.BudgetReset{Type: "interval", EveryMS: base.Minute, AnchorAt: anchor})))
		engines := []*engine.Engine{w.e, w.another1()}
		for n := range 5 {
			w.turnTo(anchor.Add(int64(n+1) * base.Minute))
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					_, err := engines[i%2].Charge(w.ctx(), client, ofName("team"), engine.ChargeRequest{Usage: map[string]int64{"tokens": 1}})
					if err != nil {
						t.Errorf("charge: %v", err)
					}
				})
			}
			wg.Wait()
			view := w.budget("team")
			same(t, "epoch", []int64{view.Epoch, view.Numbers["tokens"].Used}, []int64{int64(n + 2), 10})
		}
		same(t, "told once each", len(w.events(engine.EventFilter{Kinds: []string{"budget.reset"}})), 5)
	})
}

func TestB40_lists_of_budgets_and_spend_come_in_pages(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		for i := range 5 {
			w.create(tokens(fmt.Sprintf("b%d", i), int64(10+i)))
		}
		must(w.charge("b0", 10))(t)
		must(w.e.CloseBudget(w.ctx(), operator, ofName("b1"), engine.AdminAction{}))(t)
		seen, cursor := 0, ""
		for {
			page, next, err := w.e.Budgets(w.ctx(), client, engine.BudgetQuery{Namespace: "default", Cursor: cursor, Limit: ptr(2)})
			ok(t, err)
			seen += len(page)
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "all", seen, 5)
		one := func(q engine.BudgetQuery) string {
			page, _, err := w.e.Budgets(w.ctx(), client, q)
			ok(t, err)
			if len(page) != 1 {
				t.Fatalf("found %d", len(page))
			}
			return page[0].Name
		}
		same(t, "exhausted", one(engine.BudgetQuery{Exhausted: ptr(true)}), "b0")
		same(t, "closed", one(engine.BudgetQuery{State: core.BudgetClosed}), "b1")
		none, _, err := w.e.Budgets(w.ctx(), client, engine.BudgetQuery{Scope: core.ScopeLane})
		ok(t, err)
		same(t, "by scope", len(none), 0)
		_, _, err = w.e.Budgets(w.ctx(), client, engine.BudgetQuery{Scope: "galaxy"})
		refused(t, err, base.CodeInvalidArgument)
		w.create(tokens("many", 1000))
		for i := range 5 {
			task := w.started(costing(0, "many"))
			w.report(task, int64(i+1))
			w.complete(task)
		}
		var totals []int64
		for cursor = ""; ; {
			rows, next, err := w.e.BudgetSpend(w.ctx(), client, ofName("many"), engine.SpendQuery{Cursor: cursor, Limit: ptr(2)})
			ok(t, err)
			for _, row := range rows {
				totals = append(totals, row.Total)
			}
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "largest first", totals, []int64{5, 4, 3, 2, 1})
	})
}

func TestB5_what_a_deleted_budget_left_goes_with_its_time(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		made := w.create(tokens("team", 100))
		task := w.started(costing(0, "team"))
		w.report(task, 5)
		w.complete(task)
		must(w.e.ResetBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))(t)
		ok(t, w.e.DeleteBudget(w.ctx(), operator, ofName("team"), engine.AdminAction{}))
		left := func() int {
			want := store.Want{Scans: []store.Scan{{Kind: 24, Prefix: made.ID.String()}, {Kind: 25, Prefix: made.ID.String()}}}
			loaded := must(w.store.Read(w.ctx(), want))(t)
			return len(loaded.Scanned[0]) + len(loaded.Scanned[1])
		}
		same(t, "history is kept", left(), 2)
		w.turn(91 * base.Day)
		eventually(t, "until its time is over", func() bool { return left() == 0 })
	})
}

func TestL141_the_budget_of_an_execution_goes_with_it(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"retention_ms":1000,"budgets":[{"name":"mine","dimensions":{"tokens":{"hard":20}}}]}`))
		w.report(task, 3, once("k"))
		w.complete(task)
		w.turn(base.Hour)
		eventually(t, "it is gone", func() bool {
			_, err := w.e.Budget(w.ctx(), client, ofName("mine"))
			return base.CodeOf(err) == base.CodeBudgetNotFound
		})
	})
}
