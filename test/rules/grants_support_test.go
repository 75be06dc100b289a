package rules

import "testing"

// promise is a grant.
type promise struct {
	reply   // of the call that gave it
	id, key string
}

// me names the worker of a test.
func (w *world) me() string { return `"worker_id":"w","worker_instance_id":"` + w.namespace + `"` }

// thief names another instance of that worker.
func (w *world) thief() string {
	return `"worker_id":"w","worker_instance_id":"` + w.named("thief") + `"`
}

// forAMinute is the field of a grant that outlasts the test: the default does not when the machine is busy.
const forAMinute = `"grant_ttl_ms":60000`

// asks asks for grants of the lane of the test, with more fields.
func (w *world) asks(t testing.TB, more string) reply {
	t.Helper()
	return w.post(t, "/v1/work/grants", `{`+w.me()+`,"lanes":[`+w.ownLane()+`]`+and(more)+`}`)
}

// asksFor asks for a grant of one execution.
func (w *world) asksFor(t testing.TB, id, more string) reply {
	t.Helper()
	return w.post(t, "/v1/work/grants", `{`+w.me()+`,"execution_id":"`+id+`"`+and(more)+`}`)
}

// given is the only grant of an answer.
func (r reply) given(t testing.TB) promise {
	t.Helper()
	if n := len(r.wants(t, 200).items(t, "grants")); n != 1 {
		t.Fatalf("%s: %d grants: %s", r.asked, n, r.body)
	}
	return promise{r, r.text(t, "grants.0.execution_id"), r.text(t, "grants.0.grant_key")}
}

// granted submits a job and is given a grant of it that outlasts the test.
func (w *world) granted(t testing.TB, more string) promise {
	t.Helper()
	return w.asksFor(t, w.job(t, more), forAMinute).given(t)
}

// present calls verify, return or claim with a grant key; claim as the worker of the test.
func (w *world) present(t testing.TB, call, key string) reply {
	t.Helper()
	return w.presentAs(t, call, key, w.me())
}

func (w *world) presentAs(t testing.TB, call, key, worker string) reply {
	t.Helper()
	body := `{"grant_key":"` + key + `"`
	if call == "claim" {
		body += "," + worker
	}
	return w.post(t, "/v1/work/grants/"+call, body+"}")
}

// redeem claims a grant.
func (w *world) redeem(t testing.TB, key string) task {
	t.Helper()
	got := w.presentAs(t, "claim", key, w.me()+w.leases).wants(t, 200)
	return task{reply: got, id: got.text(t, "execution_id"), fence: got.text(t, "lease.fence")}
}
