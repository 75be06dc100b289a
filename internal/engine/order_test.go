package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// drain claims everything and returns the ids in order.
func (w *world) drain(r engine.ClaimRequest) []base.GivenID {
	w.t.Helper()
	ids := []base.GivenID{}
	for {
		tasks := w.take(r)
		if len(tasks) == 0 {
			return ids
		}
		for _, task := range tasks {
			ids = append(ids, given(task))
		}
	}
}

func TestSC2_priority_then_age_across_all_partitions_and_classes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		type item struct {
			id       base.GivenID
			priority int
			at       base.Time
		}
		w.lane("default", core.LaneSettings{Fairness: core.FairnessOff}) // else namespaces take turns
		var items []item
		random := testseed.New(t)
		for i := range 60 {
			p := random.IntN(4)
			s := core.Submission{Kind: fmt.Sprint("k", i%7), Priority: p, Namespace: fmt.Sprint("n", i%3)}
			items = append(items, item{w.submit(s), p, w.now()})
			w.turn(1)
		}
		slices.SortStableFunc(items, func(a, b item) int {
			if a.priority != b.priority {
				return b.priority - a.priority
			}
			return int(a.at - b.at)
		})
		want := []base.GivenID{}
		for _, it := range items {
			want = append(want, it.id)
		}
		r := ask()
		r.Max = 7
		same(t, "order", w.drain(r), want)
	})
}

func TestS6_ties_go_by_UUID(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := w.submitMany(20, core.Submission{})
		slices.SortFunc(ids, func(a, b base.GivenID) int { return slices.Compare(a.UUID[:], b.UUID[:]) })
		same(t, "order", w.drain(ask()), ids)
	})
}

func TestS7_SC2_retry_and_replay_queue_behind_and_release_and_reclaim_come_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		step := func(s core.Submission) engine.Task {
			task := w.started(s)
			w.turn(1)
			return task
		}
		retried := step(policy(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":100}}}`))
		replayed, released, lapsed := step(core.Submission{}), step(core.Submission{}), step(core.Submission{})
		fresh := w.submit(core.Submission{})
		w.turn(1)
		w.complete(replayed)
		w.replay(given(replayed))
		w.fail(retried, "")
		w.release(released)
		w.pass(30_000)
		w.becomes(given(lapsed), core.Ready)
		w.becomes(given(retried), core.Ready)
		same(t, "order", w.drain(ask()), []base.GivenID{given(released), given(lapsed), fresh, given(replayed), given(retried)})
	})
}

func TestS6_with_ageing_old_work_passes_new_work_of_higher_priority(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{AgeingMS: 1000})
		w.workedOff("refile_lane") // which holds rows that a claim then passes over
		old := w.submit(core.Submission{Priority: 1})
		w.turn(4001)
		young := w.submit(core.Submission{Priority: 5}) // queued more than 4 x 1000 later
		younger := w.submit(core.Submission{Priority: 6})
		same(t, "order", w.drain(ask()), []base.GivenID{younger, old, young})
	})
}

func TestS8_a_switch_of_ageing_refiles_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		old := w.submit(core.Submission{})
		w.turn(10_000)
		high := w.submit(core.Submission{Priority: 3})
		held := w.submit(core.Submission{Priority: 9})
		w.hold(held)
		w.lane("default", core.LaneSettings{AgeingMS: 1000})
		eventually(t, "old is refiled", func() bool { return w.get(old).OrderKey < w.get(high).OrderKey })
		eventually(t, "high is refiled", func() bool { return w.get(high).OrderKey == int64(w.get(high).QueuedAt)-3*1000 })
		w.releaseHold(held)
		same(t, "order", w.drain(ask()), []base.GivenID{old, held, high})
		third, fourth := w.submit(core.Submission{}), w.submit(core.Submission{Priority: 1})
		w.lane("default", core.LaneSettings{})
		eventually(t, "refiled again", func() bool { return w.get(fourth).OrderKey == int64(w.get(fourth).QueuedAt)-1e12 })
		same(t, "order", w.drain(ask()), []base.GivenID{fourth, third})
	})
}

func TestS12_SI2_SC3_capabilities_match_as_subset_and_who_does_not_match_changes_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		needs := func(tokens string) core.Submission {
			return policy(`{"routing_requirements":{"required_capabilities":[` + tokens + `]}}`)
		}
		both, one, none := w.submit(needs(`"b","a","b"`)), w.submit(needs(`"a"`)), w.submit(core.Submission{})
		upper := w.submit(needs(`"A"`))
		same(t, "sorted and unique", w.get(both).Class.Capabilities, []string{"a", "b"})
		offer := func(tokens ...string) []base.GivenID {
			r := ask()
			r.Capabilities = tokens
			return w.drain(r)
		}
		before := w.get(both)
		same(t, "disjoint", offer("z"), []base.GivenID{none})
		same(t, "pooled capabilities of two workers do not count", offer("b"), []base.GivenID{})
		same(t, "equal", offer("a"), []base.GivenID{one})
		same(t, "a worker that does not match changes nothing (SI2)", w.get(both), before)
		same(t, "superset", offer("c", "b", "a"), []base.GivenID{both})
		same(t, "case counts", offer("A"), []base.GivenID{upper})
	})
}

func TestSC3_bad_capabilities_are_refused_with_side_and_why(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for why, token := range map[string]string{"empty_token": "", "comma": "a,b", "whitespace_or_control": "a b"} {
			r := ask()
			r.Capabilities = []string{token}
			_, err := w.e.Claim(w.ctx(), client, r)
			refusal := refused(t, err, base.CodeInvalidCapabilities)
			same(t, "details", [2]any{refusal.Details["side"], refusal.Details["why"]}, [2]any{"worker", why})
			_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", PolicyJSON: fmt.Appendf(nil, `{"routing_requirements":{"required_capabilities":[%q]}}`, token)})
			refusal = refused(t, err, base.CodeInvalidCapabilities)
			same(t, "details", [2]any{refusal.Details["side"], refusal.Details["why"]}, [2]any{"required", why})
		}
		many := make([]string, 257)
		for i := range many {
			many[i] = fmt.Sprint("t", i)
		}
		r := ask()
		r.Capabilities = many
		_, err := w.e.Claim(w.ctx(), client, r)
		same(t, "why", refused(t, err, base.CodeInvalidCapabilities).Details["why"], any("too_many_tokens"))
		r.Capabilities = many[:256]
		w.take(r)
	})
}

func TestS12_SC3_ten_thousand_unmatched_rows_in_front_hide_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true // ten thousand rows that were not touched
		w.submitMany(10_000, core.Submission{Priority: 9, PolicyJSON: []byte(`{"routing_requirements":{"required_capabilities":["gpu"]}}`)})
		id := w.submit(core.Submission{})
		tasks := w.take(ask())
		same(t, "found by one call", len(tasks), 1)
		same(t, "found", given(tasks[0]), id)
	})
}

func TestS13_more_classes_than_one_transaction_asks_are_still_in_order(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		all := make([]core.Submission, 150)
		for i := range all {
			all[i] = core.Submission{Kind: fmt.Sprint("k", i), Priority: (i * 37) % 150}
		}
		want := make([]base.GivenID, len(all))
		for i, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(t) {
			ok(t, item.Err)
			want[len(all)-1-all[i].Priority] = item.ID.Given()
		}
		w.restart() // a process that knows nothing of the queues
		r := ask()
		r.Max = 20
		same(t, "order", w.drain(r), want)
	})
}
