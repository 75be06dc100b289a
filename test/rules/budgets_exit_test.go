package rules

import "testing"

// budgetExits are ways out of running that carry usage: command and fields.
var budgetExits = map[string][2]string{
	"complete":       {"complete", `"result":1`},
	"fail":           {"fail", `"class":"permanent","message":"no"`},
	"fail and retry": {"fail", `"class":"transient","message":"again","retry_after_ms":3600000`},
	"suspend":        {"suspend", `"resume_condition":{"type":"operator_only"}`},
	"delay":          {"delay", `"delay_ms":3600000`},
	"wait":           {"wait-children", `"policy":"all_of"`},
}

// budgetLeaver is a task that has children to wait for and may be tried again.
func (w *world) budgetLeaver(t testing.TB) task {
	t.Helper()
	k := w.budgetTask(t, costing(40, "b")+`,"policy":{"retry_policy":{"max_retries":1}}`)
	w.under(t, k, "spawn", `"children":[{"name":"c","kind":"k","lane":"elsewhere"}]`).wants(t, 200)
	w.budgetReport(t, k, `{"tokens":10}`, "").wants(t, 200)
	w.budgetShows(t, "b", fields{"dimensions.tokens.used": 10, "dimensions.tokens.reserved": 30, "live_holds": 1})
	return k
}

func TestB14_every_exit_from_running_gives_back_what_remains(t *testing.T) {
	t.Parallel()
	exits := map[string][2]string{"hand-back": {"release", ""}, "cancel by the worker": {"cancel", ""}}
	for name, exit := range budgetExits {
		exits[name] = exit
	}
	byOperator := map[string]string{"cancel": "cancel", "revoke": "revoke"}
	gone := func(t *testing.T, w *world) {
		w.budgetShows(t, "b", fields{"dimensions.tokens.used": 10, "dimensions.tokens.reserved": 0, "live_holds": 0, "holders.0": nil})
	}
	for name, exit := range exits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				w.budget(t, "b", budgetTokens(100))
				w.under(t, w.budgetLeaver(t), exit[0], exit[1]).wants(t, 200)
				gone(t, w)
			})
		})
	}
	for name, verb := range byOperator {
		t.Run("operator: "+name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				w.budget(t, "b", budgetTokens(100))
				w.post(t, at(w.budgetLeaver(t).id)+"/"+verb, `{}`).wants(t, 200)
				gone(t, w)
			})
		})
	}
}

func TestB16_what_leaves_the_run_may_say_what_it_used_and_no_budget_stops_it(t *testing.T) {
	t.Parallel()
	for name, exit := range budgetExits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				w.budget(t, "b", budgetTokens(100))
				k := w.budgetLeaver(t)
				w.under(t, k, exit[0], exit[1]+`,"usage":{"tokens":-1}`).refuses(t, 400, "invalid_usage")
				w.under(t, k, exit[0], exit[1]+`,"usage":{"wall_ms":1}`).refuses(t, 400, "reserved_dimension")
				w.budgetShows(t, "b", fields{"dimensions.tokens.used": 10, "live_holds": 1})
				w.under(t, k, exit[0], exit[1]+`,"usage":{"tokens":95,"pages":2}`).wants(t, 200)
				w.budgetShows(t, "b", fields{
					"dimensions.tokens.used": 100, "dimensions.tokens.reserved": 0, "dimensions.tokens.overrun": 5, "live_holds": 0, "breach_count": 1, "last_breach.execution_id": k.id,
				})
				w.budgetMeter(t, k.id, fields{"tokens": 105, "pages": 2})
			})
		})
	}
}

func TestB15_a_revoked_lease_forfeits_where_the_budget_says_so(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "strict", budgetTokens(100)+`,"on_lease_loss":"forfeit"`)
		w.budget(t, "kind", budgetTokens(100))
		k := w.budgetTask(t, `"budget_ids":["strict","kind"],"estimate":{"tokens":40}`)
		w.budgetReport(t, k, `{"tokens":10}`, "").wants(t, 200)
		w.post(t, at(k.id)+"/revoke", `{}`).wants(t, 200)
		w.budgetHas(t, "strict", 40, 0, 0)
		w.budgetHas(t, "kind", 10, 0, 0)
		w.budgetShows(t, "strict", fields{"live_holds": 0, "breach_count": 0})
		w.get(t, "/v1/budgets/strict/spend").wants(t, 200).shows(t, fields{"items.0.execution_id": k.id, "items.0.used.tokens": 40})
		k = w.claim(t, "default")
		w.complete(t, k, `1`) // an exit that is no loss
		w.budgetHas(t, "strict", 40, 0, 0)
	})
}

func TestB18_B40_meters_count_with_and_without_budgets(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10))
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"k","policy":{"retry_policy":{"max_retries":1}}},
			{"name":"b","kind":"k","after":["a"],"budget_ids":["b"]}]}`)
		k := w.claim(t, "default")
		w.budgetReport(t, k, `{"tokens":3,"pages":1}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "applied": true, "remaining": nil})
		w.under(t, k, "fail", `"class":"transient","message":"again","retry_after_ms":0,"usage":{"tokens":4}`).wants(t, 200)
		k = w.claim(t, "default")
		w.under(t, k, "complete", `"usage":{"tokens":20}`).wants(t, 200)
		a := g.member(t, "a")
		w.budgetMeter(t, a, fields{"tokens": 27, "pages": 1})
		w.get(t, at(a)+"/usage?attempt=0").wants(t, 200).shows(t, fields{"attempt_index": 0, "usage.tokens": 7, "usage.pages": 1})
		w.get(t, at(a)+"/usage?attempt=1").wants(t, 200).shows(t, fields{"usage.tokens": 20, "usage.pages": nil})
		w.get(t, at(a)+"/attempts/0").wants(t, 200).shows(t, fields{"usage.tokens": 7})
		w.get(t, at(a)+"/usage?attempt=2").refuses(t, 404, "attempt_not_found")
		k = w.claim(t, "default")
		w.budgetReport(t, k, `{"tokens":15}`, "").wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false})
		w.budgetMeter(t, k.id, fields{"tokens": nil})
		w.budgetReport(t, k, `{"tokens":15}`, `,"already_spent":true`).wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": true})
		w.budgetMeter(t, k.id, fields{"tokens": 15})
		w.get(t, "/v1/flows/"+bare(g.id)+"/usage").wants(t, 200).shows(t, fields{"usage.tokens": 42, "usage.pages": 1})
	})
}
