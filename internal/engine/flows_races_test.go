package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// consistent compares what a flow and its joins count with its members and edges, one by one (FI2, FI3, FI10).
func (w *world) consistent(of engine.FlowAnswer) {
	w.t.Helper()
	graph := must(w.e.Graph(w.ctx(), client, of.Flow.ID.Given(), "", 0))(w.t)
	f, open, ends := graph.Flow, 0, core.FlowEnds{}
	for _, m := range graph.Members {
		switch m.Execution.Status {
		case core.Succeeded:
			ends.Completed++
		case core.Failed:
			ends.Failed++
		case core.Cancelled:
			ends.Cancelled++
		case core.Expired:
			ends.Expired++
		case core.Skipped:
			ends.Skipped++
		default:
			open++
		}
		want := core.Join{JoinSpec: m.Join.JoinSpec, State: m.Join.State, DecidedAt: m.Join.DecidedAt, Passes: m.Join.Passes, Detail: m.Join.Detail}
		for _, e := range graph.Edges {
			if e.To.ID != m.Execution.ID {
				continue
			}
			want.N++
			switch e.State {
			case core.EdgeSatisfied:
				want.Satisfied++
			case core.EdgeImpossible:
				want.Impossible++
			}
		}
		same(w.t, "join of "+m.Execution.Member.Name, m.Join.Join, want)
	}
	same(w.t, "the flow counts", []any{f.Nodes, f.Edges, f.Open, f.Ends}, []any{len(graph.Members), len(graph.Edges), open, ends})
}

func TestF21_FI3_edges_that_are_added_while_their_upstreams_end_are_counted_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		const n = 40
		s := core.FlowSubmission{Kind: "race", Unsealed: true}
		for i := range n {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprint("u", i), Kind: "up"})
		}
		flow := w.submitFlow(s)
		tasks := w.takeKind("up", n)
		var wg sync.WaitGroup
		for i, task := range tasks {
			wg.Go(func() {
				if err := succeeds(engines[i%2], w, task); err != nil {
					t.Errorf("complete: %v", err)
				}
			})
		}
		for i := range 8 {
			wg.Go(func() {
				node := core.FlowNode{Name: fmt.Sprint("d", i), Kind: "down"}
				for u := range n / 8 {
					node.After = append(node.After, fmt.Sprint("u", i*n/8+u))
				}
				x := core.FlowExtension{Flow: flow.Flow.ID.Given(), Nodes: []core.FlowNode{node}}
				if _, err := engines[i%2].ExtendFlow(w.ctx(), client, x); err != nil {
					t.Errorf("extend: %v", err)
				}
			})
		}
		wg.Wait()
		w.workOff("down", 8, succeeds, engines...)
		w.extend(flow, core.FlowExtension{Seal: true})
		w.flowBecomes(flow, core.FlowCompleted)
		w.consistent(flow)
	})
}

func TestF50_FI9_members_that_end_while_their_flow_is_cancelled_keep_their_outcome(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		s := wide(300)
		for i := range 100 {
			s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprint("d", i), Kind: "down", After: []string{s.Nodes[i].Name, s.Nodes[i+100].Name}})
		}
		flow := w.submitFlow(s)
		tasks := w.takeKind("work", 100)
		var wg sync.WaitGroup
		var mu sync.Mutex
		done := map[base.ID]bool{}
		for i, task := range tasks {
			wg.Go(func() {
				if succeeds(engines[i%2], w, task) == nil {
					mu.Lock()
					defer mu.Unlock()
					done[task.Execution.ID] = true
				}
			})
		}
		for i := range 2 {
			wg.Go(func() {
				if _, err := engines[i].CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: flow.Flow.ID.Given(), Reason: fmt.Sprint("by ", i)}); err != nil {
					t.Errorf("cancel: %v", err)
				}
			})
		}
		wg.Wait()
		view := w.flowBecomes(flow, core.FlowStopped)
		same(t, "who was told that he completed did", view.Counts["completed"], len(done))
		for id := range done {
			w.is(id.Given(), core.Succeeded, core.Completed)
		}
		same(t, "numbers of the cancel", view.Cancel.Cancelled+view.Cancel.Before, view.Nodes)
		w.consistent(flow)
		same(t, "asked for once", w.flowStory(flow), []string{"flow.created", "flow.cancel_requested", "flow.cancelled"})
	})
}

func TestF28_FI4_a_grid_that_many_end_at_once_on_two_servers_runs_to_its_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		const width, depth = 12, 5
		s := core.FlowSubmission{Kind: "grid"}
		for row := range depth {
			for col := range width {
				node := core.FlowNode{Name: fmt.Sprintf("r%dc%d", row, col), Kind: fmt.Sprint("row", row)}
				for up := range width {
					if row > 0 && (up+col)%3 != 0 {
						node.After = append(node.After, fmt.Sprintf("r%dc%d", row-1, up))
					}
				}
				s.Nodes = append(s.Nodes, node)
			}
		}
		flow := w.submitFlow(s)
		for row := range depth {
			w.workOff(fmt.Sprint("row", row), width, succeeds, engines...)
		}
		same(t, "completed", w.flowBecomes(flow, core.FlowCompleted).Counts["completed"], width*depth)
		w.consistent(flow)
		last := flow.Members["r4c0"].Given()
		same(t, "ready once", w.count(last, "execution.ready"), 1)
	})
}

func TestF28_a_downstream_that_another_transaction_holds_is_reached_by_follow_up_work(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "held", Nodes: append(nodesNamed("a"),
			core.FlowNode{Name: "b", Kind: "b", After: []string{"a"}}, core.FlowNode{Name: "c", Kind: "c", After: []string{"a"}})})
		task := w.takeKind("a", 1)[0]
		tx, _ := w.beginOn(w.openStore(), store.Want{Executions: []base.UUID{flow.Members["b"].UUID}})
		w.complete(task) // it does not wait
		w.workOff("c", 1, succeeds)
		w.is(flow.Members["b"].Given(), core.Blocked, core.WaitingForChildren)
		tx.Rollback(w.ctx())
		w.comes("b")
		w.workOff("b", 1, succeeds)
		w.flowBecomes(flow, core.FlowCompleted)
		w.consistent(flow)
	})
}
