package apifuzz

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// graph is a flow that can grow: a, which has succeeded, b after it, and step-1, which waits for none.
type graph struct {
	flow, edge string
	a, b       string // executions
}

// tendFlows makes a flow that requests can act on.
func (f *fuzzer) tendFlows() {
	f.do(wire.PutLane.Operation, "flows", `{"state":"active"}`)
	made := f.do(wire.SubmitFlow.Operation, "", `{"kind":"job","seal":false,"nodes":[{"name":"a","kind":"job","lane":"flows"},`+
		`{"name":"b","kind":"job","lane":"flows","after":["a"]},{"name":"step-1","kind":"job","lane":"slow"}]}`)
	var told struct {
		ID      string            `json:"flow_id"`
		Members map[string]string `json:"members"`
	}
	if err := json.Unmarshal(made.body, &told); err != nil || told.ID == "" {
		f.t.Errorf("seed %d: no flow: %s", f.seed, made.body)
		return
	}
	f.do(wire.ClaimWork.Operation, "", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["flows"],"max":100,"lease_ttl_ms":60000}`)
	for i := len(f.mem.leases) - 1; i >= 0; i-- {
		if held := f.mem.leases[i]; held.execution == told.Members["a"] {
			f.do(wire.CompleteExecution.Operation, held.execution, `{"result":1,"lease":`+string(held.text)+`}`)
			break
		}
	}
	var edges struct {
		Items []struct {
			ID string `json:"edge_id"`
		} `json:"items"`
	}
	if err := json.Unmarshal(f.do(wire.ListFlowEdges.Operation, told.ID, "").body, &edges); err != nil || len(edges.Items) == 0 {
		f.t.Errorf("seed %d: no edges of %s", f.seed, told.ID)
		return
	}
	f.tendEnded()
	f.mem.graphs = append(f.mem.graphs, graph{told.ID, edges.Items[0].ID, told.Members["a"], told.Members["b"]})
	f.mem.graphs = f.mem.graphs[max(0, len(f.mem.graphs)-3):]
}

// tendEnded makes a flow that has ended, so that it can be deleted.
func (f *fuzzer) tendEnded() {
	made := f.do(wire.SubmitFlow.Operation, "", `{"kind":"job","nodes":[{"name":"a","kind":"job","lane":"slow"}]}`)
	var told struct {
		ID string `json:"flow_id"`
	}
	if err := json.Unmarshal(made.body, &told); err != nil || told.ID == "" {
		f.t.Errorf("seed %d: no flow to end: %s", f.seed, made.body)
		return
	}
	f.do(wire.CancelFlow.Operation, told.ID, `{"reason":"over"}`)
	f.mem.ended = told.ID
}

// graph is a flow that was made, mostly the last; for a deletion mostly one that has ended.
func (m *memory) graph(r *rand.Rand, o *operation) graph {
	switch n := len(m.graphs); {
	case o.id == wire.DeleteFlow.ID && m.ended != "" && r.IntN(3) > 0:
		return graph{flow: m.ended}
	case n == 0:
		return graph{flow: "0198f0a0-0000-7000-8000-000000000000"}
	case r.IntN(3) == 0:
		return pick(r, m.graphs)
	default:
		return m.graphs[n-1]
	}
}

// flowField draws a field of a request about a flow.
func (d *drawer) flowField(o *operation, name string, about subject) (value, bool) {
	switch o.id {
	case wire.SetJoin.ID, wire.WaitForChildren.ID, wire.SpawnChildren.ID:
		switch name {
		case "policy":
			return pick(d.Rand, []string{"all_of", "any_of"}), true
		case "children":
			return raw(`{"name":"c` + strconv.Itoa(d.IntN(1000)) + `","kind":"job","lane":"slow"}`), true
		case "defaults":
			return raw(`{}`), true
		case "names":
			return "c1", true
		}
	case wire.CancelFlow.ID:
		if name == "policy" {
			return pick(d.Rand, []string{"cancel_all", "cancel_pending", "flow_only"}), true
		}
	case wire.ExtendFlow.ID:
		switch name {
		case "nodes":
			return raw(`{"name":"n` + strconv.Itoa(d.IntN(1000)) + `","kind":"job","lane":"slow","after":["step-1"]}`), true
		case "members":
			return raw(`{"execution_id":"` + about.graph.a + `","name":"a"}`), true
		case "edges":
			return raw(`{"from":"a","to":"b","pass":"a"}`), true
		}
	}
	return nil, false
}

// flowPath draws a parameter of the path of a request about a flow; "": it is another's.
func (d *drawer) flowPath(o *operation, name string, about subject) string {
	switch {
	case o.id == wire.ReadInput.ID && name == "id":
		return about.graph.b
	case o.id == wire.ReadInput.ID && name == "name":
		return "a"
	case !strings.HasPrefix(o.path, "/v1/flows"):
		return ""
	case name == "id":
		return about.graph.flow
	case name == "edge":
		return about.graph.edge
	case name == "name":
		return pick(d.Rand, []string{"step-1", "b"})
	}
	return ""
}
