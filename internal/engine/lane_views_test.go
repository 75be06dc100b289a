package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func (w *world) laneView(c engine.Caller, name string) engine.LaneView {
	w.t.Helper()
	return must(w.e.GetLane(w.ctx(), c, name))(w.t)
}

func TestU100_a_lane_shows_since_when_its_oldest_ready_execution_waits(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("default", core.LaneSettings{})
		same(t, "nothing is ready", w.laneView(client, "default").OldestReady, 0)
		first := w.submit(core.Submission{})
		since := w.now()
		w.turn(50)
		w.submit(core.Submission{Priority: 9})
		w.submit(core.Submission{DelayMS: ptr(int64(10))})
		same(t, "the first", w.laneView(client, "default").OldestReady, since)
		w.cancel(first)
		same(t, "the next", w.laneView(client, "default").OldestReady, since+50)
	})
}

func TestS2_the_counts_of_a_lane_hold_what_was_committed_before_the_call(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for n := 1; n <= 3; n++ {
			id := w.submit(core.Submission{Lane: "l"})
			same(t, "ready", w.laneView(client, "l").Counts[core.Ready], 1)
			w.cancel(id)
			views, _, err := w.e.Lanes(w.ctx(), client, "", nil)
			ok(t, err)
			for _, view := range views {
				if view.Lane.Name == "l" {
					same(t, "counts", view.Counts, map[core.Status]int{core.Cancelled: n})
				}
			}
		}
	})
}

func TestU100_a_lane_shows_how_many_live_workers_take_from_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("l", core.LaneSettings{})
		w.register(core.Registration{WorkerID: "w", InstanceID: "a", Lanes: []string{"l", "m"}})
		w.register(core.Registration{WorkerID: "w", InstanceID: "b", Lanes: []string{"l"}, Namespaces: []string{"elsewhere"}})
		w.register(core.Registration{WorkerID: "w", InstanceID: "c", Lanes: []string{"m"}})
		w.register(core.Registration{WorkerID: "w", InstanceID: "d", Lanes: []string{"l"}})
		ok(t, w.e.MarkDead(w.ctx(), operator, "d", "gone", false))
		same(t, "all", w.laneView(client, "l").Workers, 2)
		same(t, "of a namespace", w.laneView(engine.Caller{Actor: "client", Namespaces: []string{"default"}}, "l").Workers, 1)
	})
}

func TestU100_rates_are_averages_over_one_and_five_minutes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(600_000 - int64(w.now())%5000)
		w.submitMany(120, core.Submission{})
		for range 30 {
			w.complete(w.claim())
		}
		w.turn(59_999)
		w.submit(core.Submission{Namespace: "elsewhere"})
		near := func(what string, got, want float64) {
			t.Helper()
			if got < want*0.9 || got > want*1.1 {
				t.Fatalf("%s: %f a second, want %f", what, got, want)
			}
		}
		rates := w.laneView(client, "default").Rates
		near("submitted", rates.Submitted.OneMinute, 2)
		near("submitted in five", rates.Submitted.FiveMinutes, 0.4)
		near("started", rates.Started.OneMinute, 0.5)
		near("completed", rates.Completed.OneMinute, 0.5)
		same(t, "of another namespace", w.laneView(engine.Caller{Actor: "client", Namespaces: []string{"elsewhere"}}, "default").Rates.Started, engine.Rate{})
		w.turn(60_000)
		same(t, "after a minute", w.laneView(engine.Caller{Actor: "client", Namespaces: []string{"default"}}, "default").Rates.Submitted.OneMinute, 0)
		near("in five still", w.laneView(client, "default").Rates.Submitted.FiveMinutes, 0.4)
		w.turn(300_000)
		same(t, "after five", w.laneView(client, "default").Rates, engine.Rates{})
		w.submit(core.Submission{Lane: "other"}) // forgets lanes in which nothing happens
		same(t, "a lane that was forgotten", w.laneView(client, "default").Rates, engine.Rates{})
	})
}

func TestU100_each_process_counts_what_all_of_them_do(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		w.submitMany(10, core.Submission{})
		eventually(t, "the other hears of it", func() bool {
			return must(other.GetLane(w.ctx(), client, "default"))(t).Rates.Submitted.OneMinute > 0
		})
	})
}

func TestU17_a_stale_revision_of_a_lane_is_refused_with_the_present_one(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.PutLane(w.ctx(), operator, "l", core.LaneSettings{}, engine.Operator{Revision: ptr(int64(0))})
		refused(t, err, base.CodeLaneNotFound)
		w.lane("l", core.LaneSettings{MaxConcurrent: 3})
		present := w.laneView(client, "l").Lane.Revision
		put := engine.Operator{Revision: &present, RequestKey: "once"}
		changed := must(w.e.PutLane(w.ctx(), operator, "l", core.LaneSettings{MaxConcurrent: 4}, put))(t)
		same(t, "revision", changed.Lane.Revision, present+1)
		again := must(w.e.PutLane(w.ctx(), operator, "l", core.LaneSettings{MaxConcurrent: 4}, put))(t)
		same(t, "a repeat is recognised first", again.Lane.Revision, present+1)
		for _, state := range []core.LaneState{core.LaneActive, core.LanePaused, core.LaneDraining, core.LaneDisabled} {
			_, err := w.e.SetLaneState(w.ctx(), operator, "l", state, engine.Operator{Revision: &present})
			same(t, "current", refused(t, err, base.CodePreconditionFailed).Details["revision"], any(present+1))
		}
		_, err = w.e.PutLane(w.ctx(), operator, "l", core.LaneSettings{MaxConcurrent: 4}, engine.Operator{Revision: &present})
		refused(t, err, base.CodePreconditionFailed)
		paused := must(w.e.SetLaneState(w.ctx(), operator, "l", core.LanePaused, engine.Operator{Revision: ptr(present + 1)}))(t)
		same(t, "paused", [2]any{paused.Lane.Settings.State, paused.Lane.Revision}, [2]any{core.LanePaused, present + 2})
	})
}
