package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// underQuota is a submission whose policy is attached to the quota q and says more.
func underQuota(more string) core.Submission {
	if more != "" {
		more = "," + more
	}
	return policy(`{"quotas":[{"quota":"q"}]` + more + `}`)
}

// ranked are the executions of a submit in the order in which claims take them: those of one moment by id.
func ranked(ids []base.GivenID) []base.GivenID {
	return slices.SortedFunc(slices.Values(ids), func(a, b base.GivenID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
}

// inUse is the use of a quota that has no keys.
func (w *world) inUse(id string) engine.QuotaKeyView {
	w.t.Helper()
	keys := must(w.e.Quota(w.ctx(), client, id))(w.t).Keys
	if len(keys) == 0 {
		return engine.QuotaKeyView{}
	}
	return keys[0]
}

// blockedOn fails the test unless the execution waits for that key.
func (w *world) blockedOn(id base.GivenID, key string) {
	w.t.Helper()
	same(w.t, "blocked on", w.is(id, core.Blocked, core.WaitingForQuota).BlockedOn, key)
}

func TestS40_SC11_a_rate_admits_so_many_and_the_next_one_at_exactly_the_moment_that_is_told(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 3, WindowMS: 10_000})
		ids := ranked(w.submitMany(5, underQuota("")))
		first := w.now()
		w.claim()
		w.turn(1000)
		w.claim()
		w.claim()
		w.nothing()
		w.blockedOn(ids[3], "rate:q")
		used := w.inUse("q")
		same(t, "use", [3]any{used.Admitted, used.Blocked, used.NextFree}, [3]any{3, 1, first.Add(10_000)})
		answer := w.waiting(w.e, ask())
		w.turnTo(first.Add(9_999))
		w.nothing()
		w.turn(1)
		same(t, "admitted", given(w.only(answer)), ids[3])
		w.nothing()
		w.turn(999)
		w.nothing()
		w.turn(1)
		same(t, "the last one", given(w.claim()), ids[4])
	})
}

func TestS40_a_retry_is_an_admission_and_going_on_is_none(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 2, WindowMS: 60_000})
		task := w.started(underQuota(`"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":100}}`))
		w.fail(task, "")
		w.pass(100)
		task = w.claim()
		same(t, "admissions", w.inUse("q").Admitted, 2)
		for range 2 {
			w.suspend(task, operatorOnly)
			_, _, err := w.resume(given(task), core.ResumeCommand{})
			ok(t, err)
			task = w.claim()
		}
		same(t, "as many as before", w.inUse("q").Admitted, 2)
		w.fail(task, "")
		w.pass(100)
		w.becomes(given(task), core.Ready)
		w.nothing()
		w.blockedOn(given(task), "rate:q")
	})
}

func TestS32_S40_a_grant_that_ends_unused_gives_slot_and_admission_back(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 1, ConcurrencyLimit: 1})
		taken := func() [2]int {
			used := w.inUse("q")
			return [2]int{used.Admitted, used.Held}
		}
		grant := w.granted(underQuota(""))
		same(t, "granted", taken(), [2]int{1, 1})
		ok(t, w.e.ReturnGrant(w.ctx(), client, grant.Key))
		same(t, "returned", taken(), [2]int{})
		same(t, "granted again", len(w.grants(ask())), 1)
		w.pass(5000)
		w.becomes(grant.ID.Given(), core.Ready)
		same(t, "expired", taken(), [2]int{})
		again := w.grants(ask())
		same(t, "granted once more", len(again), 1)
		w.complete(w.claimGrant(again[0]))
		same(t, "used: the start counts on, the slot is free", taken(), [2]int{1, 0})
	})
}

func TestS40_each_key_has_a_window_of_its_own(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 1, ConcurrencyLimit: 1, PerKey: true})
		for _, key := range []string{"a", "b", "c"} {
			w.submitMany(2, attached(use("q", key)))
		}
		r := ask()
		r.Max = 10
		same(t, "one of each", len(w.take(r)), 3)
		same(t, "keys", len(must(w.e.Quota(w.ctx(), client, "q"))(t).Keys), 3)
	})
}

// lets are the ways in which an execution lets go of its slot.
var lets = map[string]struct {
	policy string
	leave  func(w *world, task engine.Task)
}{
	"complete": {"", func(w *world, task engine.Task) { w.complete(task) }},
	"fail":     {"", func(w *world, task engine.Task) { w.fail(task, "") }},
	"retry":    {`"retry_policy":{}`, func(w *world, task engine.Task) { w.fail(task, "") }},
	"cancel":   {"", func(w *world, task engine.Task) { w.cancel(given(task)) }},
	"suspend":  {"", func(w *world, task engine.Task) { w.suspend(task, operatorOnly) }},
	"delay":    {"", func(w *world, task engine.Task) { w.delay(task, w.now().Add(60_000)) }},
	"release":  {`"slots_while_waiting":"hold"`, func(w *world, task engine.Task) { w.release(task) }},
	"lapse":    {`"slots_while_waiting":"hold"`, func(w *world, task engine.Task) { w.turn(task.Execution.Lease.TTL) }},
	"revoke":   {`"slots_while_waiting":"hold"`, func(w *world, task engine.Task) { w.revoke(given(task)) }},
	"deadline": {`"timeout_policy":{"execution_deadline_ms":5000}`, func(w *world, _ engine.Task) { w.pass(5000) }},
	"timeout":  {`"timeout_policy":{"attempt_timeout_ms":5000}`, func(w *world, _ engine.Task) { w.pass(5000) }},
	"dead": {`"slots_while_waiting":"hold"`, func(w *world, _ engine.Task) {
		if err := w.e.MarkDead(w.ctx(), operator, "w1", "it burns", true); err != nil {
			w.t.Fatal(err)
		}
	}},
}

func TestS41_whatever_ends_the_run_frees_one_slot_and_the_best_that_waits_starts(t *testing.T) {
	t.Parallel()
	for name, way := range lets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
				task := w.started(underQuota(way.policy))
				urgent := underQuota("")
				urgent.Priority = 9
				w.submit(underQuota(""))
				best := w.submit(urgent)
				answer := w.waiting(w.e, ask())
				w.blockedOn(best, "slots:q")
				same(t, "held", w.inUse("q").Held, 1)
				way.leave(w, task)
				same(t, "next", given(w.only(answer)), best)
				same(t, "held", w.inUse("q").Held, 1)
				r := ask()
				r.InstanceID = "w2"
				same(t, "there is no room for another", len(w.take(r)), 0)
			})
		})
	}
}

func TestS41_slots_that_are_held_while_waiting_are_kept_until_the_next_lease_ends(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		task := w.started(underQuota(`"slots_while_waiting":"hold"`))
		other := underQuota("")
		other.Priority = 9
		behind := w.submit(other)
		w.suspend(task, operatorOnly)
		w.nothing()
		same(t, "held", w.inUse("q").Held, 1)
		_, _, err := w.resume(given(task), core.ResumeCommand{})
		ok(t, err)
		again := w.claim()
		same(t, "who has the slot goes on", given(again), given(task))
		w.delay(again, w.now().Add(1000))
		w.nothing()
		w.pass(1000)
		again = w.claim()
		same(t, "and again", given(again), given(task))
		w.complete(again)
		same(t, "then the other", given(w.claim()), behind)
	})
}

func TestS46_a_key_that_lanes_share_is_not_kept_by_one_without_workers(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		task := w.started(underQuota(""))
		idle := underQuota("")
		idle.Lane, idle.Priority = "idle", 9
		w.submitMany(3, idle)
		r := ask()
		r.Lanes = []string{"idle"}
		same(t, "no room", len(w.take(r)), 0) // from now on no worker comes there
		behind := w.submit(underQuota(""))
		answer := w.waiting(w.e, ask())
		w.complete(task)
		same(t, "next", given(w.only(answer)), behind)
	})
}

func TestS48_a_row_blocked_on_one_key_that_meets_another_full_one_is_then_blocked_on_that(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("k1", core.QuotaSettings{ConcurrencyLimit: 1})
		w.quota("k2", core.QuotaSettings{ConcurrencyLimit: 1})
		first := w.started(attached(use("k1")))
		both := w.submit(attached(use("k1"), use("k2")))
		w.nothing()
		w.blockedOn(both, "slots:k1")
		second := w.started(attached(use("k2")))
		w.complete(first)
		w.nothing()
		w.blockedOn(both, "slots:k2")
		same(t, "nothing is taken of what has room (S44)", w.inUse("k1").Held, 0)
		same(t, "blocked once", w.count(both, "execution.blocked"), 1)
		w.complete(second)
		same(t, "taken", given(w.claim()), both)
		same(t, "both are held", [2]int{w.inUse("k1").Held, w.inUse("k2").Held}, [2]int{1, 1})
	})
}

func TestS44_SC14_a_refusal_by_the_last_quota_leaves_no_trace_on_the_first_budget_and_rate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("rate", core.QuotaSettings{RateLimit: 1})
		w.quota("slots", core.QuotaSettings{ConcurrencyLimit: 1})
		w.create(tokens("team", 10))
		task := w.started(attached(use("slots")))
		id := w.submit(policy(`{"quotas":[{"quota":"rate"},{"quota":"slots"}],"budget_ids":["team"],"estimate":{"tokens":4}}`))
		w.nothing()
		w.nothing()
		w.blockedOn(id, "slots:slots")
		same(t, "admissions", w.inUse("rate").Admitted, 0)
		same(t, "reserved", w.numbers("team"), [3]int64{})
		w.complete(task)
		same(t, "taken", given(w.claim()), id)
		same(t, "admissions", w.inUse("rate").Admitted, 1)
		same(t, "reserved", w.numbers("team"), [3]int64{0, 4, 0})
	})
}

func TestS43_a_limit_that_is_raised_lowered_or_deleted_acts_from_its_commit(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		ids := ranked(w.submitMany(5, underQuota("")))
		first := w.claim()
		answer := w.waiting(w.e, ask())
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 2})
		second := w.only(answer)
		same(t, "raised", given(second), ids[1])
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1})
		w.nothing()
		same(t, "nothing is revoked", [2]core.Status{w.get(given(first)).Status, w.get(given(second)).Status}, [2]core.Status{core.Running, core.Running})
		w.complete(first)
		w.nothing() // one is in use, and that is the limit
		w.complete(second)
		same(t, "enough are free", given(w.claim()), ids[2])
		w.nothing()
		answer = w.waiting(w.e, ask())
		ok(t, w.deleteQuota("q", true))
		same(t, "it limits nothing", given(w.only(answer)), ids[3])
		w.claim()
	})
}

func TestS47_deleting_a_quota_sends_its_blocked_rows_through_the_gate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{RateLimit: 1, PerKey: true})
		blocked := map[string]base.GivenID{}
		for i := range 3 {
			key := fmt.Sprint(i)
			ids := ranked(w.submitMany(2, attached(use("q", key))))
			w.claim()
			blocked[key] = ids[1]
		}
		w.nothing()
		for key, id := range blocked {
			w.blockedOn(id, "rate:q/"+key)
		}
		ok(t, w.deleteQuota("q", true))
		for _, id := range blocked {
			w.becomes(id, core.Ready)
			same(t, "it forgets why", w.get(id).BlockedOn, "")
		}
		for range blocked {
			w.claim()
		}
		eventually(t, "its admissions are forgotten", func() bool {
			rates := store.Scan{Kind: 27}
			return len(must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{rates}}))(t).Scanned[0]) == 0
		})
	})
}

func TestS46_SC13_ten_thousand_rows_blocked_on_one_key_keep_its_ten_slots_busy(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 10})
		ids := ranked(w.submitMany(10_000, underQuota("")))
		r := ask()
		r.Max = 1000
		running := w.take(r)
		same(t, "taken", len(running), 10)
		for i := 10; i < 110; i++ {
			w.complete(running[0])
			next := w.claim()
			same(t, "the best that waits", given(next), ids[i])
			running = append(running[1:], next)
		}
		same(t, "held", w.inUse("q").Held, 10)
	})
}

func TestS42_a_storm_of_a_thousand_crashes_leaves_no_slot_behind(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1000})
		w.submitMany(1000, underQuota(`"max_reclaim_count":0`))
		r := ask()
		r.Max, r.TTL = 1000, 5000
		same(t, "taken", len(w.take(r)), 1000)
		same(t, "held", w.inUse("q").Held, 1000)
		w.pass(5000)
		eventually(t, "all slots are free", func() bool { return w.inUse("q").Held == 0 })
		same(t, "differences", must(w.e.Integrity(w.ctx()))(t).Differences, nil)
	})
}
