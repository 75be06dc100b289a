package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
)

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// wanted is how many signals of a name are there, and how many are missing, as an explanation tells it.
type wanted struct {
	Name             string
	Present, Missing int
}

func TestS57_signals_that_have_come_are_told_as_present(t *testing.T) {
	t.Parallel()
	const both = `{"type":"all_of","members":[{"type":"count","n":2,"count_kind":"distinct_signals","waitpoints":["a"],"name":"vote"},{"type":"single","waitpoint_key":"a","name":"go"}]}`
	onSigning(t, func(t *testing.T, w *world) {
		id, s := w.asleep(both)
		told := func(want ...wanted) {
			t.Helper()
			why := w.explain(id)
			var data struct{ Signals []wanted }
			decode(t, why.Blockers[0].Data, &data)
			same(t, "signals", data.Signals, want)
		}
		told(wanted{"vote", 0, 2}, wanted{"go", 0, 1})
		w.signalled(s, "vote")
		told(wanted{"vote", 1, 1}, wanted{"go", 0, 1})
		w.signalled(s, "go")
		told(wanted{"vote", 1, 1}, wanted{"go", 1, 0})
		w.signalled(s, "other")
		told(wanted{"vote", 1, 1}, wanted{"go", 1, 0})
		w.signalled(s, "vote")
		w.is(id, core.Ready, core.WaitingForWorker)
	})
}
