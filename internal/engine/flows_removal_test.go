package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// delete deletes an execution as an operator does.
func (w *world) delete(id base.GivenID) error {
	return w.e.Delete(w.ctx(), operator, id, engine.Operator{Reason: "erased"})
}

// leavesChild is a parent of two runs whose first one has left a child at work.
func (w *world) leavesChild(policy string) (parent base.GivenID, child engine.Task) {
	w.t.Helper()
	w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(policy)})
	p := w.claimKind("parent")
	w.spawn(p, "c")
	child = w.claimKind("c")
	w.complete(p)
	w.workedOff("end_children")
	w.replay(given(p))
	w.complete(w.claimKind("parent"))
	return given(p), child
}

func TestL140_a_parent_is_not_deleted_while_a_child_of_an_earlier_run_works(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		parent, child := w.leavesChild(`{}`)
		refusal := refused(t, w.delete(parent), base.CodeRetained)
		same(t, "cause", refusal.Details["cause"], "children")
		job := w.bulk(engine.BulkRequest{Action: "delete", Filter: kindFilter("parent")})
		same(t, "a job", w.ended(job.JobID).Refused, map[base.Code]int{base.CodeRetained: 1})
		w.complete(child)
		ok(t, w.delete(parent))
		w.gone(parent)
		w.noTrace(parent)
	})
}

func TestL139_L140_retention_leaves_a_parent_whose_child_of_an_earlier_run_works(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		parent, child := w.leavesChild(`{"retention_ms":1000}`)
		other := w.started(core.Submission{PolicyJSON: []byte(`{"retention_ms":2000}`)})
		w.complete(other)
		w.turn(10 * base.Minute)
		w.gone(given(other)) // whose time comes later
		same(t, "it stays", w.get(parent).Status, core.Succeeded)
		w.complete(child)
		w.turn(2 * base.Hour)
		w.gone(parent)
	})
}

func TestL140_a_parent_whose_end_has_not_reached_its_children_is_not_deleted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := w.parent()
		w.spawn(p, "c")
		w.end("c")
		w.cfg.NoTimers, w.cfg.PollInterval = true, time.Hour // the children flow is sealed by follow-up work
		w.restart()
		w.complete(p)
		refusal := refused(t, w.delete(given(p)), base.CodeRetained)
		same(t, "cause", refusal.Details["cause"], "children")
		w.cfg.NoTimers, w.cfg.PollInterval = false, 0
		w.restart()
		w.workedOff("end_children")
		ok(t, w.delete(given(p)))
	})
}

func TestL140_a_child_that_is_replayed_while_its_parent_is_deleted_keeps_the_parent(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		p := w.parent()
		made := w.spawn(p, "c")
		w.end("c")
		w.complete(p)
		w.workedOff("end_children")
		b.beforeBegin.set(func(want store.Want) bool { return len(want.Executions) == 1 && want.Executions[0] == given(p).UUID }, func() {
			must(w.e.Replay(w.ctx(), operator, made.Children["c"].Given(), engine.ReplayRequest{}, engine.Operator{}))(t)
		})
		refused(t, w.delete(given(p)), base.CodeRetained)
		w.end("c")
		ok(t, w.delete(given(p)))
	})
}

func TestI6_L140_a_flow_below_that_cannot_be_read_keeps_its_parent_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.unaudited = true
		p, other := w.parent(), w.parent()
		w.spawn(p, "c")
		w.end("c")
		w.complete(p)
		w.complete(other)
		w.workedOff("end_children")
		flow := w.childrenFlow(given(p)).ID
		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 29, Key: flow.UUID.String()}, Data: []byte("\xff\xff")}}})
		job := w.ended(w.bulk(engine.BulkRequest{Action: "delete", Filter: kindFilter("parent")}).JobID)
		same(t, "the other one is deleted", job.Done, 1)
		same(t, "that one is not", job.Failed, 1)
		refused(t, w.delete(given(p)), base.CodeCorruption)
		w.gone(given(other))
	})
}

// deleteFlow deletes a flow as an operator does.
func (w *world) deleteFlow(of engine.FlowAnswer, key string) error {
	by := operator
	by.RequestKey = key
	return w.e.DeleteFlow(w.ctx(), by, engine.DeleteFlowRequest{Flow: of.Flow.ID.Given(), Reason: "erased"})
}

// flowGone fails unless nothing is shown of a flow, and waits until nothing is left of it.
func (w *world) flowGone(of engine.FlowAnswer) {
	w.t.Helper()
	_, err := w.e.Flow(w.ctx(), client, of.Flow.ID.Given())
	refused(w.t, err, base.CodeFlowNotFound)
	for _, id := range of.Members {
		_, err := w.e.Describe(w.ctx(), client, id.Given())
		refused(w.t, err, base.CodeExecutionNotFound)
	}
	for _, id := range of.Members {
		w.erased(id)
	}
}

// erased waits until the row of an execution is gone, and everything with it.
func (w *world) erased(id base.ID) {
	w.t.Helper()
	eventually(w.t, "the row is gone", func() bool {
		return len(must(w.store.Read(w.ctx(), store.Want{Executions: []base.UUID{id.UUID}}))(w.t).Executions) == 0
	})
	w.noTrace(id.Given())
}

func TestL140_L141_a_finished_flow_is_deleted_with_all_that_hangs_on_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		outer := w.submitFlow(nodeOf(inner()))
		sub := w.subflow(outer, "n")
		refusal := refused(t, w.deleteFlow(outer, ""), base.CodeFlowNotTerminal)
		same(t, "open", refusal.Details["open"], 2)
		x := w.claimKind("x")
		w.step(x, "s", "done")
		made := w.spawn(x, "c")
		w.end("c")
		w.complete(x)
		w.end("y")
		w.end("after")
		w.flowBecomes(outer, core.FlowCompleted)
		w.workedOff("end_children")
		same(t, "a sub-flow goes with its node", refused(t, w.deleteFlow(sub, ""), base.CodeRetained).Details["cause"], "parent")
		must(w.e.Retain(w.ctx(), operator, made.Children["c"].Given(), 0, engine.Operator{Reason: "law"}))(t)
		refusal = refused(t, w.deleteFlow(outer, ""), base.CodeRetained)
		same(t, "what is retained at any depth", refusal.Details["cause"], "retain")
		must(w.e.Unretain(w.ctx(), operator, made.Children["c"].Given(), engine.Operator{}))(t)

		stale := engine.DeleteFlowRequest{Flow: outer.Flow.ID.Given(), Expected: ptr(int64(7))}
		refused(t, w.e.DeleteFlow(w.ctx(), operator, stale), base.CodeStaleGraphRevision)
		ok(t, w.deleteFlow(outer, "once"))
		ok(t, w.deleteFlow(outer, "once"))
		refused(t, w.deleteFlow(outer, "again"), base.CodeFlowNotFound)
		for _, flow := range []engine.FlowAnswer{outer, sub} {
			w.flowGone(flow)
		}
		w.gone(made.Children["c"].Given())
		same(t, "no flow is listed", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 0)
		story := w.flowStory(outer)
		same(t, "told", story[len(story)-1], "flow.deleted")
	})
}

func TestL141_members_of_a_flow_whose_record_is_gone_are_shown_no_more(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(lineOf("a", "b"))
		w.end("a")
		w.end("b")
		w.cfg.NoTimers, w.cfg.PollInterval = true, time.Hour // the rows of the members are left
		w.restart()
		ok(t, w.deleteFlow(line, ""))
		a := line.Members["a"].Given()
		_, err := w.e.Describe(w.ctx(), client, a)
		refused(t, err, base.CodeExecutionNotFound)
		_, err = w.e.SetTags(w.ctx(), operator, a, map[string]*string{"k": nil}, engine.Operator{})
		refused(t, err, base.CodeExecutionNotFound)
		_, err = w.e.Retain(w.ctx(), operator, a, 0, engine.Operator{})
		refused(t, err, base.CodeExecutionNotFound)
		refused(t, w.replayMember(line, "a", engine.ReplayRequest{}), base.CodeExecutionNotFound)
		refused(t, w.delete(a), base.CodeExecutionNotFound)
		page := must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t)
		same(t, "listed", len(page.Items), 0)
		w.swept()
		w.erased(a.ID())
	})
}

func TestL140_a_member_that_is_retained_while_its_flow_is_about_to_go_keeps_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		s := lineOf("a", "b")
		s.Defaults.PolicyJSON = []byte(`{"retention_ms":1000}`)
		line := w.submitFlow(s)
		w.end("a")
		retained := make(chan error, 1)
		b.afterRead.set(func(want store.Want) bool { return len(want.Executions) == 2 && len(want.Owned) == 2 }, func() {
			_, err := w.e.Retain(w.ctx(), operator, line.Members["a"].Given(), 0, engine.Operator{Reason: "law"})
			retained <- err
		})
		w.end("b")
		other := w.submitFlow(s)
		w.turn(5000)
		ok(t, <-retained)
		w.end("a")
		w.end("b")
		w.turn(5000)
		w.gone(other.Members["a"].Given()) // whose time came later
		same(t, "it stays", w.member(line, "a").Status, core.Succeeded)
	})
}

func TestU55_the_flows_below_an_execution_are_deleted_with_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		p := w.parent()
		first := w.spawn(p, "c")
		w.end("c")
		w.complete(p)
		w.workedOff("end_children")
		w.replay(given(p))
		p = w.claimKind("parent")
		second := w.spawn(p, "c")
		w.end("c")
		w.complete(p)
		w.workedOff("end_children")
		must(w.e.Retain(w.ctx(), operator, first.Children["c"].Given(), 0, engine.Operator{Reason: "law"}))(t)
		refused(t, w.delete(given(p)), base.CodeRetained)
		must(w.e.Unretain(w.ctx(), operator, first.Children["c"].Given(), engine.Operator{}))(t)
		ok(t, w.delete(given(p)))
		for _, id := range []base.ID{first.Children["c"], second.Children["c"]} {
			_, err := w.e.Describe(w.ctx(), client, id.Given())
			refused(t, err, base.CodeExecutionNotFound)
			w.erased(id)
		}
	})
}

func TestI18_L141_a_flow_that_is_removed_while_search_rows_are_written_leaves_none(t *testing.T) {
	t.Parallel()
	for _, on := range []func(*testing.T, engine.Config, func(*testing.T, *world)){onAlone, onShared} {
		var armed atomic.Bool
		reached, release := make(chan struct{}), make(chan struct{})
		cfg := engine.Config{Trap: func(place, _ string) {
			if place == "project" && armed.CompareAndSwap(true, false) {
				close(reached)
				<-release
			}
		}}
		on(t, cfg, func(t *testing.T, w *world) {
			flow := w.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: "a"}}})
			w.end("a")
			w.finished(flow)
			a := flow.Members["a"].Given()
			must(w.e.Retain(w.ctx(), operator, a, 0, engine.Operator{Reason: "law"}))(t)
			ok(t, w.e.Follower.ReachAll(w.ctx()))
			armed.Store(true)
			must(w.e.Unretain(w.ctx(), operator, a, engine.Operator{}))(t) // the next round writes its row
			<-reached
			ok(t, w.deleteFlow(flow, ""))
			w.flowGone(flow)
			close(release)
			w.whole()
		})
	}
}
