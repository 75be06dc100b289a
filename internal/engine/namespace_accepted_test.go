package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
)

// deep is a flow whose sub-flow, and one within that, begin once its first node has succeeded.
func deep() core.FlowSubmission {
	input := &core.Payload{Data: []byte("0123456789"), Size: 10}
	innermost := &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "z", Kind: "z", Input: input}}}
	inner := &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "x", Kind: "x", Input: input}, {Name: "m", Flow: innermost, After: []string{"x"}}}}
	return core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "first", Kind: "first"}, {Name: "n", Flow: inner, After: []string{"first"}}}}
}

func TestU101_F46_a_bound_of_the_namespace_does_not_fail_a_subflow_that_was_accepted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(deep())
		w.namespace("default", core.NamespaceSettings{MaxLanes: 1, MaxClasses: 1, MaxPayloadBytes: 1})
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "another"})
		refused(t, err, core.CodeNamespaceLimitExceeded)
		for _, kind := range []string{"first", "x", "z"} {
			w.workOff(kind, 1, succeeds)
		}
		w.flowBecomes(flow, core.FlowCompleted)
	})
}
