package rules

import (
	"strconv"
	"strings"
	"testing"
)

// submit hands in one execution, given as JSON, and answers its id.
func (w *world) submit(t testing.TB, body string) (id string) {
	t.Helper()
	return w.post(t, "/v1/executions", body).wants(t, 201).text(t, "execution_id")
}

// at is the path of an execution.
func at(id string) string { return "/v1/executions/" + bare(id) }

// bare is an id without the tag of its partition, as paths have it.
func bare(id string) string { return id[strings.LastIndexByte(id, ':')+1:] }

// task is an execution under a lease.
type task struct {
	reply     // of the claim
	id, fence string
	n         int // which of the tasks of the claim it is
}

// of is a path in the claim's answer about this task.
func (k task) of(path string) string { return "tasks." + strconv.Itoa(k.n) + "." + path }

// claim takes one execution of a lane, and waits for it.
func (w *world) claim(t testing.TB, lane string) task {
	t.Helper()
	got := w.claims(t, `"lanes":["`+lane+`"],"wait_ms":60000`)
	if len(got) != 1 {
		t.Fatalf("nothing to claim in %s", lane)
	}
	return got[0]
}

// claimsNothing checks that nothing can be claimed in a lane now.
func (w *world) claimsNothing(t testing.TB, lane string) {
	t.Helper()
	if got := w.claims(t, `"lanes":["`+lane+`"]`); len(got) != 0 {
		t.Errorf("claimed %s", got[0].body)
	}
}

// claims sends a claim of the worker w with these fields. Its leases last as long as those of this world unless the fields say so.
func (w *world) claims(t testing.TB, fields string) (all []task) {
	t.Helper()
	if !strings.Contains(fields, "lease_ttl_ms") {
		fields += w.leases
	}
	got := w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"`+w.namespace+`",`+fields+`}`).wants(t, 200)
	for n := range got.items(t, "tasks") {
		k := task{reply: got, n: n}
		k.id, k.fence = got.text(t, k.of("execution_id")), got.text(t, k.of("lease.fence"))
		all = append(all, k)
	}
	return all
}

// under sends a command of a task: its path after the execution's, and fields beside the lease.
func (w *world) under(t testing.TB, k task, command, more string) reply {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	return w.post(t, at(k.id)+"/"+command, `{"lease":"`+k.fence+`"`+more+`}`)
}

// complete ends a task with a result, given as JSON.
func (w *world) complete(t testing.TB, k task, result string) {
	t.Helper()
	w.under(t, k, "complete", `"result":`+result).wants(t, 200)
}

// fail ends a task for good.
func (w *world) fail(t testing.TB, k task) {
	t.Helper()
	w.under(t, k, "fail", `"class":"permanent","message":"no"`).wants(t, 200)
}

// state checks fields of an execution.
func (w *world) state(t testing.TB, id string, want fields) reply {
	t.Helper()
	return w.get(t, at(id)).wants(t, 200).shows(t, want)
}
