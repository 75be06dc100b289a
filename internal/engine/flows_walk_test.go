package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// flowWalk lets random commands about the same few flows share commits. What comes out of each is up to their order; what must hold
// afterwards is not: nothing is broken, and once all work is done every flow has ended.
type flowWalk struct {
	*world
	random *rand.Rand
	gate   *between
	tasks  []engine.Task
	made   int
	done   map[string]int // commands that were accepted, by name
}

// sharing counts transactions that several commands share.
type sharing struct{ n atomic.Int64 }

// BeforeCommit lets everything pass.
func (*sharing) BeforeCommit([]string) error { return nil }

// AfterCommit counts.
func (s *sharing) AfterCommit(commands []string) error {
	if len(commands) > 1 {
		s.n.Add(1)
	}
	return nil
}

// drawn is a command: it reports whether it was accepted.
type drawn struct {
	name string
	do   func() error
}

func (w *flowWalk) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *flowWalk) name() string {
	w.made++
	return fmt.Sprintf("n%d", w.made)
}

// spec is a join over so many edges.
func (w *flowWalk) spec(edges int) *core.JoinSpec {
	spec := &core.JoinSpec{Policy: []core.JoinPolicy{core.AllOf, core.AnyOf, core.Quorum}[w.random.IntN(3)]}
	if spec.Policy == core.Quorum {
		spec.K = 1 + w.random.IntN(edges)
	}
	if spec.Policy != core.AllOf && w.chance(2) {
		spec.OnSatisfied = core.CancelRemaining
	}
	return spec
}

// nodes are a few in an order, each after some of those before it; among them flows with nodes of their own, and some with little time.
func (w *flowWalk) nodes(n, depth int, before ...string) (nodes []core.FlowNode) {
	names := slices.Clone(before)
	for range n {
		node := core.FlowNode{Name: w.name(), Kind: "work"}
		for _, name := range names {
			if w.chance(2) {
				node.After = append(node.After, name)
			}
		}
		if len(node.After) > 0 {
			node.Join = w.spec(len(node.After))
		}
		switch {
		case depth > 0 && w.chance(4):
			node.Kind, node.Flow = "", &core.FlowSubmission{Nodes: w.nodes(1+w.random.IntN(2), depth-1)}
		case w.chance(2):
			node.DeadlineAt = w.now().Add(1 + w.random.Int64N(2000))
		}
		names, nodes = append(names, node.Name), append(nodes, node)
	}
	return nodes
}

// flows are all there are: those that were submitted, those inside of them and those of children.
func (w *flowWalk) flows() []*core.Flow {
	return must(w.e.Flows(w.ctx(), client, engine.FlowQuery{Limit: 1000}))(w.t).Flows
}

// open are the flows that have not ended.
func (w *flowWalk) open() []*core.Flow {
	return slices.DeleteFunc(w.flows(), func(f *core.Flow) bool { return f.State.Terminal() })
}

// members are those of flows.
func (w *flowWalk) members(flows []*core.Flow) (all []*core.Execution) {
	for _, f := range flows {
		for _, m := range must(w.e.Graph(w.ctx(), client, f.ID.Given(), "", 0))(w.t).Members {
			all = append(all, m.Execution)
		}
	}
	return all
}

// take claims what there is and remembers it.
func (w *flowWalk) takeAll() int {
	r := ask()
	r.Max, r.TTL = 1000, base.Hour
	got := w.world.take(r)
	w.tasks = append(w.tasks, slices.DeleteFunc(got, func(t engine.Task) bool { return t.Execution.FlowID.IsZero() && t.Execution.ParentID.IsZero() })...)
	return len(got)
}

// scene is what commands are drawn about. Most are about one member and its flow, so that they meet.
type scene struct {
	flows   []*core.Flow
	members []*core.Execution
	tasks   []engine.Task
	focus   *core.Execution // nil: there are no members
}

// look sees the flows that are open, and a few of the others.
func (w *flowWalk) look() *scene {
	s := &scene{tasks: w.tasks[max(0, len(w.tasks)-6):]}
	ended := 0
	for _, f := range w.flows() {
		if f.State.Terminal() {
			ended++
		}
		if !f.State.Terminal() || ended <= 6 {
			s.flows = append(s.flows, f)
		}
	}
	s.members = w.members(s.flows)
	if len(s.members) > 0 {
		s.focus = s.members[w.random.IntN(len(s.members))]
	}
	if len(s.tasks) > 0 && w.chance(2) {
		s.focus = s.tasks[w.random.IntN(len(s.tasks))].Execution
	}
	return s
}

// flow is the one of the focus, mostly.
func (w *flowWalk) flowIn(s *scene) *core.Flow {
	at := slices.IndexFunc(s.flows, func(f *core.Flow) bool { return s.focus != nil && f.ID == s.focus.FlowID })
	if at < 0 || w.chance(3) {
		at = w.random.IntN(len(s.flows))
	}
	return s.flows[at]
}

// taskIn is the one of the focus, mostly: other commands may have come for it, too.
func (w *flowWalk) taskIn(s *scene) (engine.Task, bool) {
	if len(s.tasks) == 0 {
		return engine.Task{}, false
	}
	at := slices.IndexFunc(s.tasks, func(t engine.Task) bool { return s.focus != nil && t.Execution.ID == s.focus.ID })
	if at < 0 || w.chance(3) {
		at = w.random.IntN(len(s.tasks))
	}
	return s.tasks[at], true
}

// memberIn is the focus, mostly.
func (w *flowWalk) memberIn(s *scene) *core.Execution {
	if w.chance(3) {
		return s.members[w.random.IntN(len(s.members))]
	}
	return s.focus
}

// draw draws a command; not every one finds something to act on.
func (w *flowWalk) draw(s *scene) (drawn, bool) {
	e, ctx := w.e, w.ctx()
	f := w.flowIn(s)
	switch pick := w.random.IntN(20); {
	case pick < 8:
		task, ok := w.taskIn(s)
		if !ok {
			return drawn{}, false
		}
		id := given(task)
		switch {
		case pick < 4:
			return drawn{"complete", func() error { return w.completing(task) }}, true
		case pick < 6:
			return drawn{"fail", func() error {
				_, err := e.Fail(ctx, client, id, core.FailCommand{Fence: fence(task), Class: "permanent", Message: "no"})
				return err
			}}, true
		default:
			r := engine.SpawnRequest{ID: id, Fence: fence(task), Children: w.nodes(1+w.random.IntN(2), 0)}
			if w.chance(2) {
				r.Wait = &engine.ChildrenWaitRequest{Join: *w.spec(1)}
			}
			return drawn{"spawn", func() error { _, err := e.Spawn(ctx, client, r); return err }}, true
		}
	case pick < 14 && len(s.members) > 0:
		x := w.memberIn(s)
		id := x.ID.Given()
		switch {
		case x.Status.Terminal() || w.chance(2): // it may end just before
			r := engine.ReplayRequest{Cascade: []string{core.CascadeNone, core.CascadeSkipped, core.CascadeAll}[w.random.IntN(3)], IgnoreDependencies: w.chance(2)}
			return drawn{"replay", func() error { _, err := e.Replay(ctx, operator, id, r, engine.Operator{}); return err }}, true
		case x.Held != nil:
			return drawn{"release_hold", func() error { _, err := e.ReleaseHold(ctx, operator, id, engine.Operator{}); return err }}, true
		case w.chance(3):
			return drawn{"hold", func() error { _, err := e.Hold(ctx, operator, id, engine.Operator{}); return err }}, true
		default:
			return drawn{"cancel", func() error { _, err := e.Cancel(ctx, operator, id, nil, "operator", engine.Operator{}); return err }}, true
		}
	case pick < 15:
		r := engine.CancelFlowRequest{Flow: f.ID.Given(), Policy: []core.CancelPolicy{core.CancelFlowOnly, core.CancelPending, core.CancelAll}[w.random.IntN(3)]}
		return drawn{"cancel_flow", func() error { _, err := e.CancelFlow(ctx, operator, r); return err }}, true
	case pick < 18:
		x := core.FlowExtension{Flow: f.ID.Given(), Seal: w.chance(3)}
		var before []string
		for _, m := range s.members {
			if m.FlowID == f.ID && m.Member != nil {
				before = append(before, m.Member.Name)
			}
		}
		x.Nodes = w.nodes(1, 1, before...)
		return drawn{"extend_flow", func() error { _, err := e.ExtendFlow(ctx, client, x); return err }}, true
	default:
		flow := core.FlowSubmission{Kind: "walk", Nodes: w.nodes(2+w.random.IntN(4), 2), Unsealed: w.chance(3)}
		return drawn{"submit_flow", func() error { _, err := e.SubmitFlow(ctx, client, flow); return err }}, true
	}
}

// batch lets commands share a transaction, as far as they come to one: some are refused before.
func (w *flowWalk) batch(commands []drawn) {
	var all sync.WaitGroup
	errs := make([]error, len(commands))
	w.gathered(w.gate, func() {
		if w.chance(2) {
			w.turn(1 + w.random.Int64N(2000)) // deadlines are over that were not looked at
		}
		for i, command := range commands {
			w.queued(&all, func() { errs[i] = command.do() })
		}
	})
	all.Wait()
	for i, command := range commands {
		switch code := base.CodeOf(errs[i]); code {
		case "":
			w.done[command.name]++
		case base.CodeCorruption, base.CodeInternal, base.CodeStoreUnavailable, base.CodeTimeout, base.CodeOverloaded:
			w.t.Errorf("%s: %v", command.name, errs[i])
		}
	}
}

// settle lets all work be done.
func (w *flowWalk) settle() {
	w.t.Helper()
	rounds := 0
	eventually(w.t, "every flow has ended", func() bool {
		rounds++
		open := w.open()
		if len(open) == 0 {
			return true
		}
		for _, f := range open {
			if !f.Sealed {
				_, _ = w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: f.ID.Given(), Seal: true})
			}
		}
		for _, x := range w.members(open) {
			if x.Held != nil {
				_, _ = w.e.ReleaseHold(w.ctx(), operator, x.ID.Given(), engine.Operator{})
			}
		}
		w.takeAll()
		w.tasks = slices.DeleteFunc(w.tasks, func(task engine.Task) bool { return w.completing(task) == nil }) // some have ended, and some wait
		if rounds%20 == 0 {
			w.turn(1000) // timers that are not due yet
		}
		if rounds == mostRounds {
			w.t.Logf("flows are open after %d rounds:\n%s", rounds, w.picture()) // if they stay so
		}
		return false
	})
}

// mostRounds is far more than the longest chain of what can wait for each other, on a machine that is not busy.
const mostRounds = 300

// picture tells of flows that are open.
func (w *flowWalk) picture() string {
	var text strings.Builder
	for _, f := range w.open() {
		fmt.Fprintf(&text, "flow %s: %+v\n", f.ID, f)
		graph := must(w.e.Graph(w.ctx(), client, f.ID.Given(), "", 0))(w.t)
		for _, m := range graph.Members {
			x := m.Execution
			fmt.Fprintf(&text, "  %s %s: %v %v, held %v, run %d, join %+v\n", x.Member.Name, x.ID, x.Status, x.Reason, x.Held != nil, x.ReplayCount, m.Join)
		}
		for _, e := range graph.Edges {
			fmt.Fprintf(&text, "  edge %+v\n", e)
		}
	}
	return text.String()
}

// step lets a few commands share a transaction.
func (w *flowWalk) step() {
	if len(w.open()) == 0 {
		w.submitFlow(core.FlowSubmission{Kind: "walk", Nodes: w.nodes(4, 2), Unsealed: true})
	}
	w.takeAll()
	scene := w.look()
	var commands []drawn
	for range 2 + w.random.IntN(4) {
		if command, ok := w.draw(scene); ok {
			commands = append(commands, command)
		}
	}
	w.batch(commands)
	if w.chance(4) {
		w.turn(1 + w.random.Int64N(1000))
	}
}

// whole checks what must hold of flows that have ended.
func (w *flowWalk) whole() {
	w.t.Helper()
	flows := w.flows()
	for _, f := range flows {
		w.consistent(engine.FlowAnswer{Flow: f})
	}
	for _, x := range w.members(flows) {
		if x.Status.Terminal() {
			same(w.t, "L145: ends told of "+x.ID.String(), w.count(x.ID.Given(), "execution.completed"), 1+x.ReplayCount)
		}
	}
}

func TestFI1_to_FI14_flows_whose_commands_share_commits_stay_whole_and_end(t *testing.T) {
	t.Parallel()
	const walks, steps = 2, 20
	onStores(t, func(t *testing.T, plain *world) {
		shared := &sharing{}
		plain.cfg.Probe = shared
		w := &flowWalk{world: plain, random: testseed.New(t), gate: plain.interpose(), done: map[string]int{}}
		for range walks {
			for range steps {
				w.step()
			}
			w.settle()
		}
		w.whole()
		t.Logf("%v, %d shared", w.done, shared.n.Load())
		if shared.n.Load() < walks*steps/5 || len(w.done) < 5 {
			t.Errorf("too little happened: %v, %d shared", w.done, shared.n.Load())
		}
	})
}
