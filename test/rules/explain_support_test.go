package rules

import (
	"strconv"
	"strings"
	"testing"
)

// whyNot asks why an execution does not run.
func (w *world) whyNot(t testing.TB, id string) reply {
	t.Helper()
	return w.get(t, at(id)+"/explain").wants(t, 200)
}

// keptBy checks which blockers there are, in their order.
func (w *world) keptBy(t testing.TB, id string, codes ...string) reply {
	t.Helper()
	why := w.whyNot(t, id)
	var got []string
	for i := range why.items(t, "blockers") {
		got = append(got, why.text(t, "blockers."+strconv.Itoa(i)+".code"))
	}
	if strings.Join(got, " ") != strings.Join(codes, " ") {
		t.Errorf("%s is kept by %v, want %v: %s", id, got, codes, why.body)
	}
	return why
}

// staff registers the worker of the test on its lane, with more fields.
func (w *world) staff(t testing.TB, more string) {
	t.Helper()
	w.enlist(t, w.namespace, `"lanes":[`+w.ownLane()+`]`+and(more))
}

// enlist registers an instance of the worker w.
func (w *world) enlist(t testing.TB, instance, more string) {
	t.Helper()
	w.post(t, "/v1/workers", `{"worker_id":"w","worker_instance_id":"`+instance+`","liveness_ttl_ms":3600000,`+more+`}`).wants(t, 200)
}
