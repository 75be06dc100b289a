package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// budgetOrder checks the names of the budgets that apply to an execution.
func (w *world) budgetOrder(t testing.TB, id string, want ...string) {
	t.Helper()
	got := w.get(t, at(id)+"/budgets").wants(t, 200)
	if names := got.budgetNames(t, "budgets"); !slices.Equal(names, want) {
		t.Errorf("%v apply, want %v", names, want)
	}
}

// budgetScope is the scope of a budget.
func budgetScope(kind, value string) string {
	return fmt.Sprintf(`,"scope":{"type":%q,"value":%q}`, kind, value)
}

func TestB6_B8_every_budget_that_covers_the_work_counts_once_and_in_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := map[string]string{}
		budget := func(name, fields string) { made[name] = w.budget(t, name, budgetTokens(100)+fields) }
		budget("top", "")
		budget("middle", `,"parent":"top"`)
		budget("all", `,"scope":{"type":"namespace"},"parent":"middle"`)
		budget("lane", budgetScope("lane", "default"))
		budget("otherlane", budgetScope("lane", "mail"))
		budget("red", budgetScope("tag", "team=red")+`,"parent":"top"`)
		budget("deep", budgetScope("tag", "depth=2"))
		budget("blue", budgetScope("tag", "team=blue"))
		budget("unnamed", "")
		budget("named", `,"parent":"lane"`)
		budget("again", budgetScope("tag", "team=red"))
		outer := w.flow(t, `{"kind":"f","nodes":[{"name":"sub","flow":{"nodes":[
			{"name":"x","kind":"k","tags":{"team":"red","depth":"2"},"budget_ids":["named","again"],"estimate":{"tokens":5}}]}}]}`)
		k := w.claim(t, "default")
		inner := w.state(t, k.id, fields{"name": "x"}).text(t, "flow_id")
		w.under(t, k, "release", "").wants(t, 200)
		for _, n := range []string{"1", "2"} {
			budget("outer"+n, budgetScope("flow", outer.id))
			budget("inner"+n, budgetScope("flow", inner))
			budget("own"+n, budgetScope("execution", k.id))
		}
		k = w.claim(t, "default")
		var want []string
		for _, rank := range [][]string{
			{"named", "again"},
			{"own1", "own2"},
			{"inner1", "inner2"},
			{"outer1", "outer2"},
			{"red", "deep"},
			{"lane"},
			{"all"},
			{"top", "middle"}, // parents: of red, of all; that of named counted before, and top counts but once
		} {
			slices.SortFunc(rank, func(a, b string) int { return strings.Compare(made[a], made[b]) })
			want = append(want, rank...)
		}
		w.budgetOrder(t, k.id, want...)
		for name := range made {
			holds := 0
			if slices.Contains(want, name) {
				holds = 1
			}
			w.budgetShows(t, name, fields{"dimensions.tokens.reserved": 5 * holds, "live_holds": holds})
		}
		full := w.get(t, at(k.id)+"?view=full").wants(t, 200)
		for i, name := range want {
			full.shows(t, fields{fmt.Sprintf("budgets.%d.budget_id", i): made[name], fmt.Sprintf("budgets.%d.reserved.tokens", i): 5})
		}
		w.budgetReport(t, k, `{"tokens":7}`, "").wants(t, 200)
		for _, name := range want {
			w.budgetHas(t, name, 7, 0, 0)
		}
	})
}

func TestB6_scopes_follow_the_work_to_what_it_spawns_and_look_at_the_moment_of_the_claim(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"k"}]}`)
		w.budget(t, "flow", budgetTokens(100)+budgetScope("flow", g.id))
		k := w.claim(t, "default")
		w.budget(t, "parent", budgetTokens(100)+budgetScope("execution", k.id))
		w.under(t, k, "spawn", `"children":[{"name":"c","kind":"k","estimate":{"tokens":3}}]`).wants(t, 200)
		child := w.claim(t, "default")
		w.budgetOrder(t, child.id, "parent", "flow")
		w.under(t, child, "spawn", `"children":[{"name":"cc","kind":"k","estimate":{"tokens":4}}]`).wants(t, 200)
		w.budgetOrder(t, w.claim(t, "default").id, "parent", "flow")
		w.budgetHas(t, "parent", 0, 7, 0)
		w.budgetHas(t, "flow", 0, 7, 0)

		w.budget(t, "red", budgetTokens(1)+budgetScope("tag", "team=red"))
		w.budgetCharge(t, "red", `{"tokens":1}`, "").wants(t, 200)
		id := w.submit(t, `{"kind":"k","tags":{"team":"red"}}`)
		w.claimsNothing(t, "default")
		w.budgetBlocked(t, id, fields{"dimension": "tokens"})
		w.send(t, "PATCH", at(id)+"/tags", `{"team":"green"}`).wants(t, 200)
		w.budgetOrder(t, id)
		if got := w.claim(t, "default"); got.id != id {
			t.Errorf("%s", got.body)
		}
	})
}

func TestB7_the_set_is_fixed_for_the_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "red", budgetTokens(100)+budgetScope("tag", "team=red"))
		k := w.budgetTask(t, `"tags":{"team":"red"},"estimate":{"tokens":10}`)
		w.budget(t, "later", budgetTokens(100)+`,"scope":{"type":"namespace"}`)
		w.send(t, "PATCH", at(k.id)+"/tags", `{"team":null}`).wants(t, 200)
		got := w.budgetReport(t, k, `{"tokens":4}`, "").wants(t, 200)
		if left, _ := got.field(t, "remaining").(map[string]any); len(left) != 1 {
			t.Errorf("%s", got.body)
		}
		w.budgetHas(t, "red", 4, 6, 0)
		w.budgetShows(t, "later", fields{"dimensions.tokens.used": 0, "dimensions.tokens.reserved": 0, "live_holds": 0})
		w.budgetOrder(t, k.id, "later") // as its next claim will be
		w.under(t, k, "release", "").wants(t, 200)
		w.budgetHas(t, "red", 4, 0, 0)
		k = w.claim(t, "default")
		w.budgetHas(t, "later", 0, 10, 0)
		w.under(t, k, "complete", `"usage":{"tokens":2}`).wants(t, 200)
		w.budgetHas(t, "later", 2, 0, 0)
		w.budgetHas(t, "red", 4, 0, 0)
	})
}
