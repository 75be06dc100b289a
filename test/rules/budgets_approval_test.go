package rules

import (
	"net/url"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

// budgetAsks makes a budget that asks for approval, with these fields, and work that has breached it; it answers the waitpoint too.
func (w *world) budgetAsks(t testing.TB, more string) (id, waitpoint string) {
	t.Helper()
	w.budget(t, "b", budgetTokens(10)+`,"on_hard":"suspend_for_approval"`+more)
	k := w.budgetTask(t, costing(4, "b"))
	w.budgetReport(t, k, `{"tokens":11}`, "").wants(t, 200).shows(t, fields{"action": "suspended"})
	return k.id, w.get(t, at(k.id)+"/suspension").wants(t, 200).text(t, "waitpoints.0.waitpoint_id")
}

// budgetSays sends the decision of an operator.
func (w *world) budgetSays(t testing.TB, id, name, more string) reply {
	t.Helper()
	return w.post(t, at(id)+"/approve", `{"name":"`+name+`"`+more+`}`)
}

// budgetDecides lets somebody without an account decide by a link.
func (w *world) budgetDecides(t testing.TB, waitpoint, decision string) {
	t.Helper()
	link := w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann@example.com"}`).wants(t, 201)
	address, err := url.Parse(link.text(t, "url"))
	if err != nil {
		t.Fatal(err)
	}
	w.post(t, address.EscapedPath(), `{"decision":"`+decision+`"}`).wants(t, 200).shows(t, fields{"outcome": "decided"})
}

func TestB29_a_breach_suspends_the_work_and_asks(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id, waitpoint := w.budgetAsks(t, `,"approval":{"timeout_ms":60000,"timeout_behavior":"cancel"}`)
		s := w.get(t, at(id)+"/suspension").wants(t, 200).shows(t, fields{
			"reason_code": "paused_by_budget", "timeout_behavior": "cancel", "waitpoints.0.waitpoint_key": "budget", "waitpoints.1": nil, "cause": nil,
			"resume_condition.type": "any_of", "resume_condition.members.2": nil,
			"resume_condition.members.0.type": "count", "resume_condition.members.0.n": 1, "resume_condition.members.0.count_kind": "distinct_signals",
			"resume_condition.members.0.name": "budget_approved", "resume_condition.members.0.source_types": []any{"operator", "approver"},
			"resume_condition.members.1.type": "count", "resume_condition.members.1.n": 1, "resume_condition.members.1.count_kind": "distinct_signals",
			"resume_condition.members.1.name": "budget_denied", "resume_condition.members.1.source_types": []any{"operator", "approver"},
		})
		from, _ := time.Parse(time.RFC3339, s.text(t, "suspended_at"))
		if to, _ := time.Parse(time.RFC3339, s.text(t, "timeout_at")); to.Sub(from) != time.Minute {
			t.Errorf("%s", s.body)
		}
		w.get(t, "/v1/waitpoints/"+waitpoint).wants(t, 200).shows(t, fields{"state": "active", "waitpoint_key": "budget", "token_kid": nil, "token_fingerprint": nil})
		w.budgetTold(t, "budget.approval_requested", fields{
			"budget_id": w.get(t, "/v1/budgets/b").text(t, "budget_id"), "waitpoint_id": waitpoint, "dimension": "tokens", "used": 0, "hard": 10, "attempted": 11,
		})
		w.get(t, "/v1/approvals").wants(t, 200).shows(t, fields{"items.0.execution_id": id, "items.0.reason_code": "paused_by_budget", "items.1": nil})
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": 0, "live_holds": 0})
		link := w.post(t, "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann@example.com"}`).wants(t, 201)
		w.get(t, "/v1/waitpoints/"+waitpoint+"/links").wants(t, 200).shows(t, fields{
			"items.0.link_id": link.text(t, "link_id"), "items.0.decisions.0.signal_name": "budget_approved", "items.0.decisions.1.signal_name": "budget_denied", "items.0.decisions.2": nil,
		})
	})
}

func TestB30_an_operator_approves_and_says_by_how_much(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, _ *clock.Manual) { // no boundary of the reset comes
		id, waitpoint := w.budgetAsks(t, `,"approval":{"default_raise":{"tokens":100}},"reset":{"type":"interval","every_ms":86400000,"anchor_at":"2020-01-01T00:00:00Z"}`)
		for _, raise := range []string{`{"tokens":0}`, `{"tokens":-1}`, `{"tokens":1.5}`, `{"tokens":9007199254740992}`, `{"pages":1}`, `{}`, `7`} {
			w.budgetSays(t, id, "budget_approved", `,"payload":{"raise":`+raise+`}`).refuses(t, 400, "invalid_signal")
		}
		token := w.get(t, at(id)+"/waitpoints/"+waitpoint+"/token").wants(t, 200).text(t, "token")
		w.post(t, "/v1/waitpoints/"+waitpoint+"/signals", `{"token":"`+token+`","name":"budget_approved","payload":{"raise":{"tokens":5}}}`).refuses(t, 400, "invalid_signal")
		w.post(t, "/v1/waitpoints/"+waitpoint+"/signals", `{"token":"`+token+`","name":"budget_approved"}`).wants(t, 200) // from outside: it does not count
		w.state(t, id, fields{"status": "suspended"})
		w.budgetShows(t, "b", fields{"dimensions.tokens.effective_hard": 10})
		w.budgetSays(t, id, "budget_approved", `,"payload":{"raise":{"tokens":5}}`).wants(t, 200).shows(t, fields{"outcome": "accepted"})
		b := w.budgetShows(t, "b", fields{"dimensions.tokens.hard": 10, "dimensions.tokens.effective_hard": 15, "dimensions.tokens.available": 15, "revision": 1})
		w.budgetTold(t, "budget.raised", fields{"budget_id": b.text(t, "budget_id"), "dimension": "tokens", "raise": 5, "by": "tester", "until": b.field(t, "next_reset_at")})
		w.get(t, at(id)+"/suspension").wants(t, 200).shows(t, fields{"cause": "budget_approved"})
		k := w.claim(t, "default")
		k.shows(t, fields{k.of("execution_id"): id, k.of("resumed.cause"): "budget_approved", k.of("attempt.attempt_index"): 0, k.of("remaining." + b.text(t, "budget_id") + ".tokens"): 15})
		w.state(t, id, fields{"total_attempts": 1})
		w.budgetReport(t, k, `{"tokens":11}`, "").wants(t, 200).shows(t, fields{"outcome": "ok"})
		w.budgetVerb(t, "b", "reset").wants(t, 200).shows(t, fields{"dimensions.tokens.hard": 10, "dimensions.tokens.effective_hard": 10, "dimensions.tokens.available": 10})
	})
}

func TestB30_without_a_word_it_grows_by_the_default_or_by_nothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  string
		limit int
	}{"default": {`,"approval":{"default_raise":{"tokens":3}}`, 13}, "nothing": {"", 10}} {
		for by, decide := range map[string]func(t *testing.T, w *world, id, waitpoint string){
			"operator": func(t *testing.T, w *world, id, _ string) { w.budgetSays(t, id, "budget_approved", "").wants(t, 200) },
			"link":     func(t *testing.T, w *world, _, waitpoint string) { w.budgetDecides(t, waitpoint, "approve") },
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				onEveryStore(t, func(t *testing.T, w *world) {
					id, waitpoint := w.budgetAsks(t, c.more)
					w.budgetCharge(t, "b", `{"tokens":7}`, "").wants(t, 200)
					decide(t, w, id, waitpoint)
					w.budgetShows(t, "b", fields{"dimensions.tokens.effective_hard": c.limit})
					if c.limit == 10 { // admission is by the numbers: it needs 4 and there are 3
						w.claimsNothing(t, "default")
						w.budgetBlocked(t, id, fields{"need": 4, "available": 3})
						w.budgetTold(t, "budget.raised")
						return
					}
					if k := w.claim(t, "default"); k.id != id {
						t.Errorf("%s", k.body)
					}
					w.budgetTold(t, "budget.raised", fields{"raise": 3, "until": nil})
				})
			})
		}
	}
}

func TestB31_a_denial_ends_the_execution(t *testing.T) {
	t.Parallel()
	for by, deny := range map[string]func(t *testing.T, w *world, id, waitpoint string){
		"operator": func(t *testing.T, w *world, id, _ string) { w.budgetSays(t, id, "budget_denied", "").wants(t, 200) },
		"link":     func(t *testing.T, w *world, _, waitpoint string) { w.budgetDecides(t, waitpoint, "reject") },
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				id, waitpoint := w.budgetAsks(t, `,"approval":{"default_raise":{"tokens":3}}`)
				deny(t, w, id, waitpoint)
				w.state(t, id, fields{"status": "failed", "reason": "budget_exceeded", "failure.category": "budget_exceeded"})
				w.get(t, at(id)+"/suspension").wants(t, 200).shows(t, fields{"cause": "budget_denied"})
				w.get(t, "/v1/waitpoints/"+waitpoint).wants(t, 200).shows(t, fields{"state": "closed", "close_reason": "denied"})
				w.budgetShows(t, "b", fields{"dimensions.tokens.effective_hard": 10})
				w.claimsNothing(t, "default")
			})
		})
	}
}
