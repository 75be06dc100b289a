package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
)

func TestB13_B14_B15_B16_B17_B28_B29_what_time_brings_about(t *testing.T) {
	t.Parallel()
	atOwnTime(t, func(t *testing.T, w *world, hand *clock.Manual) {
		budgetTimeIsMeasured(t, w, hand)
		budgetTimeIsUsedUp(t, w, hand)
		budgetLeasesRunOut(t, w, hand)
	})
}

// budgetWall checks what of a budget's time is used, reserved and overrun.
func (w *world) budgetWall(t testing.TB, budget string, used, reserved, overrun int) {
	t.Helper()
	w.budgetShows(t, budget, fields{"dimensions.wall_ms.used": used, "dimensions.wall_ms.reserved": reserved, "dimensions.wall_ms.overrun": overrun})
}

// budgetLong submits work with these fields and takes it for a day.
func (w *world) budgetLong(t testing.TB, fields string) task {
	t.Helper()
	id := w.submit(t, `{"kind":"k",`+fields+`}`)
	got := w.claims(t, `"lanes":["default"],"wait_ms":60000,"lease_ttl_ms":86400000`)
	if len(got) != 1 || got[0].id != id {
		t.Fatalf("claimed %v", got)
	}
	return got[0]
}

// budgetTimeIsMeasured shows B17 under block_new: time is booked at the exit, holds of it are extended, the surplus is overrun.
func budgetTimeIsMeasured(t *testing.T, w *world, hand *clock.Manual) {
	becomes := func(name, field string, want float64) { // by the sweep
		t.Helper()
		comes(t, fmt.Sprintf("%s of %s is %v", field, name, want), func() bool { return w.get(t, "/v1/budgets/"+name).field(t, field) == want })
	}
	extended := func(name string, to float64) { t.Helper(); becomes(name, "dimensions.wall_ms.reserved", to) }
	w.budget(t, "time", `"dimensions":{"wall_ms":{"hard":10000}}`)
	k := w.budgetLong(t, `"budget_ids":["time"],"estimate":{"wall_ms":4000}`)
	w.budgetReport(t, k, `{"wall_ms":1}`, "").refuses(t, 400, "reserved_dimension").shows(t, fields{"field": "/usage/wall_ms"})
	w.budgetWall(t, "time", 0, 4000, 0)
	budgetPass(hand, 4000*time.Millisecond)
	extended("time", 8000) // by the same amount
	budgetPass(hand, 4000*time.Millisecond)
	extended("time", 10_000) // by what is left
	from := hand.Now()
	budgetPass(hand, 4000*time.Millisecond) // past the end: block_new lets it go on
	becomes("time", "breach_count", 1)
	w.budgetTold(t, "budget.hard_breach", fields{"dimension": "wall_ms", "action": "none", "hard": 10_000})
	w.state(t, k.id, fields{"status": "running"})
	w.complete(t, k, `1`)
	all := int(8100 + hand.Now().Sub(from).Milliseconds())
	w.budgetWall(t, "time", 10_000, 0, all-10_000)
	w.budgetMeter(t, k.id, fields{"wall_ms": all})
	w.budgetShows(t, "time", fields{"exhausted.0": "wall_ms", "last_breach.dimension": "wall_ms", "last_breach.execution_id": k.id})

	w.budget(t, "minute", `"dimensions":{"wall_ms":{"hard":100000}}`) // it is not said how much: a minute, or what there is
	k = w.budgetLong(t, `"budget_ids":["minute"]`)
	w.budgetWall(t, "minute", 0, 60_000, 0)
	other := w.budgetLong(t, `"budget_ids":["minute"]`)
	w.budgetWall(t, "minute", 0, 100_000, 0)
	hand.TurnTo(hand.Now().Add(1500 * time.Millisecond))
	w.complete(t, other, `1`)
	w.budgetWall(t, "minute", 1500, 60_000, 0)
	w.complete(t, k, `1`)
	w.budgetWall(t, "minute", 3000, 0, 0)
	w.budgetMeter(t, other.id, fields{"wall_ms": 1500})
}

// budgetTimeIsUsedUp shows B17 and B27 for the other actions, and B29 for an approval that is not given.
func budgetTimeIsUsedUp(t *testing.T, w *world, hand *clock.Manual) {
	for action, want := range map[string]fields{
		"fail":                 {"status": "failed", "reason": "budget_exceeded"},
		"suspend_for_approval": {"status": "suspended", "reason": "waiting_for_budget"},
		"cancel_running":       {"status": "cancelled", "reason": "budget_exceeded"},
	} {
		w.budget(t, action, `"dimensions":{"wall_ms":{"hard":5000}},"on_hard":"`+action+`","approval":{"timeout_ms":60000}`)
		k := w.budgetLong(t, `"budget_ids":["`+action+`"]`)
		w.budgetWall(t, action, 0, 5000, 0)
		hand.TurnTo(hand.Now().Add(5000 * time.Millisecond))
		w.under(t, k, "progress", `"percent":1`).wants(t, 409) // W2: it needs no sweep
		w.state(t, k.id, want)
		w.budgetWall(t, action, 5000, 0, 0)
		w.budgetShows(t, action, fields{"breach_count": 1, "last_breach.dimension": "wall_ms"})
		if action == "suspend_for_approval" { // B29: no answer comes
			budgetPass(hand, time.Minute)
			w.budgetBecomes(t, k.id, "failed")
		}
	}
}

// budgetLeasesRunOut shows how leases, grants and deadlines that end give back or forfeit (B13..B15), and what late commands do (B16, B28).
func budgetLeasesRunOut(t *testing.T, w *world, hand *clock.Manual) {
	w.budget(t, "strict", budgetTokens(100)+`,"on_lease_loss":"forfeit"`)
	w.budget(t, "b", budgetTokens(100)+`,"on_hard":"fail"`)
	k := w.budgetTask(t, `"budget_ids":["strict","b"],"estimate":{"tokens":40}`)
	w.budgetReport(t, k, `{"tokens":10}`, "").wants(t, 200)
	budgetPass(hand, time.Minute)
	w.budgetBecomes(t, k.id, "ready")
	w.budgetHas(t, "strict", 40, 0, 0)
	w.budgetHas(t, "b", 10, 0, 0)
	w.budgetCharge(t, "b", `{"tokens":85}`, "").wants(t, 200)
	w.budgetReport(t, k, `{"tokens":6}`, "").wants(t, 200).shows(t, fields{"outcome": "hard_breach", "applied": false, "action": "none"}) // B28: it is late
	w.under(t, k, "complete", `"usage":{"tokens":30}`).wants(t, 200).shows(t, fields{"status": "succeeded", "late": true})
	w.budgetHas(t, "b", 100, 0, 25)
	w.budgetHas(t, "strict", 70, 0, 0)
	w.budgetMeter(t, k.id, fields{"tokens": 40})

	w.budget(t, "g", budgetTokens(10))
	w.submit(t, `{"kind":"k",`+costing(6, "g")+`}`)
	granted := w.post(t, "/v1/work/grants", `{`+w.me()+`,"lanes":["default"],"wait_ms":60000}`).wants(t, 200).text(t, "grants.0.execution_id")
	w.budgetHas(t, "g", 0, 6, 0)
	budgetPass(hand, 6*time.Second)
	w.budgetBecomes(t, granted, "ready")
	w.budgetShows(t, "g", fields{"dimensions.tokens.reserved": 0, "live_holds": 0})
	w.post(t, at(granted)+"/cancel", `{}`).wants(t, 200)

	deadline := hand.Now().Add(20 * time.Second).Format(time.RFC3339Nano)
	k = w.budgetTask(t, costing(6, "g")+fmt.Sprintf(`,"deadline_at":%q`, deadline))
	budgetPass(hand, 20*time.Second)
	w.budgetBecomes(t, k.id, "expired")
	w.budgetShows(t, "g", fields{"dimensions.tokens.reserved": 0, "dimensions.tokens.used": 0, "live_holds": 0})
}
