package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// keptFor opens the engine again with a default that keeps what succeeded for so long.
func (w *world) keptFor(ms base.Millis) {
	w.t.Helper()
	w.cfg.Retention = core.RetentionByStatus{Succeeded: &ms}
	w.restart()
}

func TestL139_a_shorter_default_retention_reaches_what_has_ended_before(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("kept", keeping(base.Day))
		plain := w.succeeded(core.Submission{})
		own := w.succeeded(core.Submission{PolicyJSON: []byte(`{"retention_ms":86400000}`)})
		lane := w.succeeded(core.Submission{Lane: "kept"})
		failed := w.started(core.Submission{})
		w.fail(failed, "permanent")
		w.pass(2 * base.Hour)
		later := w.succeeded(core.Submission{})
		w.keptFor(base.Hour)
		w.gone(plain)
		for _, id := range []base.GivenID{own, lane, given(failed), later} {
			w.get(id)
		}
		w.pass(base.Hour + base.Minute)
		w.gone(later)
		for _, id := range []base.GivenID{own, lane, given(failed)} {
			w.get(id)
		}
		w.pass(base.Day)
		w.gone(own)
		w.gone(lane)
	})
}

func TestL139_a_default_that_was_made_longer_and_shorter_again_reaches_what_ended_in_between(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Retention: keeping(base.Hour).RetentionMS}, func(t *testing.T, w *world) {
		w.keptFor(-1)
		endless := w.succeeded(core.Submission{})
		w.pass(2 * base.Hour)
		w.get(endless)
		w.keptFor(base.Hour)
		w.gone(endless)
		w.restart() // with the same
		w.keptFor(base.Day)
		w.pass(2 * base.Hour)
		w.get(w.succeeded(core.Submission{}))
	})
}
