package flowfabric_test

import (
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// flowCauses are those of U207 that flows have.
var flowCauses = []cause{{
	name: "a flow that fails, because what its last member waits for cannot succeed any more",
	do: func(t *testing.T, w *metered) {
		f := flowfabric.Flow{Kind: "line", Nodes: []flowfabric.Node{
			{Name: "a", Kind: "job"},
			flowfabric.Node{Name: "b", Kind: "job"}.After("a"),
			flowfabric.Node{Name: "c", Kind: "job"}.AfterAny("b"),
		}}
		must[*flowfabric.FlowRun](t)(w.Flows().Submit(inTime(t), f))
		w.do(t, w.one(t, "default"), api.WorkItem{Op: api.OpComplete}, "")
		w.do(t, w.one(t, "default"), api.WorkItem{Op: api.OpFail, Class: "permanent", Message: "never"}, "")
	},
	moves: map[string]float64{
		`ff_flows_total{state="failed"}`: 1, `ff_joins_total{policy="all_of",result="satisfied"}`: 1, `ff_joins_total{policy="any_of",result="impossible"}`: 1,
	},
}}
