package rules

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestB4_an_update_changes_what_it_names_if_the_revision_is_the_expected_one(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, _ *clock.Manual) { // no boundary of the reset comes
		id := w.budget(t, "team", `"dimensions":{"tokens":{"hard":100,"soft":50,"default_reserve":10},"pages":{"hard":9}}`)
		w.budget(t, "taken", budgetTokens(1))
		w.budgetIf(1).budgetPatch(t, "team", `{"dimensions":{"tokens":{"hard":200,"soft":60,"default_reserve":7}}}`).wants(t, 200).shows(t, fields{
			"revision": 2, "dimensions.tokens.hard": 200, "dimensions.tokens.soft": 60, "dimensions.tokens.default_reserve": 7, "dimensions.pages.hard": 9,
		})
		w.budgetPatch(t, "team", `{"on_hard":"fail","on_lease_loss":"forfeit","reset":{"type":"calendar","unit":"day"},"approval":{"timeout_ms":60000,"default_raise":{"tokens":5}},"name":"crew"}`).
			wants(t, 200).shows(t, fields{"revision": 3, "name": "crew", "on_hard": "fail", "on_lease_loss": "forfeit", "reset.unit": "day", "approval.timeout_ms": 60_000, "approval.default_raise.tokens": 5})
		w.get(t, "/v1/budgets/team").refuses(t, 404, "budget_not_found")
		w.post(t, "/v1/executions", `{"kind":"k","budget_ids":["team"]}`).refuses(t, 400, "invalid_policy")
		kept := w.budgetShows(t, "crew", fields{"budget_id": id})
		w.budgetIf(2).budgetPatch(t, "crew", `{"on_hard":"block_new"}`).refuses(t, 409, "stale_version").shows(t, fields{"current.revision": 3})
		for body, want := range map[string][2]string{
			`{"scope":{"type":"namespace"}}`:                       {"unknown_field", "/scope"},
			`{"parent":"taken"}`:                                   {"unknown_field", "/parent"},
			`{"dimensions":{"tokens":{"hard":0}}}`:                 {"invalid_budget", "/dimensions/tokens/hard"},
			`{"dimensions":{"tokens":{"soft":201}}}`:               {"invalid_budget", "/dimensions/tokens/soft"},
			`{"remove_dimensions":["tokens","pages"]}`:             {"invalid_budget", "/dimensions"},
			`{"on_hard":"shout"}`:                                  {"invalid_budget", "/on_hard"},
			`{"reset":{"type":"calendar","timezone":"Mars/Base"}}`: {"invalid_budget", "/reset/unit"},

			`{"name":""}`: {"invalid_budget", "/name"},
		} {
			w.budgetPatch(t, "crew", body).refuses(t, 400, want[0]).shows(t, fields{"field": want[1]})
		}
		w.budgetPatch(t, "crew", `{"name":"taken"}`).refuses(t, 409, "budget_already_exists")
		w.budgetPatch(t, "missing", `{}`).refuses(t, 404, "budget_not_found")
		if now := w.get(t, "/v1/budgets/crew").wants(t, 200); string(now.body) != string(kept.body) {
			t.Errorf("a refusal changed it:\n%s\n%s", kept.body, now.body)
		}
		w.budgetPatch(t, "crew", `{"dimensions":{"tokens":{"remove":["hard","soft","default_reserve"]}},"approval":{}}`).wants(t, 200).
			shows(t, fields{"dimensions.tokens.hard": nil, "dimensions.tokens.soft": nil, "dimensions.tokens.default_reserve": nil, "dimensions.tokens.available": nil})
	})
}

func TestB4_a_limit_does_not_go_below_what_is_used_and_reserved(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "team", budgetTokens(100))
		w.budgetCharge(t, "team", `{"tokens":30}`, "").wants(t, 200)
		k := w.budgetTask(t, costing(12, "team"))
		w.budgetPatch(t, "team", `{"dimensions":{"tokens":{"hard":41}}}`).refuses(t, 409, "limit_below_usage").
			shows(t, fields{"field": "/dimensions/tokens/hard", "current.minimum": 42})
		w.budgetPatch(t, "team", `{"remove_dimensions":["tokens"],"dimensions":{"pages":{"hard":5}}}`).refuses(t, 409, "budget_in_use").shows(t, fields{"field": "/dimensions/tokens"})
		w.budgetShows(t, "team", fields{"revision": 1, "dimensions.tokens.hard": 100, "dimensions.pages": nil})
		w.budgetPatch(t, "team", `{"dimensions":{"tokens":{"hard":42},"pages":{"hard":5}}}`).wants(t, 200).
			shows(t, fields{"dimensions.tokens.available": 0, "exhausted.0": "tokens", "dimensions.pages.used": 0, "dimensions.pages.reserved": 0, "dimensions.pages.available": 5})
		w.complete(t, k, `1`)
		w.budgetPatch(t, "team", `{"remove_dimensions":["tokens"]}`).wants(t, 200).shows(t, fields{"dimensions.tokens": nil})
		w.budgetCharge(t, "team", `{"tokens":1}`, "").refuses(t, 400, "unknown_dimension")
		w.budgetPatch(t, "team", `{"dimensions":{"tokens":{"hard":1}}}`).wants(t, 200).shows(t, fields{"dimensions.tokens.used": 0, "dimensions.tokens.available": 1})
	})
}

func TestB5_a_closed_budget_admits_no_work_refuses_charges_and_still_books_what_is_leased(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "above", budgetTokens(100))
		id := w.budget(t, "team", budgetTokens(100)+`,"parent":"above"`)
		k := w.budgetTask(t, costing(10, "team"))
		w.budgetIf(9).budgetVerb(t, "team", "close").refuses(t, 409, "stale_version")
		for range 2 {
			w.budgetVerb(t, "team", "close").wants(t, 200).shows(t, fields{"state": "closed", "revision": 2})
		}
		for _, more := range []string{"", `,"already_spent":true`, `,"execution_id":"` + k.id + `"`} {
			w.budgetCharge(t, "team", `{"tokens":1}`, more).refuses(t, 409, "budget_closed")
		}
		waiting := w.submit(t, `{"kind":"k",`+costing(1, "team")+`}`)
		w.claimsNothing(t, "default")
		w.budgetBlocked(t, waiting, nil)
		w.get(t, at(waiting)+"/budgets").wants(t, 200).shows(t, fields{"admitted": false, "refusal.blocked_on": "budget:" + id})
		w.budgetReport(t, k, `{"tokens":4}`, "").wants(t, 200).shows(t, fields{"outcome": "ok", "applied": true})
		w.under(t, k, "complete", `"usage":{"tokens":3}`).wants(t, 200)
		w.budgetHas(t, "team", 7, 0, 0)
		w.budgetVerb(t, "team", "reopen").wants(t, 200).shows(t, fields{"state": "active", "revision": 3})
		if next := w.claim(t, "default"); next.id != waiting {
			t.Errorf("%s", next.body)
		}
		w.budgetCharge(t, "team", `{"tokens":1}`, "").wants(t, 200)
		w.budgetVerb(t, "above", "close").wants(t, 200)
		w.budgetCharge(t, "team", `{"tokens":1}`, "").refuses(t, 409, "budget_closed")
		w.budgetHas(t, "team", 8, 1, 0)
		for _, verb := range []string{"close", "reopen"} {
			w.budgetVerb(t, "missing", verb).refuses(t, 404, "budget_not_found")
		}
	})
}

func TestB5_a_budget_in_use_is_not_deleted(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "above", budgetTokens(100))
		id := w.budget(t, "team", budgetTokens(100)+`,"parent":"above"`)
		remove := func(name string) reply { return w.send(t, "DELETE", "/v1/budgets/"+name, "") }
		named := w.submit(t, `{"kind":"k",`+costing(5, "team")+`}`)
		for _, name := range []string{"above", "team"} {
			remove(name).refuses(t, 409, "budget_in_use")
		}
		k := w.claim(t, "default")
		remove("team").refuses(t, 409, "budget_in_use")
		w.budgetReport(t, k, `{"tokens":2}`, "").wants(t, 200)
		w.complete(t, k, `1`)
		w.state(t, named, fields{"status": "succeeded"})
		w.budgetIf(9).send(t, "DELETE", "/v1/budgets/team", "").refuses(t, 409, "stale_version")
		remove("team").wants(t, 204)
		for _, gone := range []string{"team", id} {
			w.get(t, "/v1/budgets/"+gone).refuses(t, 404, "budget_not_found")
			remove(gone).refuses(t, 404, "budget_not_found")
			w.budgetCharge(t, gone, `{"tokens":1}`, "").refuses(t, 404, "budget_not_found")
		}
		w.post(t, "/v1/budgets", `{"name":"new","budget_id":"`+id+`",`+budgetTokens(1)+`}`).refuses(t, 409, "budget_already_exists") // its history is kept
		w.budgetMeter(t, named, fields{"tokens": 2})
		w.budgetHas(t, "above", 2, 0, 0)
		if again := w.budget(t, "team", budgetTokens(1)); strings.EqualFold(again, id) {
			t.Error("a new budget has the old id")
		}
		remove("above").wants(t, 204)
	})
}
