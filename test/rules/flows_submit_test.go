package rules

import "testing"

func TestF8_F10_a_graph_is_submitted_in_one_call_and_what_waits_for_nobody_is_ready(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		g := w.flow(t, `{"kind":"pair","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job","after":["a"]}]}`)
		g.shows(t, fields{"graph_revision": 1, "created": true, "sealed": true})
		w.state(t, g.member(t, "a"), fields{"status": "ready", "flow_id": g.id})
		w.state(t, g.member(t, "b"), fields{"status": "blocked", "reason": "waiting_for_children"})
		first := w.claim(t, "default")
		first.shows(t, fields{first.of("execution_id"): g.member(t, "a")})
		w.complete(t, first, `1`)
		if second := w.claim(t, "default"); second.id != g.member(t, "b") {
			t.Errorf("claimed %s", second.body)
		}
	})
}
