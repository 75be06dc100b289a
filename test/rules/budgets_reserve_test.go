package rules

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestB9_admission_asks_for_the_estimate_else_the_default_and_at_least_for_one(t *testing.T) {
	t.Parallel()
	const reserving = `"dimensions":{"tokens":{"hard":10,"default_reserve":4}}`
	for name, c := range map[string]struct {
		dimensions     string
		used, estimate int // -1: none
		need, reserved int // need of one that is refused; reserved of one that is admitted
	}{
		"the estimate fits":              {reserving, 3, 7, 0, 7},
		"the estimate does not":          {reserving, 4, 7, 7, 0},
		"the default fits":               {reserving, 6, -1, 0, 4},
		"the default does not":           {reserving, 7, -1, 4, 0},
		"an estimate of 0 fits with 1":   {reserving, 9, 0, 0, 0},
		"an estimate of 0 does not":      {reserving, 10, 0, 1, 0},
		"neither fits with 1":            {budgetTokens(10), 9, -1, 0, 0},
		"neither does not":               {budgetTokens(10), 10, -1, 1, 0},
		"without a hard limit it counts": {`"dimensions":{"tokens":{"soft":1,"default_reserve":4}}`, 50, 7, 0, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				id := w.budget(t, "b", c.dimensions)
				w.budgetCharge(t, "b", fmt.Sprintf(`{"tokens":%d}`, c.used), "").wants(t, 200)
				work := `{"kind":"k","budget_ids":["b"]}`
				if c.estimate >= 0 {
					work = `{"kind":"k",` + costing(c.estimate, "b") + `}`
				}
				x := w.submit(t, work)
				told := w.get(t, at(x)+"/budgets").wants(t, 200).shows(t, fields{"admitted": c.need == 0})
				got := w.claims(t, `"lanes":["default"]`)
				if admitted := len(got) == 1; admitted != (c.need == 0) {
					t.Fatalf("admitted: %v", admitted)
				}
				if c.need > 0 {
					told.shows(t, fields{"refusal.blocked_on": "budget:" + id, "refusal.blocking_detail.need": c.need, "refusal.blocking_detail.available": 10 - c.used})
					w.budgetBlocked(t, x, fields{"dimension": "tokens", "need": c.need, "available": 10 - c.used})
				}
				w.budgetHas(t, "b", c.used, c.reserved, 0)
			})
		})
	}
}

func TestB9_B10_B11_every_budget_and_dimension_is_asked_and_all_or_nothing_is_taken(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		wide := w.budget(t, "wide", budgetTokens(100)+`,"scope":{"type":"namespace"}`)
		narrow := w.budget(t, "narrow", `"dimensions":{"a":{"hard":100},"tokens":{"hard":100},"z":{"hard":2}}`)
		work := `{"kind":"k","budget_ids":["narrow"],"estimate":{"a":1,"tokens":5,"z":3}}`
		refused := w.submit(t, work)
		next := w.submit(t, `{"kind":"k",`+costing(2, "narrow")+`}`)
		if got := w.claims(t, `"lanes":["default"],"max":2`); len(got) != 1 || got[0].id != next {
			t.Fatalf("the call does not go on with the next candidate: %v", got)
		}
		w.budgetBlocked(t, refused, fields{"dimension": "z", "need": 3, "available": 2, "next_reset_at": nil})
		w.state(t, refused, fields{"total_attempts": 0, "lease": nil, "started_at": nil})
		w.budgetShows(t, "wide", fields{"dimensions.tokens.reserved": 2, "live_holds": 1, "holders.0.execution_id": next, "holders.0.lease_epoch": 1, "holders.1": nil, "blocked_executions": 0, "breach_count": 0})
		w.budgetShows(t, "narrow", fields{"dimensions.a.reserved": 0, "dimensions.tokens.reserved": 2, "dimensions.z.reserved": 0, "live_holds": 1, "blocked_executions": 1, "breach_count": 0})
		w.get(t, at(next)+"?view=full").wants(t, 200).shows(t, fields{
			"budgets.0.budget_id": narrow, "budgets.0.reserved.tokens": 2, "budgets.1.budget_id": wide, "budgets.1.reserved.tokens": 2, "budgets.2": nil,
		})
		told := w.toldByNow(t, "execution.blocked")
		if len(told) != 1 {
			t.Fatalf("%d events", len(told))
		}
		told[0].shows(t, fields{
			"execution_id": refused, "data.reason": "waiting_for_budget", "data.blocked_on": "budget:" + narrow,
			"data.blocking_detail.dimension": "z", "data.blocking_detail.need": 3, "data.blocking_detail.available": 2,
		})
	})
}

func TestB10_claims_at_once_never_take_the_same_room_twice(t *testing.T) {
	t.Parallel()
	const work, room, each = 20, 5, 7
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(room*each+each-1))
		for range work {
			w.submit(t, `{"kind":"k",`+costing(each, "b")+`}`)
		}
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range work {
			wg.Go(func() { taken.Add(int64(len(w.claims(t, `"lanes":["default"]`)))) })
		}
		wg.Wait()
		if taken.Load() != room {
			t.Errorf("%d were admitted", taken.Load())
		}
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": room * each, "dimensions.tokens.available": each - 1, "live_holds": room})
	})
}

func TestB11_only_what_is_ready_is_blocked_on_a_budget(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10))
		w.budgetCharge(t, "b", `{"tokens":10}`, "").wants(t, 200)
		held := w.submit(t, `{"kind":"k",`+costing(1, "b")+`}`)
		w.post(t, at(held)+"/hold", `{}`).wants(t, 200)
		delayed := w.submit(t, `{"kind":"k","delay_ms":3600000,`+costing(1, "b")+`}`)
		g := w.flow(t, `{"kind":"f","nodes":[{"name":"a","kind":"k"},{"name":"b","kind":"k","after":["a"],`+costing(1, "b")+`}]}`)
		first := w.claim(t, "default")
		w.claimsNothing(t, "default")
		as := func() {
			t.Helper()
			w.state(t, held, fields{"status": "blocked", "reason": "paused_by_operator"})
			w.state(t, delayed, fields{"status": "delayed", "reason": "waiting_for_delay"})
			w.state(t, g.member(t, "b"), fields{"status": "blocked", "reason": "waiting_for_children"})
			w.budgetShows(t, "b", fields{"blocked_executions": 0})
		}
		as()
		w.budgetVerb(t, "b", "reset").wants(t, 200) // what waits for something else is not let go either
		w.claimsNothing(t, "default")
		as()
		w.complete(t, first, `1`)
		if got := w.claim(t, "default"); got.id != g.member(t, "b") {
			t.Errorf("%s", got.body)
		}
	})
}

func TestB12_soft_limits_never_block(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", `"dimensions":{"tokens":{"hard":100,"soft":1},"pages":{"soft":1},"calls":{}}`)
		w.budgetCharge(t, "b", `{"tokens":50,"pages":50,"calls":50}`, "").wants(t, 200).shows(t, fields{"outcome": "soft_breach"})
		for range 2 {
			k := w.budgetTask(t, `"budget_ids":["b"],"estimate":{"tokens":20,"pages":1000,"calls":1000}`)
			w.budgetReport(t, k, `{"pages":5,"calls":5}`, "").wants(t, 200).shows(t, fields{"outcome": "soft_breach", "applied": true})
		}
		w.budgetShows(t, "b", fields{
			"dimensions.pages.used": 60, "dimensions.pages.reserved": 1990, "dimensions.calls.used": 60, "dimensions.calls.overrun": 0, "dimensions.tokens.reserved": 40,
			"exhausted.0": nil, "breach_count": 0,
		})
	})
}

func TestB13_a_grant_reserves_and_gives_back_and_resumed_work_is_admitted_anew(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.budget(t, "b", budgetTokens(10))
		id := w.submit(t, `{"kind":"k","priority":9,`+costing(6, "b")+`}`)
		other := w.submit(t, `{"kind":"k",`+costing(6, "b")+`}`)
		grant := func() string {
			got := w.post(t, "/v1/work/grants", `{`+w.me()+`,"lanes":["default"],"max":2,"wait_ms":60000,"grant_ttl_ms":60000}`).wants(t, 200)
			if len(got.items(t, "grants")) != 1 {
				t.Fatalf("%s", got.body)
			}
			return got.text(t, "grants.0.grant_key")
		}
		key := grant()
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": 6, "live_holds": 1, "holders.0.execution_id": id, "holders.0.lease_epoch": 1})
		w.budgetBlocked(t, other, fields{"need": 6, "available": 4})
		w.post(t, "/v1/work/grants/return", `{"grant_key":"`+key+`"}`).wants(t, 204)
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": 0, "live_holds": 0})
		claimed := w.post(t, "/v1/work/grants/claim", `{`+w.me()+`,"grant_key":"`+grant()+`"}`).wants(t, 200).shows(t, fields{"execution_id": id})
		w.budgetShows(t, "b", fields{"dimensions.tokens.reserved": 6, "live_holds": 1, "holders.0.lease_epoch": claimed.field(t, "lease.lease_epoch")})
		k := task{id: id, fence: claimed.text(t, "lease.fence")}
		w.post(t, at(other)+"/cancel", `{}`).wants(t, 200)

		w.under(t, k, "suspend", `"resume_condition":{"type":"operator_only"}`).wants(t, 200)
		w.budgetHas(t, "b", 0, 0, 0)
		w.budgetCharge(t, "b", `{"tokens":5}`, "").wants(t, 200)
		w.post(t, at(id)+"/resume", `{}`).wants(t, 200)
		w.claimsNothing(t, "default")
		w.budgetBlocked(t, id, fields{"need": 6, "available": 5})
		w.budgetPatch(t, "b", `{"dimensions":{"tokens":{"hard":11}}}`).wants(t, 200)
		if again := w.claim(t, "default"); again.id != id {
			t.Errorf("%s", again.body)
		}
		w.budgetHas(t, "b", 5, 6, 0)
	})
}
