package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// graphCrash is a scene in which a command is lost: what is there before, the call that makes the command necessary, what workers do
// afterwards, and how it all ends.
type graphCrash struct {
	command string
	begin   func(w *world) (engine.FlowAnswer, func() error)
	work    []string // kinds of the work that is left, in the order in which it comes
	state   core.FlowState
	counts  map[string]int
}

// wide is a flow of many that nothing joins.
func wide(n int) core.FlowSubmission {
	s := fan(n)
	s.Nodes = s.Nodes[1:]
	for i := range s.Nodes {
		s.Nodes[i].After = nil
	}
	return s
}

// ends is the call that ends a task.
func (w *world) ends(task engine.Task, end ending) func() error {
	return func() error { return end(w.e, w, task) }
}

var graphCrashes = []graphCrash{
	{
		command: "complete", work: []string{"work"}, state: core.FlowCompleted, counts: map[string]int{"completed": 2},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			flow := w.submitFlow(chain("a", "b"))
			return flow, w.ends(w.claimMember(flow, "a"), succeeds)
		},
	},
	{
		command: "resolve_edges", state: core.FlowFailed, counts: map[string]int{"failed": 1, "skipped": 600},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			flow := w.submitFlow(fan(600))
			return flow, w.ends(w.claimMember(flow, "root"), fails)
		},
	},
	{
		command: "cancel_losers", work: []string{"d"}, state: core.FlowCompleted, counts: map[string]int{"completed": 2, "cancelled": 3},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			flow := w.submitFlow(core.FlowSubmission{Kind: "branch", Nodes: []core.FlowNode{
				{Name: "fast", Kind: "fast"},
				{Name: "slow1", Kind: "slow"},
				{Name: "slow2", Kind: "slow", After: []string{"slow1"}},
				{Name: "slow3", Kind: "slow", After: []string{"slow2"}},
				{Name: "d", Kind: "d", After: []string{"fast", "slow3"}, Join: firstOf()},
			}})
			return flow, w.ends(w.takeKind("fast", 1)[0], succeeds)
		},
	},
	{
		command: "cancel_members", state: core.FlowStopped, counts: map[string]int{"cancelled": 800},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			flow := w.submitFlow(wide(800))
			return flow, func() error {
				_, err := w.e.CancelFlow(w.ctx(), operator, engine.CancelFlowRequest{Flow: flow.Flow.ID.Given()})
				return err
			}
		},
	},
	{
		command: "begin_subflow", work: []string{"x", "y", "after"}, state: core.FlowCompleted, counts: map[string]int{"completed": 3},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			s := nodeOf(inner())
			s.Nodes = append(s.Nodes, core.FlowNode{Name: "a", Kind: "a"})
			s.Nodes[0].After = []string{"a"}
			flow := w.submitFlow(s)
			return flow, w.ends(w.takeKind("a", 1)[0], succeeds)
		},
	},
	{
		command: "end_node", work: []string{"after"}, state: core.FlowCompleted, counts: map[string]int{"completed": 2},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			flow := w.submitFlow(nodeOf(inner()))
			w.workOff("x", 1, succeeds)
			return flow, w.ends(w.takeKind("y", 1)[0], succeeds)
		},
	},
	{
		command: "end_children", state: core.FlowStopped, counts: map[string]int{"completed": 1, "cancelled": 299},
		begin: func(w *world) (engine.FlowAnswer, func() error) {
			task, flow := w.family(300)
			w.workOff("first", 1, succeeds)
			return flow, w.ends(task, fails)
		},
	},
	{
		command: "end_children", state: core.FlowCompleted, counts: map[string]int{"completed": 1},
		begin: func(w *world) (engine.FlowAnswer, func() error) { // the end of the parent seals the flow, and so ends it
			task, flow := w.family(1)
			w.workOff("first", 1, succeeds)
			return flow, w.ends(task, succeeds)
		},
	},
	{
		command: "end_children", state: core.FlowStopped, counts: map[string]int{"cancelled": 2},
		begin: func(w *world) (engine.FlowAnswer, func() error) { // the node of a sub-flow ends without it
			flow := w.submitFlow(nodeOf(inner()))
			return w.subflow(flow, "n"), func() error {
				_, err := w.e.Cancel(w.ctx(), operator, flow.Members["n"].Given(), nil, "", engine.Operator{})
				return err
			}
		},
	},
}

// family is a parent that runs, and the flow of its children, the first of which has a kind of its own.
func (w *world) family(n int) (engine.Task, engine.FlowAnswer) {
	w.t.Helper()
	task := w.parent()
	r := spawnOf(task)
	for i := range n {
		r.Children = append(r.Children, core.FlowNode{Name: fmt.Sprint("c", i), Kind: "work"})
	}
	r.Children[0].Kind = "first"
	return task, engine.FlowAnswer{Members: w.spawnAll(r).Children, Flow: w.childrenFlow(given(task)).Flow}
}

// check waits for the end of the scene while the clock goes on, and looks whether everything happened once.
func (c *graphCrash) check(w *world, flow engine.FlowAnswer) {
	w.t.Helper()
	for _, kind := range c.work {
		w.comes(kind)
		w.workOff(kind, 1, succeeds)
	}
	var view engine.FlowView
	w.turning(250, "the flow is "+string(c.state), func() bool {
		view = w.flow(flow)
		return view.State == c.state
	})
	counts := map[string]int{}
	for state, n := range view.Counts {
		if n > 0 {
			counts[state] = n
		}
	}
	same(w.t, "counts", counts, c.counts)
	told := map[base.ID]int{}
	for _, ev := range w.events(engine.EventFilter{Kinds: []string{"execution.completed"}}) {
		told[ev.ExecutionID]++
	}
	for name, id := range flow.Members {
		if told[id] != 1 {
			w.t.Errorf("the end of %s is reported %d times", name, told[id])
		}
	}
}

// comes lets the clock go on until there is work of a kind: what failed is tried again a little later.
func (w *world) comes(kind string) {
	w.t.Helper()
	w.turning(250, "work of kind "+kind, func() bool {
		page := must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: core.Filter{Kind: []string{kind}, Status: []string{"ready"}}, Limit: ptr(1)}))(w.t)
		return len(page.Items) == 1
	})
}

func TestF28_F32_F44_F48_F49_a_commit_that_is_lost_leads_to_the_same_end(t *testing.T) {
	t.Parallel()
	for _, c := range graphCrashes {
		for name, written := range map[string]bool{"before": false, "after": true} {
			t.Run(c.command+" "+name, func(t *testing.T) {
				t.Parallel()
				onStores(t, func(t *testing.T, w *world) {
					lost := &breaks{name: c.command, written: written}
					w.cfg.Probe = lost
					w.restart()
					flow, call := c.begin(w)
					lost.armed.Store(true)
					if err := call(); err != nil {
						ok(t, call())
					}
					eventually(t, c.command+" is lost", func() bool { return !lost.armed.Load() })
					c.check(w, flow)
				})
			})
		}
	}
}

func TestF28_F32_F44_F48_F49_a_process_that_dies_at_a_commit_leaves_the_rest_to_the_next(t *testing.T) {
	t.Parallel()
	for _, c := range graphCrashes {
		left := int64(0)
		if c.command == "resolve_edges" || c.command == "cancel_members" || c.command == "cancel_losers" {
			left = 1 // of several
		}
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				dead := &stopAfter{name: c.command, left: left}
				dead.open.Store(true)
				w.cfg.Probe = dead
				w.restart()
				flow, call := c.begin(w)
				dead.open.Store(false)
				err := call()
				eventually(t, c.command+" is refused", func() bool { return dead.refused.Load() > 0 })
				w.cfg.Probe = nil
				w.restart()
				if err != nil {
					ok(t, call())
				}
				c.check(w, flow)
			})
		})
	}
}
