package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestF44_what_becomes_of_children_when_their_parent_ends(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *world, task engine.Task){
		"succeeded": func(w *world, task engine.Task) { w.complete(task) },
		"failed":    func(w *world, task engine.Task) { w.fail(task, "permanent") },
		"cancelled": func(w *world, task engine.Task) { w.cancel(given(task)) },
		"expired":   func(w *world, task engine.Task) { w.pass(base.Hour); w.becomes(given(task), core.Expired) },
	}
	cancels := map[string]bool{
		"/failed": true, "/cancelled": true, "/expired": true,
		"cancel_on_failure/failed": true, "cancel_on_failure/cancelled": true, "cancel_on_failure/expired": true,
		"cancel/succeeded": true, "cancel/failed": true, "cancel/cancelled": true, "cancel/expired": true,
	}
	onStores(t, func(t *testing.T, w *world) {
		for _, policy := range []string{"", core.CancelOnFailure, core.CancelAlways, core.Detach} {
			for how, end := range ends {
				name := policy + "/" + how
				w.submit(core.Submission{Kind: "parent", DeadlineAt: w.now() + base.Time(base.Hour)})
				task := w.claimKind("parent")
				must(w.renew(task, base.Hour+base.Minute))(t)
				r := spawnOf(task, "a", "b", "c")
				r.OnParentEnd = policy
				ids := w.spawnAll(r).Children
				w.end("a")
				b := w.claimKind("b")
				must(w.renew(b, 2*base.Hour))(t)
				end(w, task)
				flow := w.get(given(task)).Children.FlowID
				if !cancels[name] {
					eventually(t, name+": it is sealed", func() bool { return must(w.e.Flow(w.ctx(), client, flow.Given()))(t).Sealed })
					w.complete(b)
					w.end("c")
					same(t, name+": the flow", w.flowEnds(flow).State, core.FlowCompleted)
					continue
				}
				f := w.flowEnds(flow)
				same(t, name+": the flow", f.State, core.FlowStopped)
				same(t, name+": sealed", f.Sealed, true)
				same(t, name+": source", f.Cancel.Source, core.SourceParent)
				for _, child := range []string{"b", "c"} {
					x := w.is(ids[child].Given(), core.Cancelled, core.FlowCancelled)
					same(t, name+": source of a child", x.Cancellation.Source, core.SourceParent)
				}
				w.is(ids["a"].Given(), core.Succeeded, core.Completed)
				refused(t, second(w.e.Complete(w.ctx(), client, given(b), fence(b), nil)), base.CodeExecutionNotActive)
			}
		}
	})
}

func TestF44_a_retry_and_a_reclaim_are_no_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)})
		task := w.claimKind("parent")
		r := spawnOf(task, "a")
		r.OnParentEnd = core.CancelAlways
		ids := w.spawnAll(r).Children
		w.fail(task, "transient")
		w.claimKind("parent")
		w.pass(60_000)
		task = w.claimKind("parent")
		same(t, "sealed", w.childrenFlow(given(task)).Sealed, false)
		w.is(ids["a"].Given(), core.Ready, core.WaitingForWorker)
	})
}

func TestF4_F44_children_that_have_ended_before_their_parent_end_their_flow_with_it(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			child func(string)
			want  core.FlowState
		}{{w.end, core.FlowCompleted}, {w.breakDown, core.FlowFailed}} {
			task := w.parent()
			w.spawn(task, "a")
			c.child("a")
			w.fail(task, "permanent")
			f := w.flowEnds(w.get(given(task)).Children.FlowID)
			same(t, "state", f.State, c.want)
			id := f.ID
			var kinds []string
			for _, ev := range w.events(engine.EventFilter{Kinds: []string{"flow."}}) {
				if ev.FlowID == id {
					kinds = append(kinds, ev.Kind)
				}
			}
			same(t, "events (F63)", kinds, []string{"flow.created", "flow.extended", "flow.sealed", "flow." + string(c.want)})
		}
	})
}

func TestF24_F44_the_seal_makes_a_quorum_that_lacks_edges_impossible(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b")
		r.Children[1].Join = &core.JoinSpec{Policy: core.Quorum, K: 2}
		r.Children[1].After = []string{"a"}
		ids := w.spawnAll(r).Children
		w.end("a")
		w.is(ids["b"].Given(), core.Blocked, core.WaitingForChildren)
		w.complete(task)
		x := w.becomes(ids["b"].Given(), core.Skipped)
		same(t, "detail", x.Member.Join.Detail, "quorum_unreachable")
		same(t, "flow", w.flowEnds(x.FlowID).State, core.FlowCompleted)
	})
}

func TestF44_F48_a_cancel_reaches_children_of_children_and_sub_flows_at_every_depth(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		inner := chain("x", "y")
		r := spawnOf(task, "a")
		r.Children = append(r.Children, core.FlowNode{Name: "sub", Flow: &inner})
		w.spawnAll(r)
		a := w.claimKind("a")
		deeper := w.spawn(a, "b").Children
		b := w.claimKind("b")
		deepest := w.spawn(b, "c").Children
		w.parked(a)
		x := w.claimKind("work")
		w.cancel(given(task))
		for _, id := range []base.ID{deeper["b"], deepest["c"], x.Execution.ID} {
			same(t, "reason", w.becomes(id.Given(), core.Cancelled).Reason, core.FlowCancelled)
		}
		same(t, "sub-flow", w.flowEnds(x.Execution.FlowID).State, core.FlowStopped)
		refused(t, second(w.e.Complete(w.ctx(), client, given(b), fence(b), nil)), base.CodeExecutionNotActive)
	})
}

func TestF44_many_children_are_cancelled_in_batches(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		names := make([]string, 600)
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
		}
		w.spawn(task, names...)
		w.cancel(given(task))
		flow := w.get(given(task)).Children.FlowID
		f := w.flowEnds(flow)
		same(t, "state", f.State, core.FlowStopped)
		same(t, "cancelled", f.Ends.Cancelled, len(names))
	})
}

func TestF7_a_children_flow_that_was_cancelled_takes_no_more_and_the_parent_goes_on(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		ids := w.spawn(task, "a").Children
		w.parked(task)
		flow := w.get(given(task)).Children.FlowID
		must(w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: flow.Given()}))(t)
		back := w.claimKind("parent")
		same(t, "children", outcomes(back.Children), map[string]string{"a": "cancelled"})
		same(t, "the child that is there", w.spawn(back, "a").Children, ids)
		refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(back, "b"))), base.CodeFlowAlreadyTerminal)
		w.complete(back)
	})
}
