package rules

import (
	"fmt"
	"strings"
	"testing"
)

func TestB3_a_policy_that_names_no_budget_is_refused_at_the_door(t *testing.T) {
	t.Parallel()
	list := func(n int, of func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, of(i))
		}
		return strings.Join(all, ",")
	}
	named := func(i int) string { return fmt.Sprintf(`"b%d"`, i) }
	estimated := func(i int) string { return fmt.Sprintf(`"d%d":1`, i) }
	own := func(i int) string { return fmt.Sprintf(`{"name":"own%d","dimensions":{"tokens":{"hard":5}}}`, i) }
	onEveryStore(t, func(t *testing.T, w *world) {
		for i := range 17 {
			w.budget(t, fmt.Sprint("b", i), budgetTokens(100))
		}
		for body, code := range map[string]string{
			`"budget_ids":["b1","missing"]`:                               "invalid_policy",
			`"budget_ids":["0190a5d0-ac96-774b-bcce-b302099a8057"]`:       "invalid_policy",
			`"budget_ids":[""]`:                                           "invalid_policy",
			`"policy":{"budget_ids":["missing"]}`:                         "invalid_policy",
			`"budget_ids":[` + list(17, named) + `]`:                      "invalid_policy",
			`"estimate":{"tokens":-1}`:                                    "invalid_policy",
			`"estimate":{"Tokens":1}`:                                     "invalid_policy",
			`"estimate":{"tokens":9007199254740992}`:                      "invalid_policy",
			`"estimate":{` + list(33, estimated) + `}`:                    "invalid_policy",
			`"budget_ids":"b1"`:                                           "invalid_argument",
			`"budgets":[` + list(5, own) + `]`:                            "invalid_policy",
			`"budgets":[{"name":"x","dimensions":{"tokens":{"hard":0}}}]`: "invalid_budget",

			`"budgets":[` + own(0) + `,{"name":"x","parent":"missing","dimensions":{"a":{}}}]`: "invalid_policy",
			`"budgets":[` + own(0) + `,{"name":"b1","dimensions":{"a":{}}}]`:                   "budget_already_exists",
		} {
			status := max(400, map[string]int{"budget_already_exists": 409}[code])
			w.post(t, "/v1/executions", `{"kind":"k",`+body+`}`).refuses(t, status, code)
			w.post(t, "/v1/flows", `{"kind":"f","nodes":[{"name":"a","kind":"k",`+body+`}]}`).refuses(t, status, code)
		}
		w.claimsNothing(t, "default") // nothing was submitted, and no budget made
		w.get(t, "/v1/budgets/own0").refuses(t, 404, "budget_not_found")
		k := w.budgetTask(t, `"budget_ids":[`+list(16, named)+`],"estimate":{"tokens":3,`+list(31, estimated)+`}`)
		for _, name := range []string{"b0", "b15"} {
			w.budgetHas(t, name, 0, 3, 0)
		}
		w.complete(t, k, `1`)
	})
}

func TestB3_budgets_come_with_the_execution_or_the_flow_that_they_cover(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		parent := w.budget(t, "above", budgetTokens(100))
		id := w.submit(t, `{"kind":"k","estimate":{"tokens":4},"budgets":[{"name":"mine","parent":"above","on_hard":"fail","dimensions":{"tokens":{"hard":5}}},{"dimensions":{"pages":{"hard":9}}}]}`)
		w.budgetShows(t, "mine", fields{"scope.type": "execution", "scope.value": bare(id), "parent": parent, "on_hard": "fail"})
		got := w.get(t, at(id)+"/budgets").wants(t, 200).shows(t, fields{"admitted": true, "budgets.2.name": "above"})
		if len(got.items(t, "budgets")) != 3 {
			t.Errorf("%s", got.body)
		}
		k := w.claim(t, "default")
		w.budgetHas(t, "mine", 0, 4, 0)
		w.budgetReport(t, k, `{"tokens":6}`, "").wants(t, 200).shows(t, fields{"outcome": "hard_breach", "action": "failed"})
		w.post(t, "/v1/executions", `{"kind":"k","execution_id":"`+id+`","budgets":[{"name":"late","dimensions":{"tokens":{"hard":5}}}]}`).refuses(t, 409, "id_conflict")
		w.get(t, "/v1/budgets/late").refuses(t, 404, "budget_not_found")

		g := w.flow(t, `{"kind":"f","budgets":[{"name":"shared","dimensions":{"tokens":{"hard":5}}}],"defaults":{"estimate":{"tokens":4}},"nodes":[{"name":"a","kind":"k"},{"name":"b","kind":"k"}]}`)
		w.budgetShows(t, "shared", fields{"scope.type": "flow", "scope.value": bare(g.id)})
		first := w.claim(t, "default")
		w.claimsNothing(t, "default")
		w.budgetShows(t, "shared", fields{"dimensions.tokens.reserved": 4, "blocked_executions": 1})
		w.complete(t, first, `1`)
		if second := w.claim(t, "default"); second.id == first.id {
			t.Errorf("%s", second.body)
		}
		w.post(t, "/v1/flows", `{"kind":"f","budgets":[{"name":"fresh","dimensions":{"a":{}}},{"name":"shared","dimensions":{"a":{}}}],"nodes":[{"name":"a","kind":"k"}]}`).
			refuses(t, 409, "budget_already_exists")
		w.get(t, "/v1/budgets/fresh").refuses(t, 404, "budget_not_found")
		if flows := w.get(t, "/v1/flows").wants(t, 200); len(flows.items(t, "items")) != 1 {
			t.Errorf("%s", flows.body)
		}
	})
}
