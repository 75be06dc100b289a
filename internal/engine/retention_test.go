package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// noTrace fails the test if anything of an execution is left in the store but events and idempotency keys (L141).
func (w *world) noTrace(id base.GivenID) {
	w.t.Helper()
	owner := id.UUID.String()
	loaded := must(w.store.Read(w.ctx(), store.Want{
		Executions: []base.UUID{id.UUID}, Inputs: true, Results: true, History: []store.HistoryRef{{ID: id.UUID, All: true}},
		Scans: []store.Scan{{Kind: 4, Owner: owner}, {Kind: 5, Owner: owner}},
	}))(w.t)
	same(w.t, "rows left", [4]int{len(loaded.Executions), len(loaded.History), len(loaded.Scanned[0]), len(loaded.Scanned[1])}, [4]int{})
	dictionary := must(w.store.Dictionary(w.ctx()))(w.t)
	var want store.Want
	for _, class := range dictionary.Classes {
		want.Pick = append(want.Pick, store.Pick{Class: class.ID, Floor: math.MinInt64, Limit: 1000})
	}
	for _, row := range must(w.store.Read(w.ctx(), want))(w.t).Picked {
		if row.ID == id.UUID {
			w.t.Fatal("a queue row is left")
		}
	}
	hits := must(w.store.Find(w.ctx(), store.Query{Text: &store.Text{IDPrefix: owner}, Limit: 1}))(w.t)
	same(w.t, "search rows left", len(hits), 0)
}

func TestLC21_removal_takes_every_trace(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{
			Input: core.Payload{Data: []byte("in")}, Tags: base.Tags{"a": "b"}, PolicyJSON: []byte(`{"retention_ms":5000}`),
		})
		id := given(task)
		w.step(task, "s", "result")
		w.release(task)
		again := w.claim()
		must(w.e.Complete(w.ctx(), client, id, fence(again), &core.Payload{Data: []byte("out")}))(t)
		must(w.e.SetTags(w.ctx(), operator, id, map[string]*string{"c": ptr("d")}, engine.Operator{RequestKey: "k"}))(t)
		must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t)
		w.turn(4999)
		w.is(id, core.Succeeded, core.Completed)
		w.pass(1001)
		w.gone(id)
		_, err := w.e.Complete(w.ctx(), client, id, fence(again), nil)
		refused(t, err, base.CodeExecutionNotFound)
		same(t, "lists", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), 0)
		eventually(t, "search rows", func() bool {
			return len(must(w.store.Find(w.ctx(), store.Query{Text: &store.Text{IDPrefix: id.UUID.String()}, Limit: 1}))(t)) == 0
		})
		w.noTrace(id)
		same(t, "events have a retention of their own", len(w.story(id)) > 0, true)
	})
}

func TestI18_retention_while_the_search_rows_are_written_leaves_none_behind(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		task := w.started(core.Submission{PolicyJSON: []byte(`{"retention_ms":5000}`)})
		id := given(task)
		w.complete(task)
		must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t) // the follower has loaded it
		removed := make(chan struct{})
		loads := func(want store.Want) bool { return want.SkipUnreadable && slices.Contains(want.Executions, id.UUID) }
		b.afterRead.set(loads, func() {
			defer close(removed)
			w.pass(6000)
			eventually(t, "removal", func() bool {
				return len(must(w.store.Read(w.ctx(), store.Want{Executions: []base.UUID{id.UUID}}))(t).Executions) == 0
			})
		})
		must(w.e.SetTags(w.ctx(), operator, id, map[string]*string{"c": ptr("d")}, engine.Operator{}))(t) // the follower has to load it again
		<-removed
		same(t, "lists", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), 0)
		w.noTrace(id)
	})
}

func TestL139_policy_before_lane_before_defaults(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("short", core.LaneSettings{RetentionMS: core.RetentionByStatus{Succeeded: ptr(int64(10_000)), Failed: ptr(int64(-1))}})
		end := func(s core.Submission, class string) base.GivenID {
			task := w.started(s)
			if class == "" {
				w.complete(task)
			} else {
				w.fail(task, class)
			}
			return given(task)
		}
		byLane := end(core.Submission{Lane: "short"}, "")
		longer := end(core.Submission{Lane: "short", PolicyJSON: []byte(`{"retention_ms":{"succeeded":20000}}`)}, "")
		forever := end(core.Submission{Lane: "short"}, "permanent")
		shorter := end(core.Submission{Lane: "short", PolicyJSON: []byte(`{"retention_ms":{"failed":15000}}`)}, "permanent")
		w.lane("cancelled", core.LaneSettings{RetentionMS: core.RetentionByStatus{Cancelled: ptr(int64(0))}})
		atOnce := w.submit(core.Submission{Lane: "cancelled"})
		w.cancel(atOnce)
		byDefault := end(core.Submission{Lane: "cancelled"}, "")

		w.turn(50)
		w.gone(atOnce)
		w.turn(10_950)
		w.gone(byLane)
		w.turn(5000)
		w.gone(shorter)
		w.turn(5000)
		w.gone(longer)
		w.is(byDefault, core.Succeeded, core.Completed)
		w.turn(3 * base.Day)
		w.gone(byDefault)
		w.is(forever, core.Failed, core.Permanent)
	})
}

func TestL139_the_defaults_by_status(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		made := w.inEveryStatus()
		w.turn(3*base.Day - 120_000)
		for _, id := range made {
			w.get(id)
		}
		w.turn(240_000)
		w.gone(made[core.Succeeded])
		w.turn(4 * base.Day)
		w.gone(made[core.Cancelled])
		w.get(made[core.Failed])
		w.turn(7 * base.Day)
		w.gone(made[core.Failed])
		w.gone(made[core.Expired])
		w.get(made[core.Ready]) // what is not terminal stays
	})
}

func TestL140_what_is_retained_stays_and_hides_nothing_behind_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retention_ms":1000}`)
		var finished []base.GivenID
		for range 4 {
			task := w.started(s)
			w.complete(task)
			finished = append(finished, given(task))
		}
		must(w.e.Retain(w.ctx(), operator, finished[0], 0, engine.Operator{Reason: "legal"}))(t)
		must(w.e.Retain(w.ctx(), operator, finished[1], w.now()+60_000, engine.Operator{}))(t)
		refused(t, w.e.Delete(w.ctx(), operator, finished[0], engine.Operator{}), base.CodeRetained)
		w.turn(2000)
		w.gone(finished[2])
		w.gone(finished[3])
		w.get(finished[0])
		w.get(finished[1])
		w.turn(60_000)
		w.gone(finished[1])
		w.get(finished[0])
		must(w.e.Unretain(w.ctx(), operator, finished[0], engine.Operator{}))(t)
		w.turn(1000)
		w.gone(finished[0])
	})
}

func TestU55_delete_removes_what_is_terminal_and_nothing_else(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for status, id := range w.inEveryStatus() {
			if !status.Terminal() {
				w.untouched(id, func() error { return w.e.Delete(w.ctx(), operator, id, engine.Operator{}) }, base.CodeExecutionNotTerminal)
				continue
			}
			ok(t, w.e.Delete(w.ctx(), operator, id, engine.Operator{Reason: "gdpr"}))
			_, err := w.e.Describe(w.ctx(), client, id)
			refused(t, err, base.CodeExecutionNotFound)
			same(t, "event", w.count(id, "execution.deleted"), 1)
			w.noTrace(id)
		}
	})
}

func TestL110_a_replayed_execution_is_not_removed_by_the_timer_of_its_first_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.started(policy(`{"retention_ms":10000}`))
		id := given(task)
		w.complete(task)
		w.turn(5000)
		w.replay(id)
		w.hold(id)
		w.turn(10_000)
		marker := w.started(policy(`{"retention_ms":0}`)) // when this is gone, the sweep has passed
		w.complete(marker)
		w.turn(1000)
		w.gone(given(marker))
		w.get(id)
	})
}
