package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// everyLimit attaches the quota q, of one slot and two admissions a window, and the budget team, of 10 tokens.
func (w *world) everyLimit() core.Submission {
	w.quota("q", core.QuotaSettings{RateLimit: 2, WindowMS: 60_000, ConcurrencyLimit: 1})
	w.create(tokens("team", 10))
	return policy(`{"quotas":[{"quota":"q"}],"budget_ids":["team"],"estimate":{"tokens":8}}`)
}

// taken is what admission has taken: slots, admissions that count, tokens that are reserved.
func (w *world) taken() [3]int64 {
	w.t.Helper()
	used := w.inUse("q")
	return [3]int64{int64(used.Held), int64(used.Admitted), w.numbers("team")[1]}
}

func TestSI5_B13_S40_after_the_end_of_a_grant_everything_is_as_before_and_a_claim_of_it_is_not_admitted_again(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		s := w.everyLimit()
		for name, end := range map[string]func(g engine.Grant){
			"return": func(g engine.Grant) { ok(t, w.e.ReturnGrant(w.ctx(), client, g.Key)) },
			"expiry": func(g engine.Grant) { w.pass(5000); w.becomes(g.ID.Given(), core.Ready) },
			"cancel": func(g engine.Grant) { w.cancel(g.ID.Given()) },
			"hold":   func(g engine.Grant) { w.hold(g.ID.Given()) },
		} {
			g := w.granted(s)
			same(t, name+": granted", w.taken(), [3]int64{1, 1, 8})
			end(g)
			same(t, name+": over", w.taken(), [3]int64{0, 0, 0})
			if !w.get(g.ID.Given()).Status.Terminal() {
				w.cancel(g.ID.Given())
			}
		}
		g := w.granted(s)
		w.quota("q", core.QuotaSettings{RateLimit: 1, WindowMS: 60_000, ConcurrencyLimit: 1}) // it has its admission
		task := w.claimGrant(g)
		same(t, "claimed", w.taken(), [3]int64{1, 1, 8})
		w.complete(task)
		same(t, "S40: a lease gives its admission not back", w.taken(), [3]int64{0, 1, 0})
	})
}

func TestL43_S46_who_is_refused_is_blocked_and_granted_when_there_is_room(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		s := w.everyLimit()
		g := w.granted(s)
		waits := w.submit(s)
		same(t, "no room", len(w.grants(ask())), 0)
		if x := w.get(waits); x.Status != core.Blocked || x.BlockedOn == "" {
			t.Fatalf("%s %q", x.Status, x.BlockedOn)
		}
		w.untouched(waits, func() error { _, err := w.e.GrantOne(w.ctx(), client, waits, worker2()); return err }, base.CodeAdmissionRefused)
		w.complete(w.claimGrant(g))
		next := w.grantAs(ask())
		same(t, "granted", next.ID, waits.ID())
		w.complete(w.claimGrant(next))
	})
}

func TestL113_what_a_revoked_lease_had_taken_is_there_for_the_worker_that_it_is_handed_to(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(w.everyLimit())
		answer := must(w.e.Revoke(w.ctx(), operator, given(task), toSecond(), engine.Operator{}))(t)
		if answer.Refused != nil {
			t.Fatalf("not handed over: %v", answer.Refused)
		}
		same(t, "the slot and the tokens once, a second admission", w.taken(), [3]int64{1, 2, 8})
		w.complete(must(w.e.ClaimGrant(w.ctx(), client, answer.Grant.Key, otherClaimer))(t))
		same(t, "over", w.taken(), [3]int64{0, 2, 0})
	})
}

func TestS31_U30_a_repeated_claim_of_a_grant_tells_what_is_left(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.create(tokens("team", 100))
		g := w.granted(costing(10, "team"))
		first := w.claimGrant(g)
		same(t, "left", first.Remaining, map[base.UUID]map[string]int64{b.ID: {"tokens": 100}})
		w.report(first, 30)
		again := w.claimGrant(g)
		same(t, "the same lease", again.Execution.Lease.ID, first.Execution.Lease.ID)
		same(t, "left by now", again.Remaining, map[base.UUID]map[string]int64{b.ID: {"tokens": 70}})
	})
}
