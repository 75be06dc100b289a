package rules

import "testing"

// budgetActions are what on_hard does to the reporter: the action of the answer, and the execution after it.
var budgetActions = map[string]struct {
	action string
	x      fields
}{
	"block_new":            {"none", fields{"status": "running"}},
	"fail":                 {"failed", fields{"status": "failed", "reason": "budget_exceeded", "retry_count": 0, "failure.class": "permanent", "failure.category": "budget_exceeded"}},
	"suspend_for_approval": {"suspended", fields{"status": "suspended", "reason": "waiting_for_budget"}},
	"cancel_running":       {"cancelled", fields{"status": "cancelled", "reason": "budget_exceeded", "cancellation.source": "budget", "cancellation.reason": "budget_exceeded"}},
}

// budgetPair makes a budget that acts so, and takes two tasks charged to it.
func (w *world) budgetPair(t testing.TB, onHard string) (reporter, holder task) {
	t.Helper()
	w.budget(t, "b", budgetTokens(10)+`,"on_hard":"`+onHard+`"`)
	work := `"budget_ids":["b"],"policy":{"retry_policy":{"max_retries":3}}`
	return w.budgetTask(t, work), w.budgetTask(t, work)
}

// budgetHolder checks what a breach did to somebody else who holds a lease charged to the budget.
func (w *world) budgetHolder(t testing.TB, holder task, onHard string) {
	t.Helper()
	if onHard == "cancel_running" {
		w.budgetBecomes(t, holder.id, "cancelled").shows(t, budgetActions[onHard].x)
		w.budgetShows(t, "b", fields{"live_holds": 0})
		return
	}
	w.state(t, holder.id, fields{"status": "running"})
	w.budgetReport(t, holder, `{"tokens":0}`, "").wants(t, 200)
}

func TestB27_B28_a_hard_breach_is_counted_told_and_acts(t *testing.T) {
	t.Parallel()
	for onHard, want := range budgetActions {
		for name, spent := range map[string]bool{"refused": false, "overrun": true} {
			t.Run(onHard+" "+name, func(t *testing.T) {
				t.Parallel()
				onEveryStore(t, func(t *testing.T, w *world) {
					w.budget(t, "other", budgetTokens(10))
					bystander := w.budgetTask(t, `"budget_ids":["other"]`)
					k, holder := w.budgetPair(t, onHard)
					queued := w.submit(t, `{"kind":"k","budget_ids":["b"]}`)
					more, used, overrun := "", 0, 0
					if spent {
						more, used, overrun = `,"already_spent":true`, 10, 2
					}
					w.budgetReport(t, k, `{"tokens":12}`, more).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": spent, "action": want.action})
					x := w.state(t, k.id, want.x)
					w.budgetHas(t, "b", used, 0, overrun)
					b := w.budgetShows(t, "b", fields{"breach_count": 1, "last_breach.dimension": "tokens", "last_breach.execution_id": k.id})
					if b.text(t, "last_breach.at") == "" {
						t.Errorf("%s", b.body)
					}
					w.budgetTold(t, "budget.hard_breach", fields{"budget_id": b.text(t, "budget_id"), "dimension": "tokens", "hard": 10, "attempted": 12, "used": used, "action": want.action})
					if want.action == "none" {
						w.budgetReport(t, k, `{"tokens":0}`, "").wants(t, 200)
					} else { // its fence is dead
						for _, command := range [][2]string{{"usage", `"usage":{"tokens":1}`}, {"complete", `"result":1`}, {"renew", ""}} {
							w.under(t, k, command[0], command[1]).refuses(t, 409, "execution_not_active")
						}
						if w.get(t, at(k.id)).text(t, "last_mutation_at") != x.text(t, "last_mutation_at") {
							t.Error("a dead fence changed it")
						}
					}
					w.budgetHolder(t, holder, onHard)
					w.state(t, bystander.id, fields{"status": "running"})
					w.state(t, queued, fields{"status": "ready"})
				})
			})
		}
	}
}

func TestB27_a_refused_admission_is_no_breach_and_the_first_budget_acts(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10)+`,"on_hard":"cancel_running"`)
		k := w.budgetTask(t, costing(10, "b"))
		w.submit(t, `{"kind":"k",`+costing(1, "b")+`}`)
		w.claimsNothing(t, "default")
		w.budgetShows(t, "b", fields{"breach_count": 0, "last_breach": nil})
		w.budgetTold(t, "budget.hard_breach")
		w.state(t, k.id, fields{"status": "running"})

		w.budget(t, "lane", `"dimensions":{"pages":{"hard":1}},"on_hard":"fail"`+budgetScope("lane", "two"))
		w.budget(t, "named", `"dimensions":{"pages":{"hard":1}},"on_hard":"suspend_for_approval"`)
		w.submit(t, `{"kind":"k","lane":"two","budget_ids":["named"]}`)
		l := w.claim(t, "two")
		w.budgetReport(t, l, `{"pages":2}`, "").wants(t, 200).shows(t, fields{"action": "suspended"})
		for _, name := range []string{"lane", "named"} {
			w.budgetShows(t, name, fields{"breach_count": 1})
		}
	})
}

func TestB28_without_a_running_reporter_no_execution_is_failed_or_suspended(t *testing.T) {
	t.Parallel()
	leave := func(command, more string) func(t *testing.T, w *world, k task) {
		return func(t *testing.T, w *world, k task) {
			w.under(t, k, command, more+`"usage":{"tokens":12}`).wants(t, 200)
		}
	}
	for name, c := range map[string]struct {
		breach func(t *testing.T, w *world, k task)
		status string // of the first task after it
	}{
		"charge": {func(t *testing.T, w *world, _ task) {
			w.budgetCharge(t, "b", `{"tokens":12}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "action": "none"})
		}, "running"},
		"complete": {leave("complete", ""), "succeeded"},
		"delay":    {leave("delay", `"delay_ms":3600000,`), "delayed"},
		"suspend":  {leave("suspend", `"resume_condition":{"type":"operator_only"},`), "suspended"},
	} {
		for onHard := range budgetActions {
			t.Run(name+" "+onHard, func(t *testing.T) {
				t.Parallel()
				onEveryStore(t, func(t *testing.T, w *world) {
					k, holder := w.budgetPair(t, onHard)
					c.breach(t, w, k)
					w.budgetHas(t, "b", 10, 0, 2)
					w.budgetShows(t, "b", fields{"breach_count": 1})
					w.budgetTold(t, "budget.hard_breach", fields{"overrun": 2, "action": "none"})
					w.budgetHolder(t, holder, onHard)
					if name == "charge" {
						w.budgetHolder(t, k, onHard)
					} else if x := w.state(t, k.id, fields{"status": c.status}); x.text(t, "reason") == "budget_exceeded" || x.text(t, "reason") == "waiting_for_budget" {
						t.Errorf("%s", x.body)
					}
				})
			})
		}
	}
}

func TestB28_a_spend_that_is_recorded_for_running_work_acts_on_it(t *testing.T) {
	t.Parallel()
	for onHard, want := range budgetActions {
		t.Run(onHard, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				k, holder := w.budgetPair(t, onHard)
				w.budgetCharge(t, "b", `{"tokens":12}`, `,"execution_id":"`+k.id+`"`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false, "action": want.action})
				w.state(t, k.id, want.x)
				w.budgetHolder(t, holder, onHard)
			})
		})
	}
}

func TestB32_each_upward_crossing_of_a_soft_limit_is_told_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.budget(t, "b", `"dimensions":{"tokens":{"soft":50,"hard":100},"pages":{"soft":1}}`)
		k := w.budgetTask(t, `"budget_ids":["b"]`)
		told := 0
		crossed := func(r reply, crossings int) {
			t.Helper()
			r.wants(t, 200)
			told += crossings
			w.budgetShows(t, "b", fields{"soft_breach_count": told})
		}
		crossed(w.budgetReport(t, k, `{"tokens":50}`, ""), 0)
		crossed(w.budgetReport(t, k, `{"tokens":1}`, ""), 1)
		crossed(w.budgetReport(t, k, `{"tokens":1}`, ""), 0)
		crossed(w.budgetReport(t, k, `{"tokens":60}`, ""), 0) // refused
		crossed(w.post(t, "/v1/budgets/b/release", `{"execution_id":"`+k.id+`"}`), 0)
		crossed(w.budgetCharge(t, "b", `{"tokens":60,"pages":2}`, ""), 2)
		crossed(w.budgetVerb(t, "b", "reset"), 0)
		crossed(w.under(t, k, "complete", `"usage":{"tokens":200}`), 1) // with an overrun
		w.budgetTold(t, "budget.soft_breach", fields{"budget_id": id, "dimension": "tokens", "used": 51, "soft": 50}, fields{"dimension": "pages", "used": 2},
			fields{"dimension": "tokens", "used": 60}, fields{"dimension": "tokens", "used": 100})
	})
}
