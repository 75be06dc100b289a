package engine_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ending ends a task that was claimed.
type ending func(e *engine.Engine, w *world, task engine.Task) error

func succeeds(e *engine.Engine, w *world, task engine.Task) error {
	_, err := e.Complete(w.ctx(), client, given(task), fence(task), nil)
	return err
}

func fails(e *engine.Engine, w *world, task engine.Task) error {
	_, err := e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: "permanent", Message: "it broke"})
	return err
}

// takeKind claims until it has so many of a kind.
func (w *world) takeKind(kind string, n int) (tasks []engine.Task) {
	w.t.Helper()
	for len(tasks) < n {
		r := ask()
		r.Kinds, r.Max, r.Wait = []string{kind}, min(n-len(tasks), 1000), 20*time.Second
		some := w.take(r)
		if len(some) == 0 {
			w.t.Fatalf("%d of %d of kind %s came", len(tasks), n, kind)
		}
		tasks = append(tasks, some...)
	}
	return tasks
}

// workOff claims so many of a kind and ends them all at once, through these engines in turn; none: through the one of the world.
func (w *world) workOff(kind string, n int, end ending, engines ...*engine.Engine) {
	w.t.Helper()
	if len(engines) == 0 {
		engines = []*engine.Engine{w.e}
	}
	var wg sync.WaitGroup
	for i, task := range w.takeKind(kind, n) {
		wg.Go(func() {
			if err := end(engines[i%len(engines)], w, task); err != nil {
				w.t.Errorf("end of %s: %v", task.Execution.ID, err)
			}
		})
	}
	wg.Wait()
}

// none fails the test if there is work of a kind.
func (w *world) none(kind string) {
	w.t.Helper()
	r := ask()
	r.Kinds = []string{kind}
	same(w.t, "work of kind "+kind, len(w.take(r)), 0)
}

// matrixCase is a cell of the matrix of conformance 2: two upstreams that end in a way, a third that does not, and their join.
type matrixCase struct {
	kind    core.EdgeKind
	outcome core.Status
	join    core.JoinSpec
	after   bool // the edges come when the upstreams have ended
	flow    engine.FlowAnswer
}

func (c *matrixCase) String() string {
	return fmt.Sprintf("%s edges by %s into %s, %s, after %t", c.kind, c.outcome, c.join.Policy, c.join.OnSatisfied, c.after)
}

// upstreams are u1 and u2, made so that they end as the case says, and u3.
func (c *matrixCase) upstreams(w *world) (nodes []core.FlowNode) {
	for _, name := range []string{"u1", "u2"} {
		node := core.FlowNode{Name: name, Kind: c.outcome.String()}
		switch c.outcome {
		case core.Expired:
			node.DeadlineAt = w.now().Add(base.Minute)
		case core.Skipped:
			node.After = []string{"broken"}
		}
		nodes = append(nodes, node)
	}
	if c.outcome == core.Skipped {
		nodes = append(nodes, core.FlowNode{Name: "broken", Kind: "failed"})
	}
	return append(nodes, core.FlowNode{Name: "u3", Kind: "stays"})
}

func (c *matrixCase) downstream() ([]core.FlowNode, []core.FlowEdge) {
	return []core.FlowNode{{Name: "d", Kind: "down", Join: &c.join}}, []core.FlowEdge{
		{From: "u1", To: "d", Kind: c.kind}, {From: "u2", To: "d", Kind: c.kind}, {From: "u3", To: "d"},
	}
}

// begin submits the case, without its downstream if that comes later.
func (c *matrixCase) begin(w *world) {
	s := core.FlowSubmission{Kind: "matrix", Nodes: c.upstreams(w), Unsealed: c.after}
	if !c.after {
		nodes, edges := c.downstream()
		s.Nodes, s.Edges = append(s.Nodes, nodes...), edges
	}
	c.flow = w.submitFlow(s)
}

// grow adds the downstream.
func (c *matrixCase) grow(w *world) {
	nodes, edges := c.downstream()
	grown := w.extend(c.flow, core.FlowExtension{Nodes: nodes, Edges: edges, Seal: true})
	c.flow.Members["d"] = grown.Members["d"]
}

// want is the fate of d and of u3 by the tables of section 5.
func (c *matrixCase) want() (join core.JoinState, d, u3 core.Status) {
	bad := c.outcome == core.Failed || c.outcome == core.Expired || c.outcome == core.Cancelled
	satisfied := c.kind == core.AnyTerminal || c.kind == core.SuccessOnly && c.outcome == core.Succeeded || c.kind == core.FailureOnly && bad
	switch {
	case satisfied && c.join.Policy != core.AllOf: // two of three
		join, d = core.JoinHeld, core.Ready
	case !satisfied && c.join.Policy != core.AnyOf:
		join, d = core.JoinBroken, core.Skipped
	default:
		join, d = core.JoinPending, core.Blocked
	}
	if c.join.OnSatisfied == core.CancelRemaining && join != core.JoinPending {
		return join, d, core.Cancelled
	}
	return join, d, core.Ready
}

func (c *matrixCase) check(w *world) {
	w.t.Helper()
	join, d, u3 := c.want()
	eventually(w.t, c.String(), func() bool { return w.member(c.flow, "u3").Status == u3 })
	down := w.member(c.flow, "d")
	if down.Status != d || down.Member.Join.State != join {
		w.t.Errorf("%s: %s, join %s; want %s, %s", c, down.Status, down.Member.Join.State, d, join)
	}
	if x := w.member(c.flow, "u3"); x.Status == core.Cancelled {
		want := core.JoinSatisfied
		if join == core.JoinBroken {
			want = core.JoinImpossible
		}
		if x.Reason != want || x.Cancellation.Source != core.SourceJoin {
			w.t.Errorf("%s: u3 ended by %s, %+v", c, x.Reason, x.Cancellation)
		}
	}
}

func matrixCases(after bool) (all []*matrixCase) {
	for _, kind := range []core.EdgeKind{core.SuccessOnly, core.FailureOnly, core.AnyTerminal} {
		for _, outcome := range []core.Status{core.Succeeded, core.Failed, core.Expired, core.Cancelled, core.Skipped} {
			for _, spec := range []core.JoinSpec{{}, {Policy: core.AnyOf}, {Policy: core.Quorum, K: 2}} {
				for _, on := range []core.OnSatisfied{core.LetRun, core.CancelRemaining} {
					spec.OnSatisfied = on
					all = append(all, &matrixCase{kind: kind, outcome: outcome, join: spec, after: after})
				}
			}
		}
	}
	return all
}

func TestF21_F22_F23_F30_FI5_FI6_every_kind_outcome_policy_and_on_satisfied(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, w *world) {
				w.cfg.NoTimers = true // else one that has ended may make its sibling a loser before that ends too
				w.restart()
				cases := matrixCases(after)
				count := map[core.Status]int{}
				for _, c := range cases {
					c.begin(w)
					count[c.outcome] += 2
				}
				w.workOff("succeeded", count[core.Succeeded], succeeds)
				w.workOff("failed", count[core.Failed]+count[core.Skipped]/2, fails)
				for _, c := range cases {
					if c.outcome == core.Cancelled {
						w.cancel(c.flow.Members["u1"].Given())
						w.cancel(c.flow.Members["u2"].Given())
					}
				}
				w.cfg.NoTimers = false
				w.restart()
				w.pass(2 * base.Minute)
				for _, c := range cases {
					w.becomes(c.flow.Members["u1"].Given(), c.outcome)
					w.becomes(c.flow.Members["u2"].Given(), c.outcome)
					if after {
						c.grow(w)
					}
				}
				for _, c := range cases {
					c.check(w)
				}
			})
		})
	}
}

func TestF24_a_quorum_of_one_of_all_and_of_more_than_there_are(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		quorum := func(k int) *core.JoinSpec { return &core.JoinSpec{Policy: core.Quorum, K: k} }
		three := []core.FlowNode{{Name: "a", Kind: "a"}, {Name: "b", Kind: "b"}, {Name: "c", Kind: "c"}}
		all := []string{"a", "b", "c"}
		submit := func(k int, unsealed bool) engine.FlowAnswer {
			return w.submitFlow(core.FlowSubmission{Kind: "quorum", Unsealed: unsealed, Nodes: append(three[:3:3], core.FlowNode{Name: "d", Kind: "d", After: all, Join: quorum(k)})})
		}
		one := submit(1, false)
		w.workOff("a", 1, succeeds)
		w.is(one.Members["d"].Given(), core.Ready, core.WaitingForWorker)
		w.workOff("b", 1, succeeds)
		w.workOff("c", 1, fails)
		w.workOff("d", 1, succeeds)
		same(t, "c failed and its downstream took care of it", w.flow(one).State, core.FlowCompleted)

		every := submit(3, false)
		w.workOff("a", 1, succeeds)
		w.workOff("b", 1, succeeds)
		w.is(every.Members["d"].Given(), core.Blocked, core.WaitingForChildren)
		w.workOff("c", 1, fails)
		w.is(every.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "detail", w.member(every, "d").Member.Join.Detail, "")

		_, err := w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "quorum", Nodes: append(three[:3:3], core.FlowNode{Name: "d", Kind: "d", After: all, Join: quorum(4)})})
		refused(t, err, base.CodeQuorumExceedsEdges)

		more := submit(4, true)
		w.workOff("a", 1, succeeds)
		w.workOff("b", 1, succeeds)
		w.workOff("c", 1, fails)
		w.is(more.Members["d"].Given(), core.Blocked, core.WaitingForChildren)
		w.extend(more, core.FlowExtension{Seal: true})
		w.is(more.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "detail", w.member(more, "d").Member.Join.Detail, "quorum_unreachable")

		grown := submit(4, true)
		w.workOff("a", 1, succeeds)
		w.workOff("b", 1, succeeds)
		w.workOff("c", 1, succeeds)
		added := w.extend(grown, core.FlowExtension{Nodes: []core.FlowNode{{Name: "e", Kind: "e"}}, Edges: []core.FlowEdge{{From: "e", To: "d"}}, Seal: true})
		w.is(grown.Members["d"].Given(), core.Blocked, core.WaitingForChildren)
		same(t, "revision", added.Flow.Revision, int64(2))
		w.workOff("e", 1, succeeds)
		w.is(grown.Members["d"].Given(), core.Ready, core.WaitingForWorker)

		short := submit(5, true)
		w.extend(short, core.FlowExtension{Nodes: []core.FlowNode{{Name: "e", Kind: "e"}}, Edges: []core.FlowEdge{{From: "e", To: "d"}}, Seal: true})
		w.is(short.Members["d"].Given(), core.Skipped, core.DependencyImpossible)
		same(t, "an end that both the edge and the seal lead to is reported once (L145)", w.count(short.Members["d"].Given(), "execution.completed"), 1)
	})
}

func TestF25_F28_FI4_fifty_upstreams_that_end_at_once_on_two_servers_fire_a_join_once(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		for _, spec := range []core.JoinSpec{{}, {Policy: core.AnyOf}, {Policy: core.Quorum, K: 25}} {
			s := core.FlowSubmission{Kind: "race"}
			down := core.FlowNode{Name: "d", Kind: "down", Join: &spec}
			for i := range 50 {
				name := fmt.Sprint("u", i)
				s.Nodes = append(s.Nodes, core.FlowNode{Name: name, Kind: "up"})
				down.After = append(down.After, name)
			}
			s.Nodes = append(s.Nodes, down)
			flow := w.submitFlow(s)
			w.workOff("up", 50, succeeds, w.e, other)
			eventually(t, "all edges are counted", func() bool { return w.member(flow, "d").Member.Join.Satisfied == 50 })
			d := flow.Members["d"].Given()
			same(t, "ready", w.count(d, "execution.ready"), 1)
			w.workOff("down", 1, succeeds)
			w.none("down")
			same(t, "state", w.flowBecomes(flow, core.FlowCompleted).Counts["completed"], 51)
		}
	})
}

func TestF26_F29_a_skip_goes_through_two_hundred_levels(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var names []string
		for i := range 201 {
			names = append(names, fmt.Sprintf("n%03d", i))
		}
		deep := w.submitFlow(chain(names...))
		w.fail(w.claimMember(deep, "n000"), "permanent")
		view := w.flowBecomes(deep, core.FlowFailed)
		same(t, "skipped", []int{view.Counts["skipped"], view.Counts["failed"]}, []int{200, 1})
		same(t, "told once", w.count(deep.Members["n200"].Given(), "execution.completed"), 1)
	})
}

func TestF28_F29_a_skip_goes_across_a_fan_out_of_five_thousand(t *testing.T) {
	t.Parallel()
	onOneStore(t, func(t *testing.T, w *world) {
		wide := w.submitFlow(fan(4999))
		w.fail(w.claimMember(wide, "root"), "permanent")
		view := must(w.e.WaitFlow(w.ctx(), client, wide.Flow.ID.Given(), patience))(t)
		same(t, "skipped", []any{view.State, view.Counts["skipped"], view.Counts["failed"]}, []any{core.FlowFailed, 4999, 1})
	})
}

func TestF26_a_skip_names_the_edges_that_made_it_impossible(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "two", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"},
			{Name: "b", Kind: "b"},
			{Name: "c", Kind: "c"},
			{Name: "d", Kind: "d", After: []string{"a", "b", "c"}, Join: &core.JoinSpec{Policy: core.Quorum, K: 2}},
		}})
		w.workOff("b", 1, fails)
		w.workOff("a", 1, fails)
		d := flow.Members["d"].Given()
		events := w.events(engine.EventFilter{ExecutionID: &d, Kinds: []string{"execution.completed"}})
		same(t, "edges", data(t, events[0])["edges"], any([]any{"a", "b"}))
		same(t, "flow", []base.ID{events[0].FlowID, events[0].RootFlowID}, []base.ID{flow.Flow.ID, flow.Flow.ID})
		w.workOff("c", 1, succeeds)
		same(t, "after the decision edges still count", []int{w.member(flow, "d").Member.Join.Satisfied, w.member(flow, "d").Member.Join.Impossible}, []int{1, 2})
	})
}

func TestF26_delay_hold_and_deadline_of_a_member_stand(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "gate", Nodes: []core.FlowNode{
			{Name: "a", Kind: "a"},
			{Name: "delayed", Kind: "d", After: []string{"a"}, DelayMS: ptr(base.Hour)},
			{Name: "held", Kind: "h", After: []string{"a"}},
			{Name: "late", Kind: "l", After: []string{"stays"}, DeadlineAt: w.now().Add(base.Minute)},
			{Name: "behind", Kind: "b", After: []string{"late"}},
			{Name: "stays", Kind: "s"},
		}})
		w.hold(flow.Members["held"].Given())
		w.workOff("a", 1, succeeds)
		w.is(flow.Members["delayed"].Given(), core.Delayed, core.WaitingForDelay)
		w.is(flow.Members["held"].Given(), core.Blocked, core.PausedByOperator)
		w.releaseHold(flow.Members["held"].Given())
		w.workOff("h", 1, succeeds)
		w.pass(2 * base.Minute)
		w.becomes(flow.Members["late"].Given(), core.Expired)
		w.becomes(flow.Members["behind"].Given(), core.Skipped)
		w.pass(base.Hour)
		w.workOff("d", 1, succeeds)
		w.workOff("s", 1, succeeds)
		same(t, "failures", w.flow(flow).Failures, []string{"late"})
	})
}

// onOneStore runs a test on SQLite alone: one whose amount is the point.
func onOneStore(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(start), path: filepath.Join(t.TempDir(), "engine.db")}
	w.begin(f)
}
