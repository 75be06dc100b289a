package apifuzz

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// operationOf finds an operation by its id.
func (f *fuzzer) operationOf(id string) *operation {
	i := slices.IndexFunc(f.doc.operations, func(o *operation) bool { return o.id == id })
	if i < 0 {
		f.t.Fatalf("%s is not in the document", id)
	}
	return f.doc.operations[i]
}

// do makes a plain request; its path has at most one parameter.
func (f *fuzzer) do(call *wire.Operation, named, body string) answer {
	f.t.Helper()
	o := f.operationOf(call.ID)
	r := &request{o: o, method: o.method, path: map[string]string{}, header: http.Header{}, bare: body != "", text: body}
	r.header.Set(wire.HeaderNamespace, "default")
	for _, p := range o.parameters {
		if p.in == "path" {
			r.path[p.name] = encodeAll(named)
		}
	}
	return f.call(r, f.w.callers[0])
}

// tend undoes settings that let nothing through, and makes things that requests can act on: executions in many states, leases, workers, bulk jobs, keys.
func (f *fuzzer) tend() {
	for _, name := range namespaces {
		f.do(wire.PutNamespace.Operation, name, `{}`)
	}
	for _, lane := range []string{"default", "slow", "rare", "waits", "grants"} {
		f.do(wire.PutLane.Operation, lane, `{"state":"active"}`)
	}
	for _, instance := range instances {
		f.do(wire.RegisterWorker.Operation, "", `{"worker_id":"w","worker_instance_id":"`+instance+`","max_concurrent":100}`)
		f.do(wire.UndrainWorker.Operation, instance, "")
	}
	f.tendLimits()
	var ids []string
	for _, body := range []string{
		`{"kind":"job","priority":100,"input":{"n":1},"tags":{"team":"red"}}`, `{"kind":"job","priority":100,"input_text":"a"}`,
		`{"kind":"job","priority":100,"policy":{"budget_ids":["team"],"estimate":{"tokens":5},"quotas":[{"quota":"q"},{"quota":"k","key":"a"}]}}`,
		`{"kind":"mail","delay_ms":3600000}`, `{"kind":"mail","lane":"slow"}`, `{"kind":"mail","lane":"slow","policy":{"retry_policy":{"max_retries":3}}}`,
	} {
		ids = append(ids, textIn(f.do(wire.SubmitExecution.Operation, "", body), "execution_id"))
	}
	f.do(wire.ClaimWork.Operation, "", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max":3,"lease_ttl_ms":60000}`)
	f.tendStreams()
	f.do(wire.HoldExecution.Operation, ids[3], `{"reason":"later"}`)
	f.do(wire.CancelExecution.Operation, ids[4], `{"reason":"not wanted"}`)
	f.end(wire.CompleteExecution.Operation, `{"result":1,"lease":%s}`, "succeeded")
	f.end(wire.ReleaseExecution.Operation, `{"lease":%s}`, released)
	f.do(wire.StartBulk.Operation, "", `{"action":"hold","ids":["`+ids[5]+`"],"reason":"later"}`)
	f.tendWaits()
	f.tendFlows()
	f.tendGrants()
	f.tendWebhooks()
	f.do(wire.CreateAPIKey.Operation, "", `{"name":"spare","roles":["read"],"namespaces":["default"]}`) // others are revoked by now
}

// tendStreams makes the newest attempts say something.
func (f *fuzzer) tendStreams() {
	for _, held := range f.mem.leases[max(0, len(f.mem.leases)-3):] {
		f.do(wire.AppendFrames.Operation, held.execution, `{"frames":[{"payload_text":"a"},{"type":"log","mode":"best_effort"},{"mode":"summary","payload":{"n":1}}],"lease":`+string(held.text)+`}`)
	}
}

// tendGrants makes grants that can be claimed, verified and returned.
func (f *fuzzer) tendGrants() {
	for range 3 {
		f.do(wire.SubmitExecution.Operation, "", `{"kind":"job","lane":"grants"}`)
	}
	f.mem.names["grant_key"] = nil // older ones are used up or over
	f.do(wire.GrantWork.Operation, "", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["grants"],"max":3,"grant_ttl_ms":60000}`)
}

// released is the state of what a worker gave back: another one may take it over.
const released = "released"

// end gives up the newest lease but one, and remembers how that left its execution.
func (f *fuzzer) end(call *wire.Operation, body, state string) {
	n := len(f.mem.leases)
	if n < 2 {
		return
	}
	held := f.mem.leases[n-2]
	f.mem.leases = slices.Delete(f.mem.leases, n-2, n-1)
	f.do(call, held.execution, fmt.Sprintf(body, held.text))
	f.mem.executions[held.execution] = state
}

// textIn is a text of an answer; "" when it is not there.
func textIn(a answer, name string) string {
	var all map[string]any
	if json.Unmarshal(a.body, &all) != nil {
		return ""
	}
	text, _ := all[name].(string)
	return text
}

// stillServes looks whether work goes through as it did before.
func (f *fuzzer) stillServes() {
	f.tend()
	if a := f.do(wire.GetReadiness.Operation, "", ""); a.status != http.StatusOK {
		f.t.Errorf("seed %d: the server is not ready: %s", f.seed, a.body)
	}
	id := textIn(f.do(wire.SubmitExecution.Operation, "", `{"kind":"last","lane":"last","input":1}`), "execution_id")
	f.do(wire.ClaimWork.Operation, "", `{"worker_id":"w","worker_instance_id":"w-last","lanes":["last"],"wait_ms":20000}`)
	if n := len(f.mem.leases); n == 0 || f.mem.leases[n-1].execution != id {
		f.t.Fatalf("seed %d: what was submitted last cannot be claimed", f.seed)
	}
	lease := f.mem.leases[len(f.mem.leases)-1]
	if a := f.do(wire.CompleteExecution.Operation, id, `{"result":2,"lease":`+string(lease.text)+`}`); a.status != http.StatusOK {
		f.t.Errorf("seed %d: %s", f.seed, a.body)
	}
}

// drains lets the server drain at last, and looks whether it answers after that.
func (f *fuzzer) drains() {
	f.last = true
	if a := f.do(wire.DrainServer.Operation, "", ""); a.status != http.StatusOK {
		f.t.Errorf("seed %d: %s", f.seed, a.body)
	}
	for range 50 {
		o := pick(f.Rand, f.doc.operations)
		if o.id != wire.GetReadiness.ID { // says 503 now, as it should
			f.call(f.valid(o), f.w.callers[0])
		}
	}
}
