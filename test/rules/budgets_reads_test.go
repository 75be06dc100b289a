package rules

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestB39_a_budget_shows_its_definition_and_its_numbers_of_one_moment(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, _ *clock.Manual) { // no boundary of the reset comes
		above := w.budget(t, "above", budgetTokens(100))
		w.budget(t, "b", `"parent":"above","dimensions":{"tokens":{"hard":20,"soft":5,"default_reserve":1},"pages":{}},"on_hard":"block_new","on_lease_loss":"forfeit",
			"scope":{"type":"tag","value":"team=red"},"reset":{"type":"calendar","unit":"month","timezone":"Europe/Berlin"},"approval":{"timeout_ms":60000,"default_raise":{"tokens":2}}`)
		k := w.budgetTask(t, `"tags":{"team":"red"},"estimate":{"tokens":8,"pages":2}`)
		w.budgetReport(t, k, `{"tokens":6}`, "").wants(t, 200)
		waiting := w.submit(t, `{"kind":"k","tags":{"team":"red"},"estimate":{"tokens":15}}`)
		w.claimsNothing(t, "default")
		w.budgetShows(t, "b", fields{
			"namespace": w.namespace, "name": "b", "parent": above, "scope.type": "tag", "scope.value": "team=red", "on_hard": "block_new", "on_lease_loss": "forfeit",
			"reset.type": "calendar", "reset.unit": "month", "reset.timezone": "Europe/Berlin", "approval.timeout_ms": 60_000, "approval.default_raise.tokens": 2, "state": "active",
			"dimensions.tokens.hard": 20, "dimensions.tokens.effective_hard": 20, "dimensions.tokens.soft": 5, "dimensions.tokens.default_reserve": 1,
			"dimensions.tokens.used": 6, "dimensions.tokens.reserved": 2, "dimensions.tokens.overrun": 0, "dimensions.tokens.available": 12,
			"dimensions.pages.used": 0, "dimensions.pages.reserved": 2, "dimensions.pages.hard": nil, "dimensions.pages.effective_hard": nil, "dimensions.pages.available": nil,
			"epoch": 1, "breach_count": 0, "soft_breach_count": 1, "last_breach": nil, "blocked_executions": 1, "live_holds": 1, "holders.0.execution_id": k.id, "exhausted": []any{},
		})
		w.budgetReport(t, k, `{"tokens":14}`, "").wants(t, 200)
		w.budgetShows(t, "b", fields{"exhausted.0": "tokens", "exhausted.1": nil, "dimensions.tokens.available": 0})
		w.budgetReport(t, k, `{"tokens":1}`, "").wants(t, 200)
		w.budgetShows(t, "b", fields{"breach_count": 1, "last_breach.dimension": "tokens", "last_breach.execution_id": k.id})
		w.complete(t, k, `1`)
		w.post(t, at(waiting)+"/cancel", `{}`).wants(t, 200)
		w.budgetShows(t, "b", fields{"blocked_executions": 0, "live_holds": 0, "holders": nil, "dimensions.pages.reserved": 0})
	})
}

func TestB40_lists_have_their_filters_and_their_order(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "full", budgetTokens(1))
		w.budget(t, "closed", budgetTokens(10))
		w.budget(t, "mail", budgetTokens(10)+budgetScope("lane", "mail"))
		w.budget(t, "post", budgetTokens(10)+budgetScope("lane", "post"))
		w.budget(t, "all", budgetTokens(10_000)+`,"scope":{"type":"namespace"}`)
		w.budgetCharge(t, "full", `{"tokens":1}`, "").wants(t, 200)
		w.budgetVerb(t, "closed", "close").wants(t, 200)
		for query, want := range map[string][]string{
			"": {"all", "closed", "full", "mail", "post"}, "?exhausted=true": {"full"}, "?exhausted=false": {"all", "closed", "mail", "post"}, "?state=closed": {"closed"},
			"?state=active": {"all", "full", "mail", "post"}, "?scope=lane": {"mail", "post"}, "?scope=lane:post": {"post"}, "?scope=namespace": {"all"}, "?scope=none": {"closed", "full"},
			"?scope=flow": nil, "?scope=none&state=active&exhausted=false": nil,
		} {
			got := w.get(t, "/v1/budgets"+query).wants(t, 200).budgetNames(t, "items")
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", query, got, want)
			}
		}
		for _, query := range []string{"?scope=moon", "?state=open", "?exhausted=perhaps"} {
			w.get(t, "/v1/budgets"+query).refuses(t, 400, "invalid_argument")
		}
		walk := func(path string) (pages int, all []reply) {
			for cursor := ""; ; pages++ {
				page := w.get(t, path+cursor).wants(t, 200)
				all = append(all, page)
				if page.text(t, "next_cursor") == "" {
					return pages + 1, all
				}
				cursor = "&cursor=" + page.text(t, "next_cursor")
			}
		}
		if pages, _ := walk("/v1/budgets?limit=2"); pages != 3 {
			t.Errorf("%d pages", pages)
		}

		var ids []string
		for i := range 3 {
			k := w.budgetTask(t, `"lane":"default"`)
			w.budgetReport(t, k, fmt.Sprintf(`{"tokens":%d}`, 10*(i+1)), "").wants(t, 200)
			ids = append(ids, k.id)
		}
		_, pages := walk("/v1/budgets/all/spend?limit=2")
		pages[0].shows(t, fields{"items.0.execution_id": ids[2], "items.0.epoch": 1, "items.0.used.tokens": 30, "items.0.total": 30, "items.1.execution_id": ids[1], "items.2": nil})
		pages[1].shows(t, fields{"items.0.execution_id": ids[0], "items.0.total": 10, "items.1": nil})
		w.get(t, "/v1/budgets/all/spend?execution="+bare(ids[1])).wants(t, 200).shows(t, fields{"items.0.execution_id": ids[1], "items.0.total": 20, "items.1": nil})
		w.get(t, "/v1/budgets/all/epochs").wants(t, 200).shows(t, fields{"items.0": nil})
		for _, more := range []int{7, 9} {
			w.budgetVerb(t, "all", "reset").wants(t, 200)
			w.budgetCharge(t, "all", fmt.Sprintf(`{"tokens":%d}`, more), `,"execution_id":"`+ids[0]+`"`).wants(t, 200)
		}
		w.get(t, "/v1/budgets/all/epochs").wants(t, 200).shows(t, fields{
			"items.0.epoch": 2, "items.0.dimensions.tokens.used": 7, "items.0.dimensions.tokens.overrun": 0, "items.1.epoch": 1, "items.1.dimensions.tokens.used": 60,
			"items.1.breach_count": 0, "items.2": nil,
		})
		w.get(t, "/v1/budgets/all/spend").wants(t, 200).shows(t, fields{"items.0.epoch": 3, "items.0.total": 9, "items.1": nil})
		w.get(t, "/v1/budgets/all/spend?epoch=2").wants(t, 200).shows(t, fields{"items.0.epoch": 2, "items.0.total": 7, "items.1": nil})
		w.get(t, "/v1/budgets/all/spend?epoch=1&execution="+bare(ids[0])).wants(t, 200).shows(t, fields{"items.0.total": 10, "items.1": nil})
		for _, of := range []string{"epochs", "spend"} {
			w.get(t, "/v1/budgets/missing/"+of).refuses(t, 404, "budget_not_found")
		}
	})
}

func TestB40_applicable_budgets_tell_what_admission_would_say_now(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "wide", budgetTokens(100)+`,"scope":{"type":"namespace"}`)
		narrow := w.budget(t, "narrow", budgetTokens(5))
		id := w.submit(t, `{"kind":"k",`+costing(5, "narrow")+`}`)
		w.get(t, at(id)+"/budgets").wants(t, 200).shows(t, fields{"admitted": true, "refusal": nil, "budgets.0.name": "narrow", "budgets.1.name": "wide", "budgets.1.dimensions.tokens.available": 100})
		w.budgetCharge(t, "narrow", `{"tokens":1}`, "").wants(t, 200)
		w.get(t, at(id)+"/budgets").wants(t, 200).shows(t, fields{
			"admitted": false, "refusal.blocked_on": "budget:" + narrow, "refusal.blocking_detail.dimension": "tokens", "refusal.blocking_detail.need": 5, "refusal.blocking_detail.available": 4,
			"budgets.0.dimensions.tokens.used": 1,
		})
		w.state(t, id, fields{"status": "ready"}) // looking changes nothing
		w.get(t, at("0190a5d0-ac96-774b-bcce-b302099a8057")+"/budgets").refuses(t, 404, "execution_not_found")
	})
}

func TestB41_explain_names_the_budget_its_numbers_and_who_holds_them(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, _ *clock.Manual) { // no boundary of the reset comes
		id := w.budget(t, "month", budgetTokens(26)+`,"reset":{"type":"calendar","unit":"month"}`)
		for range 12 {
			w.budgetTask(t, costing(2, "month"))
		}
		x := w.submit(t, `{"kind":"k",`+costing(5, "month")+`}`)
		w.claimsNothing(t, "default")
		got := w.get(t, at(x)+"/explain").wants(t, 200).shows(t, fields{
			"status": "blocked", "reason": "waiting_for_budget", "blockers.0.code": "budget", "blockers.0.data.budget_id": id, "blockers.0.data.dimension": "tokens",
			"blockers.0.data.need": 5, "blockers.0.data.available": 2, "blockers.0.data.next_reset_at": w.get(t, "/v1/budgets/month").field(t, "next_reset_at"),
		})
		if holders := got.items(t, "blockers.0.data.holders"); len(holders) != 10 {
			t.Errorf("%s", got.body)
		}
	})
}

func TestB42_definitions_and_breaches_are_told_by_events_and_single_reports_are_not(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id, _ := w.budgetAsks(t, "")
		w.budgetSays(t, id, "budget_approved", `,"payload":{"raise":{"tokens":1}}`).wants(t, 200)
		k := w.claim(t, "default")
		w.submit(t, `{"kind":"k",`+costing(9, "b")+`}`)
		w.claimsNothing(t, "default")
		w.budgetPatch(t, "b", `{"dimensions":{"tokens":{"soft":2}},"name":"renamed"}`).wants(t, 200)
		w.budgetPatch(t, "renamed", `{"name":"renamed"}`).wants(t, 200) // no change
		for range 3 {
			w.budgetReport(t, k, `{"tokens":1}`, "").wants(t, 200)
		}
		for _, verb := range []string{"close", "close", "reopen", "reopen", "reset"} {
			w.budgetVerb(t, "renamed", verb).wants(t, 200)
		}
		w.budget(t, "brief", budgetTokens(1))
		w.send(t, "DELETE", "/v1/budgets/brief", "").wants(t, 204)
		w.post(t, "/v1/budgets", `{"name":"bad","dimensions":{}}`).wants(t, 400)
		kinds := "budget.created,budget.updated,budget.closed,budget.reopened,budget.deleted,budget.reset,budget.soft_breach,budget.hard_breach,budget.approval_requested,budget.raised,execution.blocked,budget.other"
		var told []string
		for _, e := range w.toldByNow(t, kinds) {
			e.shows(t, fields{"namespace": w.namespace})
			told = append(told, e.text(t, "kind"))
			switch e.text(t, "kind") {
			case "budget.updated":
				e.shows(t, fields{"data.name": "renamed", "data.changed": []any{"name", "dimensions.tokens"}, "actor.id": "tester"})
			case "budget.reset":
				e.shows(t, fields{"data.epoch": 2, "data.cause": "operator", "data.used.tokens": 3})
			case "execution.blocked":
				e.shows(t, fields{"data.reason": "waiting_for_budget"})
			}
		}
		want := []string{
			"budget.created", "budget.hard_breach", "budget.approval_requested", "budget.raised", "execution.blocked", "budget.updated", "budget.soft_breach",
			"budget.closed", "budget.reopened", "budget.reset", "budget.created", "budget.deleted",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told  %v\nwanted %v", told, want)
		}
	})
}
