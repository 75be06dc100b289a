package engine_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// inner is a sub-flow of two nodes in a line, the second its output.
func inner() *core.FlowSubmission {
	return &core.FlowSubmission{Output: "y", Nodes: []core.FlowNode{{Name: "x", Kind: "x"}, {Name: "y", Kind: "y", After: []string{"x"}}}}
}

// nodeOf is a flow of one flow node and one that follows it.
func nodeOf(sub *core.FlowSubmission) core.FlowSubmission {
	return core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{
		{Name: "n", Flow: sub}, {Name: "after", Kind: "after"},
	}, Edges: []core.FlowEdge{{From: "n", To: "after", Kind: core.AnyTerminal, Pass: "sub"}}}
}

// subflow waits until a flow node has its sub-flow, and shows that as the answer that made it.
func (w *world) subflow(of engine.FlowAnswer, name string) engine.FlowAnswer {
	w.t.Helper()
	eventually(w.t, "the sub-flow is there", func() bool { return w.member(of, name).Children != nil })
	node := w.member(of, name)
	answer := engine.FlowAnswer{Flow: &core.Flow{ID: node.Children.FlowID}, Members: map[string]base.ID{}}
	view := w.flow(answer)
	answer.Flow = view.Flow
	for _, m := range must(w.e.Graph(w.ctx(), client, view.ID.Given(), "", 0))(w.t).Members {
		answer.Members[m.Execution.Member.Name] = m.Execution.ID
	}
	return answer
}

func TestF46_F47_a_flow_node_succeeds_with_the_output_of_its_subflow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(nodeOf(inner()))
		w.is(flow.Members["n"].Given(), core.Blocked, core.WaitingForSubflow)
		sub := w.subflow(flow, "n")
		same(t, "sub-flow", []any{sub.Flow.Parent, sub.Flow.Root, sub.Flow.Depth, sub.Flow.Sealed, sub.Flow.Kind}, []any{flow.Members["n"], flow.Flow.ID, 1, true, "n"})
		same(t, "partition", sub.Flow.ID.N, flow.Flow.ID.N)
		w.none("flow")
		w.workOff("x", 1, succeeds)
		w.workOff("y", 1, leaves([]byte("the answer"), "text/plain"))
		task := w.takeKind("after", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{`sub of n succeeded: 10 bytes text/plain "the answer"`})
		node := w.is(flow.Members["n"].Given(), core.Succeeded, core.Completed)
		same(t, "attempts", []any{len(w.attempts(flow.Members["n"].Given())), node.LeaseEpoch}, []any{0, int64(0)})
		result := must(w.e.Result(w.ctx(), client, flow.Members["n"].Given()))(t)
		same(t, "result", []string{string(result.Data), result.ContentType}, []string{"the answer", "text/plain"})
		w.complete(task)
		same(t, "state", w.flowBecomes(flow, core.FlowCompleted).Counts["completed"], 2)
	})
}

func TestF47_without_output_there_is_no_result_and_an_empty_subflow_succeeds(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(nodeOf(&core.FlowSubmission{}))
		task := w.takeKind("after", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{"sub of n succeeded"})
		w.complete(task)
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestF47_a_failed_subflow_fails_its_node_and_names_the_members(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(nodeOf(inner()))
		w.workOff("x", 1, fails)
		task := w.takeKind("after", 1)[0]
		same(t, "inputs", told(task.Inputs), []string{"sub of n failed subflow_failed"})
		node := w.is(flow.Members["n"].Given(), core.Failed, core.SubflowFailed)
		if !strings.Contains(node.Failure.Message, "x") {
			t.Errorf("%+v", node.Failure)
		}
		w.complete(task)
		same(t, "after took care of it", w.flowBecomes(flow, core.FlowCompleted).State, core.FlowCompleted)
	})
}

func TestF48_cancelling_a_node_or_its_flow_cancels_the_subflow_at_every_depth(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		onStores(t, func(t *testing.T, w *world) {
			deep := &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "m", Flow: inner()}}}
			flow := w.submitFlow(nodeOf(deep))
			middle := w.subflow(flow, "n")
			innermost := w.subflow(middle, "m")
			same(t, "depth", []any{innermost.Flow.Depth, innermost.Flow.Root, innermost.Flow.Parent}, []any{2, flow.Flow.ID, middle.Members["m"]})
			task := w.takeKind("x", 1)[0]
			if whole {
				w.cancelFlow(flow, core.CancelAll, "enough")
			} else {
				w.cancel(flow.Members["n"].Given())
			}
			w.flowBecomes(middle, core.FlowStopped)
			view := w.flowBecomes(innermost, core.FlowStopped)
			same(t, "source", []any{view.Cancel.Source, view.Cancel.Policy}, []any{core.SourceParent, core.CancelAll})
			x := w.is(innermost.Members["x"].Given(), core.Cancelled, core.FlowCancelled)
			same(t, "source", x.Cancellation.Source, core.SourceParent)
			if _, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil); err == nil {
				t.Error("the fence lives")
			}
			if whole {
				w.flowBecomes(flow, core.FlowStopped)
				return
			}
			w.workOff("after", 1, succeeds)
			same(t, "after took care of it", w.flowBecomes(flow, core.FlowCompleted).State, core.FlowCompleted)
		})
	}
}

func TestF47_a_cancelled_subflow_cancels_its_node(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(nodeOf(inner()))
		w.cancelFlow(w.subflow(flow, "n"), core.CancelAll, "not that one")
		w.becomes(flow.Members["n"].Given(), core.Cancelled)
		node := w.is(flow.Members["n"].Given(), core.Cancelled, core.FlowCancelled)
		same(t, "why", node.Cancellation.Reason, "not that one")
	})
}

func TestF47_the_roots_of_a_subflow_receive_the_inputs_of_its_node_at_every_depth(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		deep := &core.FlowSubmission{Nodes: []core.FlowNode{
			{Name: "m", Flow: &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "root", Kind: "root"}, {Name: "next", Kind: "next", After: []string{"root"}}}}},
			{Name: "beside", Kind: "beside"},
		}}
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "n", Flow: deep, After: []string{"a"}}}})
		w.is(flow.Members["n"].Given(), core.Blocked, core.WaitingForChildren)
		w.workOff("a", 1, leaves([]byte("seed"), "text/plain"))
		want := []string{`a of a succeeded: 4 bytes text/plain "seed"`}
		beside, root := w.takeKind("beside", 1)[0], w.takeKind("root", 1)[0]
		same(t, "beside", told(beside.Inputs), want)
		same(t, "root", told(root.Inputs), want)
		w.complete(beside)
		w.complete(root)
		next := w.takeKind("next", 1)[0]
		same(t, "next", told(next.Inputs), []string{"root of root succeeded"})
		w.complete(next)
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestF46_a_node_that_is_skipped_has_no_subflow_and_one_that_cannot_be_made_fails(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "n", Flow: inner(), After: []string{"a"}}}}
		skipped := w.submitFlow(s)
		w.workOff("a", 1, fails)
		node := w.is(skipped.Members["n"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "no sub-flow", node.Children == nil, true)
		w.flowBecomes(skipped, core.FlowFailed)

		w.lane("other", core.LaneSettings{State: core.LaneActive})
		sub := inner()
		sub.Nodes[0].Lane = "other"
		s.Nodes[1].Flow = sub
		late := w.submitFlow(s)
		w.lane("other", core.LaneSettings{State: core.LaneDisabled})
		w.workOff("a", 1, succeeds)
		w.becomes(late.Members["n"].Given(), core.Failed)
		failed := w.is(late.Members["n"].Given(), core.Failed, core.SubflowFailed)
		if !strings.Contains(failed.Failure.Message, "other") {
			t.Errorf("%+v", failed.Failure)
		}
		same(t, "failures", w.flowBecomes(late, core.FlowFailed).Failures, []string{"n"})
	})
}

func TestF46_the_definition_of_a_subflow_is_validated_with_the_outer_request(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for place, spoil := range map[string]func(*core.FlowSubmission){
			"nodes[0].flow.nodes[1].lane":     func(s *core.FlowSubmission) { s.Nodes[1].Lane = "no lane" },
			"nodes[0].flow.nodes[1].after[0]": func(s *core.FlowSubmission) { s.Nodes[1].After = []string{"missing"} },
			"nodes[0].flow.output":            func(s *core.FlowSubmission) { s.Output = "missing" },
		} {
			sub := inner()
			spoil(sub)
			_, err := w.e.SubmitFlow(w.ctx(), client, nodeOf(sub))
			same(t, "place", refused(t, err, base.CodeOf(err)).Field, place)
		}
		w.noFlow()
		sub := inner()
		sub.Nodes[1].Lane = "no lane"
		grown := w.emptyFlow()
		refusal := w.extendErr(grown, core.FlowExtension{Nodes: []core.FlowNode{{Name: "n", Flow: sub}}}, base.CodeInvalidArgument)
		same(t, "place in an extension", refusal.Field, "nodes[0].flow.nodes[1].lane")
	})
}

func TestF47_F49_flow_only_on_a_subflow_ends_its_node_and_touches_no_member(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "n", Flow: inner()}}})
		sub := w.subflow(flow, "n")
		x := w.claimKind("x")
		w.cancelFlow(sub, core.CancelFlowOnly, "")
		w.flowBecomes(flow, core.FlowFailed)
		w.is(flow.Members["n"].Given(), core.Cancelled, core.FlowCancelled)
		w.followed()
		same(t, "policy", w.flow(sub).Cancel.Policy, core.CancelFlowOnly)
		same(t, "members", w.statuses(sub), map[string]string{"x": "running", "y": "blocked"})
		w.complete(x)
		w.end("y")
		w.consistent(sub)
	})
}
