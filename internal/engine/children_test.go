package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestF38_children_live_in_a_flow_of_their_own_and_start_at_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		got := w.spawn(task, "a", "b")
		same(t, "names", sortedKeys(got.Children), []string{"a", "b"})
		same(t, "created", got.Created, 2)
		w.is(given(task), core.Running, core.ReasonNone)
		f := w.childrenFlow(given(task))
		same(t, "kind", f.Kind, core.KindChildren)
		same(t, "parent", f.Parent, task.Execution.ID)
		same(t, "sealed", f.Sealed, false)
		same(t, "members", f.Nodes, 2)
		same(t, "partition", f.ID.N, task.Execution.ID.N)
		same(t, "it is its own root (F45)", f.Root, f.ID)
		child := w.claimKind("a")
		same(t, "child", child.Execution.ID, got.Children["a"])
		same(t, "whose", child.Execution.ParentID, task.Execution.ID)
		same(t, "partition of a child (F2)", child.Execution.ID.N, task.Execution.ID.N)
		w.complete(child)
		w.end("b")
		same(t, "an unsealed flow stays open (F4)", w.childrenFlow(given(task)).State, core.FlowOpen)
	})
}

func TestF38_the_parents_own_flow_is_not_touched(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		line := w.submitFlow(chain("a", "b"))
		before := w.flow(line)
		task := w.claimMember(line, "a")
		w.spawn(task, "b")
		after := w.flow(line)
		same(t, "revision", after.Revision, before.Revision)
		same(t, "members", after.Nodes, before.Nodes)
		children := w.childrenFlow(given(task))
		same(t, "root", children.Root, line.Flow.ID)
		same(t, "depth", children.Depth, 1)
	})
}

func TestF39_FI13_a_handler_that_runs_three_times_spawns_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":0}}}`)})
		task := w.claimKind("parent")
		first := w.spawn(task, "a", "b")
		same(t, "made by the first", first.Created, 2)
		w.fail(task, "transient")
		task = w.claimKind("parent") // an attempt later
		again := w.spawn(task, "b", "a", "c")
		same(t, "made by the second", again.Created, 1)
		same(t, "the same child", again.Children["a"], first.Children["a"])
		w.pass(60_000)
		task = w.claimKind("parent") // its worker was lost
		same(t, "how", task.How, "reclaimed")
		third := w.spawn(task, "a", "b", "c")
		same(t, "made by the third", third.Created, 0)
		same(t, "children", third.Children, again.Children)
		f := w.childrenFlow(given(task))
		same(t, "members", f.Nodes, 3)
		same(t, "revision: one for each that changed something (F17)", f.Revision, 2)
	})
}

func TestF39_the_same_name_for_other_work_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a")
		r.Children[0].Input = &core.Payload{Data: []byte("one")}
		first := must(w.e.Spawn(w.ctx(), client, r))(t)
		same(t, "again", must(w.e.Spawn(w.ctx(), client, r))(t).Children, first.Children)
		r = spawnOf(task, "new", "a")
		r.Children[1].Input = &core.Payload{Data: []byte("two")}
		err := refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeNameTaken)
		same(t, "place", err.Field, "children[1].name")
		same(t, "nothing of it was made", w.childrenFlow(given(task)).Nodes, 1)
	})
}

func TestF38_edges_among_children_hold_from_the_start_and_reach_earlier_children(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b")
		r.Children[1].After = []string{"a"}
		w.spawnAll(r)
		w.end("a")
		r = spawnOf(task, "a", "b", "c", "d")
		r.Children[1].After = []string{"a"}
		r.Children[2].After = []string{"a", "b"} // a has ended
		r.Edges = []core.FlowEdge{{From: "c", To: "d", Kind: core.AnyTerminal}}
		got := w.spawnAll(r)
		same(t, "created", got.Created, 2)
		w.is(got.Children["c"].Given(), core.Blocked, core.WaitingForChildren)
		w.end("b")
		c := w.claimKind("c")
		same(t, "inputs (F33)", inputNames(c.Inputs), []string{"a", "b"})
		w.fail(c, "permanent")
		w.end("d")
		same(t, "edges", w.childrenFlow(given(task)).Edges, 4)

		r = spawnOf(task, "e")
		r.Edges = []core.FlowEdge{{From: "e", To: "a"}}
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeDownstreamAlreadyStarted)
		r = spawnOf(task, "e", "f")
		r.Edges = []core.FlowEdge{{From: "e", To: "f"}, {From: "f", To: "e"}}
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeCycleDetected)
		r = spawnOf(task, "e")
		r.Edges = []core.FlowEdge{{From: "missing", To: "e"}}
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeExecutionNotInFlow)
	})
}

// spawnAll makes children as asked.
func (w *world) spawnAll(r engine.SpawnRequest) engine.SpawnAnswer {
	w.t.Helper()
	return must(w.e.Spawn(w.ctx(), client, r))(w.t)
}

func TestF12_F38_one_bad_child_leaves_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task, "a", "b")
		r.Children[1].PolicyJSON = []byte(`{"budget_ids":["missing"]}`)
		err := refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeInvalidPolicy)
		if err.Field == "" || err.Field[:len("children[1]")] != "children[1]" {
			t.Errorf("field %q", err.Field)
		}
		same(t, "children", w.get(given(task)).Children, nil)
		r = spawnOf(task, "a")
		r.OnParentEnd = "later"
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeInvalidArgument)
	})
}

func TestL34_L36_a_spawn_needs_the_fence_and_takes_effect_late(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		stale := spawnOf(task, "a")
		stale.Fence.Epoch++
		refused(t, second(w.e.Spawn(w.ctx(), client, stale)), base.CodeStaleLease)
		r := spawnOf(task, "a")
		r.Fence = core.Fence{}
		refused(t, second(w.e.Spawn(w.ctx(), client, r)), base.CodeFenceRequired)
		w.pass(60_000)
		w.becomes(given(task), core.Ready)
		same(t, "late", w.spawn(task, "a").Created, 1)
		w.is(given(task), core.Ready, core.WaitingForWorker)
		w.cancel(given(task))
		refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(task, "b"))), base.CodeExecutionNotActive)
	})
}

func TestF45_flows_are_nested_no_deeper_than_32(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		for depth := range core.MaxFlowDepth + 1 {
			w.spawn(task, "parent")
			child := w.claimKind("parent")
			same(t, "depth", w.childrenFlow(given(task)).Depth, depth)
			task = child
		}
		refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(task, "parent"))), base.CodeNestingLimitExceeded)
	})
}

func TestF45_a_sub_flow_in_a_spawn_counts_too(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		r := spawnOf(task)
		inner := chain("x", "y")
		r.Children = []core.FlowNode{{Name: "sub", Flow: &inner}}
		r.Wait = &engine.ChildrenWaitRequest{}
		got := w.spawnAll(r)
		same(t, "waiting (F43)", got.Wait.Waiting, true)
		for range 2 {
			w.complete(w.claimKind("work"))
		}
		back := w.claimKind("parent")
		same(t, "a flow node is waited for like any child (F48)", outcomes(back.Children), map[string]string{"sub": "succeeded"})
	})
}

func TestF38_limits_of_one_spawn(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		names := make([]string, core.MaxSpawned+1)
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
		}
		refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(task, names...))), base.CodeFlowLimitExceeded)
		r := spawnOf(task, names[:core.MaxSpawned]...)
		for i := range r.Children {
			r.Children[i].Kind = "many"
		}
		same(t, "created", w.spawnAll(r).Created, core.MaxSpawned)
		same(t, "again", w.spawnAll(r).Created, 0)
		w.parked(task)
		claims := ask()
		claims.Max, claims.Kinds = core.MaxSpawned, []string{"many"}
		for left := core.MaxSpawned; left > 0; {
			for _, child := range w.take(claims) {
				w.complete(child)
				left--
			}
		}
		same(t, "children", len(w.claimKind("parent").Children), core.MaxSpawned)
	})
}

// crowded is a store in which every flow that is read seems to have so many members.
type crowded struct {
	store.Store
	members int
}

func (c *crowded) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := c.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	for ref, doc := range loaded.Docs {
		var f core.Flow
		if store.DecodeFlow(doc.Data, &f) == nil {
			f.Nodes = c.members
			doc.Data = store.EncodeFlow(&f)
			loaded.Docs[ref] = doc
		}
	}
	return loaded, nil
}

func TestF38_the_children_of_one_run_have_a_limit(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		w.spawn(task, "first")
		closeEngine(t, w.e)
		w.e = w.openEngine(&crowded{w.store, core.MaxChildren - 1})
		refusal := refused(t, second(w.e.Spawn(w.ctx(), client, spawnOf(task, "a", "b"))), base.CodeFlowLimitExceeded)
		same(t, "place", []any{refusal.Field, refusal.Details["limit"]}, []any{"children", core.MaxChildren})
		same(t, "what is there already counts once", w.spawn(task, "first", "last").Created, 1)
	})
}

func TestF38_a_replayed_parent_has_a_new_children_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task := w.parent()
		first := w.spawn(task, "a")
		old := w.childrenFlow(given(task)).ID
		w.complete(task)
		w.replay(given(task))
		same(t, "none yet", w.get(given(task)).Children, nil)
		task = w.claimKind("parent")
		again := w.spawn(task, "a")
		same(t, "created", again.Created, 1)
		if again.Children["a"] == first.Children["a"] || w.childrenFlow(given(task)).ID == old {
			t.Error("the run has the children of another")
		}
	})
}

func TestB6_a_budget_of_the_parent_covers_what_it_spawns(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "parent", PolicyJSON: []byte(`{"budgets":[{"name":"ours","dimensions":{"tokens":{"hard":100}}}]}`)})
		task := w.claimKind("parent")
		w.spawn(task, "a")
		child := w.claimKind("a")
		w.report(child, 30)
		same(t, "used", w.numbers("ours")[0], 30)
		w.spawn(child, "b") // and what those spawn
		w.report(w.claimKind("b"), 12)
		same(t, "used", w.numbers("ours")[0], 42)
	})
}
