package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// passing is a line of a, b and c in which each gives its result to the next.
func passing() core.FlowSubmission {
	s := lineOf("a", "b", "c")
	for i := range s.Nodes {
		s.Nodes[i].After = nil
	}
	s.Edges = []core.FlowEdge{{From: "a", To: "b", Pass: "from-a"}, {From: "b", To: "c"}}
	return s
}

// endWith claims a member and completes it with a result.
func (w *world) endWith(kind, result string) {
	w.t.Helper()
	task := w.claimKind(kind)
	must(w.e.Complete(w.ctx(), client, given(task), fence(task), &core.Payload{ContentType: "text/plain", Data: []byte(result)}))(w.t)
}

// whole fails unless nothing about the flows of the store disagrees.
func (w *world) whole() {
	w.t.Helper()
	if differences := must(w.e.Integrity(w.ctx()))(w.t).Differences; len(differences) > 0 {
		w.t.Fatalf("differences: %+v", differences)
	}
}

func TestU55_L140_a_member_of_a_finished_flow_is_deleted_and_the_flow_stays_whole(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(passing())
		w.endWith("a", "secret")
		a := flow.Members["a"].Given()
		same(t, "while its flow works", refused(t, w.delete(a), base.CodeRetained).Details["cause"], "flow")
		w.endWith("b", "more")
		w.end("c")
		w.finished(flow)
		before := must(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), "", 0))(t)
		counts := w.flow(flow).Counts
		ok(t, w.delete(a))
		w.gone(a)
		w.noTrace(a)
		same(t, "counts", w.flow(flow).Counts, counts)
		after := must(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), "", 0))(t)
		same(t, "edges", after.Edges, before.Edges)
		for i, m := range after.Members {
			same(t, "deleted "+m.Execution.Member.Name, m.DeletedAt != 0, i == 0)
			same(t, "name", m.Execution.Member.Name, before.Members[i].Execution.Member.Name)
			same(t, "status", m.Execution.Status, before.Members[i].Execution.Status)
			same(t, "ended", m.Execution.CompletedAt, before.Members[i].Execution.CompletedAt)
		}
		page := must(w.e.FlowMembers(w.ctx(), client, flow.Flow.ID.Given(), "completed", "", 0))(t)
		same(t, "members", len(page.Members), 3)
		edges := must(w.e.FlowEdges(w.ctx(), client, flow.Flow.ID.Given(), engine.EdgeQuery{From: "a"}))(t)
		same(t, "edges from it", len(edges.Edges), 1)
		same(t, "listed", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), 2)
		_, err := w.e.ReadInput(w.ctx(), client, flow.Members["b"].Given(), "from-a")
		refused(t, err, base.CodeInputNotFound)
		refused(t, w.delete(a), base.CodeExecutionNotFound)
		w.whole()
		ok(t, w.deleteFlow(flow, ""))
		w.flowGone(flow)
	})
}

func TestF54_F56_a_replay_that_needs_a_deleted_member_is_refused_and_others_go_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(passing())
		w.endWith("a", "secret")
		w.endWith("b", "more")
		w.end("c")
		w.finished(flow)
		ok(t, w.delete(flow.Members["a"].Given()))
		refused(t, w.replayMember(flow, "a", engine.ReplayRequest{}), base.CodeExecutionNotFound)
		refusal := refused(t, w.replayMember(flow, "b", engine.ReplayRequest{}), base.CodeMemberDeleted)
		same(t, "which", refusal.Details["name"], "a")
		ok(t, w.replayMember(flow, "c", engine.ReplayRequest{}))
		same(t, "while it works", refused(t, w.delete(flow.Members["b"].Given()), base.CodeRetained).Details["cause"], "flow")
		w.end("c")
		w.finished(flow)
		ok(t, w.delete(flow.Members["c"].Given()))
		other := w.submitFlow(passing())
		w.endWith("a", "1")
		w.endWith("b", "2")
		w.end("c")
		w.finished(other)
		ok(t, w.delete(other.Members["c"].Given()))
		refusal = refused(t, w.replayMember(other, "a", engine.ReplayRequest{Cascade: core.CascadeAll}), base.CodeMemberDeleted)
		same(t, "which", refusal.Details["name"], "c")
		ok(t, w.replayMember(other, "a", engine.ReplayRequest{Cascade: core.CascadeSkipped}))
		w.endWith("a", "3")
		w.finished(other)
		w.whole()
	})
}

func TestF5_F54_a_deleted_member_still_counts_for_the_outcome_of_its_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{Kind: "two", Nodes: []core.FlowNode{
			{Name: "bad", Kind: "bad"}, {Name: "good", Kind: "good"}, {Name: "last", Kind: "last", After: []string{"bad", "good"}},
		}}
		flow := w.submitFlow(s)
		w.breakDown("bad")
		w.end("good")
		w.flowBecomes(flow, core.FlowFailed)
		ok(t, w.delete(flow.Members["bad"].Given()))
		ok(t, w.replayMember(flow, "good", engine.ReplayRequest{}))
		w.end("good")
		view := w.flowBecomes(flow, core.FlowFailed)
		same(t, "who failed", view.Failures, []string{"bad"})
		refusal := refused(t, w.replayMember(flow, "last", engine.ReplayRequest{}), base.CodeDependenciesImpossible)
		same(t, "upstreams", len(refusal.Details["upstreams"].([]string)), 1)
		ok(t, w.replayMember(flow, "last", engine.ReplayRequest{IgnoreDependencies: true}))
		w.end("last")
		w.flowBecomes(flow, core.FlowCompleted)
		w.whole()
	})
}

func TestU55_L140_a_member_goes_with_the_flows_below_it_once_those_around_have_ended(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		outer := w.submitFlow(nodeOf(inner()))
		sub := w.subflow(outer, "n")
		x := w.claimKind("x")
		made := w.spawn(x, "c")
		w.end("c")
		w.complete(x)
		w.endWith("y", "result")
		w.workedOff("end_children")
		eventually(t, "the node has ended", func() bool { return w.member(outer, "n").Status.Terminal() })
		id := sub.Members["x"].Given()
		same(t, "while a flow around works", refused(t, w.delete(id), base.CodeRetained).Details["flow_id"], any(outer.Flow.ID.String()))
		w.end("after")
		w.finished(outer)
		must(w.e.Retain(w.ctx(), operator, made.Children["c"].Given(), 0, engine.Operator{Reason: "law"}))(t)
		refused(t, w.delete(id), base.CodeRetained)
		must(w.e.Unretain(w.ctx(), operator, made.Children["c"].Given(), engine.Operator{}))(t)
		ok(t, w.delete(id))
		w.gone(id)
		w.gone(made.Children["c"].Given())
		ok(t, w.delete(sub.Members["y"].Given()))
		_, err := w.e.Result(w.ctx(), client, outer.Members["n"].Given())
		refused(t, err, base.CodeInputNotFound)
		refusal := refused(t, w.replayMember(outer, "after", engine.ReplayRequest{}), base.CodeMemberDeleted)
		same(t, "whose result", refusal.Details["name"], "n")
		w.whole()
		ok(t, w.delete(outer.Members["n"].Given()))
		w.whole()
		ok(t, w.deleteFlow(outer, ""))
		w.flowGone(outer)
	})
}

func TestU57_L139_deleted_members_are_counted_by_a_job_and_leave_with_their_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		keep := func(s *core.FlowSubmission) { s.Defaults.PolicyJSON = []byte(`{"retention_ms":3600000}`) }
		flow := w.ranLine(keep)
		open := w.submitFlow(lineOf("a", "q"))
		w.end("a")
		job := w.ended(w.bulk(engine.BulkRequest{Action: "delete", Filter: kindFilter("a")}).JobID)
		same(t, "done", job.Done, 1)
		same(t, "refused", job.Refused, map[base.Code]int{base.CodeRetained: 1})
		w.gone(flow.Members["a"].Given())
		w.member(open, "a")
		same(t, "the other", w.ended(w.bulk(engine.BulkRequest{Action: "delete", Filter: kindFilter("b")}).JobID).Done, 1)
		same(t, "counts", w.flow(flow).Counts["completed"], 2)
		w.whole()
		w.pass(base.Hour + base.Minute)
		w.flowLeaves(flow)
	})
}

func TestF59_F60_a_member_that_is_deleted_while_its_flow_is_read_is_not_missing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(lineOf("a", "b"))
		w.end("a")
		w.end("b")
		w.finished(flow)
		listing := func(want store.Want) bool { return len(want.Scans) == 1 && want.Scans[0].Kind == 31 }
		b.afterRead.set(listing, func() { ok(t, w.delete(flow.Members["a"].Given())) })
		graph := must(w.e.Graph(w.ctx(), client, flow.Flow.ID.Given(), "", 0))(t)
		same(t, "members", len(graph.Members), 2)
		same(t, "deleted", graph.Members[0].DeletedAt != 0, true)
		b.afterRead.set(listing, func() { ok(t, w.delete(flow.Members["b"].Given())) })
		same(t, "counts", w.flow(flow).Counts["completed"], 2)
	})
}

func TestF54_L140_a_member_that_is_replayed_while_another_is_deleted_keeps_that(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.submitFlow(passing())
		w.endWith("a", "secret")
		w.end("b")
		w.end("c")
		w.finished(flow)
		a := flow.Members["a"].Given()
		b.beforeBegin.set(func(want store.Want) bool { return len(want.Executions) == 1 && want.Executions[0] == a.UUID }, func() {
			ok(t, w.replayMember(flow, "b", engine.ReplayRequest{}))
		})
		same(t, "cause", refused(t, w.delete(a), base.CodeRetained).Details["cause"], "flow")
		task := w.claimKind("b")
		same(t, "its input", string(task.Inputs[0].Data), "secret")
		w.complete(task)
		w.finished(flow)
		ok(t, w.delete(a))
	})
}
