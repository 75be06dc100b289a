package rules

import "testing"

// ends are the ways in which a parent may end.
var ends = map[string]func(t testing.TB, w *world, k task){
	"succeeded": func(t testing.TB, w *world, k task) { w.complete(t, k, `1`) },
	"failed":    func(t testing.TB, w *world, k task) { w.fail(t, k) },
	"cancelled": func(t testing.TB, w *world, k task) { w.post(t, at(k.id)+"/cancel", `{}`).wants(t, 200) },
	"expired": func(t testing.TB, w *world, k task) {
		w.under(t, k, "suspend", `"resume_condition":{"type":"operator_only"},"timeout_ms":1,"timeout_behavior":"expire"`).wants(t, 200)
	},
}

func TestF44_what_becomes_of_children_when_their_parent_ends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy    string
		cancelled map[string]bool // by how the parent ended
	}{
		{"", map[string]bool{"failed": true, "cancelled": true, "expired": true}},
		{`,"on_parent_end":"cancel_on_failure"`, map[string]bool{"failed": true, "cancelled": true, "expired": true}},
		{`,"on_parent_end":"cancel"`, map[string]bool{"succeeded": true, "failed": true, "cancelled": true, "expired": true}},
		{`,"on_parent_end":"detach"`, nil},
	} {
		onEveryStore(t, func(t *testing.T, w *world) {
			for how, end := range ends {
				k := w.parent(t, "")
				ids := w.under(t, k, "spawn", `"children":[`+nodes("done", "running", "ready")+`,{"name":"blocked","kind":"blocked","after":["running"]}]`+c.policy).wants(t, 200)
				w.does(t, "done")
				running := w.take(t, "running")
				own := w.home(t, running.id)
				end(t, w, k)
				w.over(t, at(k.id), fields{"status": how})
				if c.cancelled[how] {
					w.cancelledWithParent(t, own, ids, running)
					continue
				}
				w.complete(t, running, `1`)
				w.does(t, "ready", "blocked")
				w.over(t, own, fields{"state": "completed", "sealed": true, "cancel": nil})
			}
		})
	}
}

// cancelledWithParent checks children of whom one had ended, one runs, one is ready, and one waits for another.
func (w *world) cancelledWithParent(t testing.TB, own string, ids reply, running task) {
	t.Helper()
	w.over(t, own, fields{"state": "cancelled", "sealed": true, "cancel.policy": "cancel_all", "counts.cancelled": 3, "counts.completed": 1})
	w.state(t, ids.text(t, "children.done"), fields{"status": "succeeded", "cancellation": nil})
	for _, name := range []string{"running", "ready", "blocked"} {
		w.state(t, ids.text(t, "children."+name), fields{"status": "cancelled", "reason": "flow_cancelled", "cancellation.source": "parent"})
	}
	w.under(t, running, "complete", `"result":1`).refuses(t, 409, "execution_not_active")
	w.claimsNothing(t, "default")
}

func TestF44_a_retry_and_a_reclaim_are_no_end(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		k := w.parent(t, `,"policy":{"retry_policy":{"max_retries":2,"backoff":{"strategy":"fixed","delay_ms":0}}}`)
		a := w.under(t, k, "spawn", `"on_parent_end":"cancel","children":[`+nodes("a")+`]`).wants(t, 200).text(t, "children.a")
		w.under(t, k, "fail", `"class":"transient","message":"again"`).wants(t, 200)
		w.take(t, "parent").shows(t, fields{"tasks.0.attempt.type": "retry"})
		w.post(t, at(k.id)+"/revoke", `{}`).wants(t, 200)
		k = w.take(t, "parent")
		k.shows(t, fields{"tasks.0.how": "reclaimed"})
		w.state(t, a, fields{"status": "ready"})
		w.get(t, w.home(t, a)).wants(t, 200).shows(t, fields{"state": "open", "sealed": false})
		w.complete(t, k, `1`)
		w.over(t, at(a), fields{"status": "cancelled", "cancellation.source": "parent"})
	})
}

func TestF44_children_that_have_all_ended_end_their_flow_with_their_parent(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for how, end := range ends {
			k := w.parent(t, "")
			own := w.home(t, w.spawn(t, k, "a", "b").text(t, "children.a"))
			w.does(t, "a")
			w.breaks(t, "b")
			w.get(t, own).wants(t, 200).shows(t, fields{"state": "open", "phase": "idle", "sealed": false})
			end(t, w, k)
			w.over(t, own, fields{"state": "failed", "sealed": true, "counts.completed": 1, "counts.failed": 1, "cancel": nil})
			w.over(t, at(k.id), fields{"status": how})
		}
	})
}
