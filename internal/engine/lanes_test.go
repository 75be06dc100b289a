package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestS1_the_first_submit_registers_its_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.GetLane(w.ctx(), client, "fresh")
		refused(t, err, base.CodeLaneNotFound)
		_, err = w.e.SetLaneState(w.ctx(), operator, "fresh", core.LanePaused, engine.Operator{})
		refused(t, err, base.CodeLaneNotFound)
		w.submit(core.Submission{Lane: "fresh", DelayMS: ptr(int64(100))})
		lane := must(w.e.GetLane(w.ctx(), client, "fresh"))(t).Lane
		same(t, "registered by", [2]any{lane.RegisteredBy, lane.Settings.State}, [2]any{"submit", core.LaneActive})
		w.turn(100) // timers cover every lane
		r := ask()
		r.Lanes = []string{"fresh"}
		w.complete(w.claimAs(r))
		page := must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: core.Filter{Lane: []string{"fresh"}}}))(t)
		same(t, "listed", len(page.Items), 1)
	})
}

func TestS2_lanes_are_listed_by_name_with_counts(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, name := range []string{"c", "a", "b"} {
			w.lane(name, core.LaneSettings{})
		}
		w.submitMany(3, core.Submission{Lane: "b"})
		w.started(core.Submission{Lane: "a"})
		r := engine.ListRequest{Filter: core.Filter{Lane: []string{"a", "b"}}}
		must(w.e.List(w.ctx(), client, r))(t) // waits for the search rows
		counts := must(w.e.GetLane(w.ctx(), client, "b"))(t).Counts
		same(t, "counts of b", counts, map[core.Status]int{core.Ready: 3})
		same(t, "counts of a", must(w.e.GetLane(w.ctx(), client, "a"))(t).Counts, map[core.Status]int{core.Running: 1})
		names, cursor := []string{}, ""
		for {
			lanes, next, err := w.e.Lanes(w.ctx(), client, cursor, ptr(2))
			ok(t, err)
			for _, lane := range lanes {
				names = append(names, lane.Lane.Name)
			}
			if cursor = next; next == "" {
				break
			}
		}
		same(t, "names", names, []string{"a", "b", "c"})
		_, _, err := w.e.Lanes(w.ctx(), client, "nonsense", nil)
		refused(t, err, base.CodeInvalidCursor)
	})
}

func TestS2_put_lane_states_the_whole_record_and_has_bounds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("l", core.LaneSettings{State: core.LanePaused, MaxConcurrent: 3, AgeingMS: 10, Fairness: "key", FairnessWeights: map[string]int{"a": 2}})
		w.lane("l", core.LaneSettings{MaxConcurrent: 4})
		settings := must(w.e.GetLane(w.ctx(), client, "l"))(t).Lane.Settings
		same(t, "absent settings take the default", settings, core.LaneSettings{State: core.LaneActive, MaxConcurrent: 4, Fairness: "auto"})
		before := len(w.events(engine.EventFilter{Kinds: []string{"lane.changed"}}))
		w.lane("l", core.LaneSettings{MaxConcurrent: 4})
		same(t, "the same again emits nothing", len(w.events(engine.EventFilter{Kinds: []string{"lane.changed"}})), before)
		must(w.e.SetLaneState(w.ctx(), operator, "l", core.LaneDraining, engine.Operator{}))(t)
		same(t, "the state alone", must(w.e.GetLane(w.ctx(), client, "l"))(t).Lane.Settings.MaxConcurrent, 4)
		for _, bad := range []core.LaneSettings{
			{MaxConcurrent: -1},
			{MaxConcurrent: 1_000_001},
			{AgeingMS: -1},
			{AgeingMS: 1e12 + 1},
			{Fairness: "odd"},
			{FairnessWeights: map[string]int{"a": 0}},
			{FairnessWeights: map[string]int{"a": 1001}},
			{FairnessWeights: map[string]int{"": 1}},
			{RetentionMS: core.RetentionByStatus{Failed: ptr(int64(-2))}},
			{State: 9},
		} {
			_, err := w.e.PutLane(w.ctx(), operator, "l", bad, engine.Operator{})
			refused(t, err, base.CodeInvalidArgument)
		}
		_, err := w.e.PutLane(w.ctx(), operator, "a b", core.LaneSettings{}, engine.Operator{})
		refused(t, err, base.CodeInvalidArgument)
	})
}

func TestS3_every_cell_of_the_table_of_lane_states(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, state := range []core.LaneState{core.LaneActive, core.LanePaused, core.LaneDraining, core.LaneDisabled} {
			lane := state.String()
			s := core.Submission{Lane: lane, PolicyJSON: []byte(`{"retry_policy":{"max_retries":9,"backoff":{"strategy":"fixed","delay_ms":100}}}`)}
			r := ask()
			r.Lanes = []string{lane}
			finished := w.started(s)
			w.complete(finished)
			running, retried, rested, lapsed := w.started(s), w.started(s), w.started(s), w.started(s)
			_, err := w.renew(lapsed, 500)
			ok(t, err)
			delayed, stopped := w.submit(core.Submission{Lane: lane, DelayMS: ptr(int64(100))}), w.submit(s)
			w.lane(lane, core.LaneSettings{State: state})
			open, accepting := state.Claimable(), state.Accepting()

			_, err = w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Lane: lane})
			_, replayErr := w.e.Replay(w.ctx(), operator, given(finished), engine.ReplayRequest{}, engine.Operator{})
			if accepting {
				ok(t, err)
				ok(t, replayErr)
			} else {
				refused(t, err, base.CodeLaneNotAccepting)
				refused(t, replayErr, base.CodeLaneNotAccepting)
			}

			w.fail(retried, "")
			w.delay(rested, w.now()+100)
			w.pass(500)
			for _, id := range []base.GivenID{given(retried), given(rested), given(lapsed), delayed} {
				w.becomes(id, core.Ready)
			}

			got := w.take(r)
			same(t, lane+": a pick finds work", len(got) == 1, open)
			w.hold(stopped)
			w.releaseHold(stopped)
			_, err = w.e.OperatorClaim(w.ctx(), operator, stopped, engine.TargetedRequest{})
			if open {
				if base.CodeOf(err) != "" && base.CodeOf(err) != base.CodeLeaseConflict {
					t.Fatal(err)
				}
			} else {
				refused(t, err, base.CodeLaneNotClaimable)
			}

			w.renewed(running)
			w.complete(running)
			w.cancel(delayed)
			same(t, lane+": reads", w.get(given(running)).Status, core.Succeeded)
		}
	})
}

func TestS4_pausing_changes_no_row_and_emits_one_event(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		before := w.get(id)
		w.lane("default", core.LaneSettings{State: core.LanePaused})
		w.nothing()
		same(t, "the row", w.get(id), before)
		w.lane("default", core.LaneSettings{})
		events := w.events(engine.EventFilter{Kinds: []string{"lane.changed"}})
		same(t, "events", len(events), 2)
		same(t, "filter by lane", len(w.events(engine.EventFilter{Kinds: []string{"lane.changed"}, Lane: "default"})), 2)
		same(t, "old and new", fmt.Sprint(data(t, events[0])["old"].(map[string]any)["state"], data(t, events[0])["new"].(map[string]any)["state"]), "activepaused")
		w.complete(w.claim())
	})
}

func TestS4_SI12_no_lease_commits_after_a_pause_was_acknowledged(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(300, core.Submission{})
		after := w.leasesAfter("lane.changed", func() { w.lane("default", core.LaneSettings{State: core.LanePaused}) })
		same(t, "leases behind the pause", after, 0)
	})
}

func TestS5_SI9_a_pick_respects_the_cap_and_lowering_it_revokes_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.capped("default", 3)
		w.submitMany(10, core.Submission{})
		r := ask()
		r.Max = 10
		tasks := w.take(r)
		same(t, "at the cap", len(tasks), 3)
		w.nothing()
		w.delay(tasks[0], w.now().Add(base.Day)) // delayed ones do not count
		same(t, "one place", len(w.take(r)), 1)
		w.lane("default", core.LaneSettings{MaxConcurrent: 1})
		w.complete(tasks[1])
		w.nothing()
		w.complete(tasks[2])
		w.nothing() // one is still running
		w.lane("default", core.LaneSettings{MaxConcurrent: 2})
		same(t, "raised", len(w.take(r)), 1)
		w.lane("default", core.LaneSettings{})
		same(t, "no cap", len(w.take(r)), 5)
	})
}

// capped sets a cap and waits until what runs is counted.
func (w *world) capped(lane string, places int) {
	w.t.Helper()
	w.lane(lane, core.LaneSettings{MaxConcurrent: places})
	eventually(w.t, "the count of "+lane, func() bool {
		return !must(w.e.GetLane(w.ctx(), client, lane))(w.t).Lane.Counting
	})
}

func TestS5_every_way_out_of_running_frees_its_place(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{MaxConcurrent: 1})
		s := policy(`{"retry_policy":{},"slots_while_waiting":"hold"}`)
		for name, leave := range map[string]func(task engine.Task){
			"complete": func(task engine.Task) { w.complete(task) },
			"fail":     func(task engine.Task) { w.fail(task, "permanent") },
			"retry":    func(task engine.Task) { w.fail(task, "") },
			"delay":    func(task engine.Task) { w.delay(task, w.now().Add(base.Day)) },
			"release":  func(task engine.Task) { w.hold(given(task)); w.release(task) },
			"revoke":   func(task engine.Task) { w.hold(given(task)); w.revoke(given(task)) },
			"cancel":   func(task engine.Task) { w.cancel(given(task)) },
			"lapse": func(task engine.Task) {
				w.hold(given(task))
				w.turn(30_000)
				w.becomes(given(task), core.Blocked)
			},
		} {
			task := w.started(s)
			w.nothing()
			leave(task)
			next := w.submit(core.Submission{})
			if got := w.claim(); given(got) != next {
				t.Fatalf("%s: %s", name, got.Execution.ID)
			} else {
				w.complete(got)
			}
			w.cancelQuietly(given(task))
		}
	})
}

func TestS5_setting_a_cap_first_counts_what_runs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(8, core.Submission{})
		r := ask()
		r.Max = 4
		running := w.take(r)
		same(t, "running", len(running), 4)
		w.lane("default", core.LaneSettings{MaxConcurrent: 5})
		answer := <-w.waiting(w.e, r)
		same(t, "one more place", len(answer.Tasks), 1)
		w.nothing()
		for _, task := range running {
			w.complete(task)
		}
		same(t, "four are free again, three wait", len(w.take(r)), 3)
		w.lane("default", core.LaneSettings{})
		w.capped("default", 4) // removed and set again: counted once each
		w.submit(core.Submission{})
		w.nothing()
	})
}
