package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// keeping are settings of a lane that keep what succeeded for so long.
func keeping(ms base.Millis) core.LaneSettings {
	return core.LaneSettings{RetentionMS: core.RetentionByStatus{Succeeded: &ms}}
}

// succeeded is an execution that has.
func (w *world) succeeded(s core.Submission) base.GivenID {
	w.t.Helper()
	task := w.started(s)
	w.complete(task)
	return given(task)
}

func TestL139_a_shorter_retention_of_the_lane_reaches_what_has_ended_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("l", keeping(-1))
		endless := w.succeeded(core.Submission{Lane: "l"})
		own := w.succeeded(core.Submission{Lane: "l", PolicyJSON: []byte(`{"retention_ms":86400000}`)})
		elsewhere := w.succeeded(core.Submission{Lane: "default"})
		w.lane("l", keeping(base.Hour))
		w.pass(base.Minute)
		w.get(endless)
		hour := w.succeeded(core.Submission{Lane: "l"})
		w.lane("l", keeping(1000))
		w.pass(5000)
		w.gone(endless)
		w.gone(hour)
		w.get(own)
		w.get(elsewhere)
	})
}

func TestL139_from_the_default_to_less_and_then_to_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		first := w.succeeded(core.Submission{Lane: "l"})
		w.lane("l", keeping(base.Hour))
		w.pass(5000)
		second := w.succeeded(core.Submission{Lane: "l"})
		w.lane("l", keeping(2*base.Hour))
		marker := w.succeeded(policy(`{"retention_ms":3660000}`))
		w.pass(base.Hour + 2*base.Minute)
		w.gone(marker)
		w.get(first)
		w.get(second)
		w.pass(base.Hour)
		w.gone(first)
		w.gone(second)
	})
}

func TestL139_a_shorter_retention_survives_a_crash_in_the_middle_of_the_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const rows = 1100 // more than are armed at a time
		stop := &stopAfter{name: "retire_lane", left: 1}
		w.cfg.Probe = stop
		w.restart()
		w.submitMany(rows/2, core.Submission{Lane: "l"})
		w.submitMany(rows/2, core.Submission{Lane: "l"})
		f := core.Filter{Lane: []string{"l"}}
		same(t, "cancelled", w.bulk(engine.BulkRequest{Action: "cancel", Filter: f}).Done, rows)
		w.lane("l", core.LaneSettings{RetentionMS: core.RetentionByStatus{Cancelled: ptr(int64(0))}})
		w.pass(5000)
		eventually(t, "the work stops in the middle", func() bool { return stop.refused.Load() > 0 })
		eventually(t, "the first part is gone", func() bool { return must(w.e.Count(w.ctx(), client, f))(t).Total == rows-1000 })
		stop.open.Store(true)
		w.restart()
		w.pass(5000)
		eventually(t, "all are gone", func() bool { return must(w.e.Count(w.ctx(), client, f))(t).Total == 0 })
	})
}

func TestU54_a_bulk_retain_with_an_end_ends(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := policy(`{"retention_ms":1000}`)
		id := w.succeeded(s)
		must(w.e.Retain(w.ctx(), operator, id, 0, engine.Operator{}))(t)
		marker := w.succeeded(s)
		w.pass(10_000)
		w.gone(marker) // so that the timer of its retention is gone too
		until := w.now() + 5000
		w.bulk(engine.BulkRequest{Action: "retain", Args: engine.BulkArgs{Until: until}, IDs: []base.GivenID{id}})
		same(t, "until", w.get(id).Retain.Until, until)
		w.pass(6000)
		w.gone(id)
	})
}
