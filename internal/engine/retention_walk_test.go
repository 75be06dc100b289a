package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// keptWalk replays members of flows that are kept for a short time only, while that time passes.
type keptWalk struct {
	*world
	random   *rand.Rand
	flows    []keptFlow
	removed  map[base.ID]bool // what is gone stays gone: it is not asked for again
	replayed int
	late     int // replays of what retention had removed
}

// keptFlow is a flow whose members are all kept equally long after their end.
type keptFlow struct {
	engine.FlowAnswer
	keep base.Millis
}

// begin submits a flow: a few nodes, some after others, one of them perhaps a flow of its own.
func (w *keptWalk) begin() {
	keep := 1000 * (1 + w.random.Int64N(3))
	policy := fmt.Appendf(nil, `{"retention_ms":%d}`, keep)
	node := func(name string, after ...string) core.FlowNode {
		return core.FlowNode{Name: name, Kind: "work", After: after, PolicyJSON: policy}
	}
	nodes := []core.FlowNode{node("a"), node("b", "a"), node("c", "a", "b")}
	if w.random.IntN(2) == 0 {
		sub := node("d", "a")
		sub.Kind, sub.Flow = "", &core.FlowSubmission{Nodes: []core.FlowNode{node("x"), node("y", "x")}}
		nodes = append(nodes, sub)
	}
	w.flows = append(w.flows, keptFlow{w.submitFlow(core.FlowSubmission{Kind: "kept", Nodes: nodes}), keep})
}

// work ends everything that can be claimed, mostly well.
func (w *keptWalk) work() {
	r := ask()
	r.Max, r.TTL = 1000, base.Hour
	for _, task := range w.take(r) {
		if w.random.IntN(5) == 0 {
			w.fail(task, "permanent")
			continue
		}
		w.complete(task)
	}
}

// replayWhileTimePasses asks for a replay at the moment at which retention may come for its flow. Either may be first: what is removed cannot be
// opened again, and what is open again is there, whole.
func (w *keptWalk) replayWhileTimePasses() {
	there := slices.DeleteFunc(slices.Clone(w.flows), func(f keptFlow) bool { return w.removed[f.Flow.ID] })
	f := there[w.random.IntN(len(there))]
	names := slices.Sorted(maps.Keys(f.Members))
	id := f.Members[names[w.random.IntN(len(names))]].Given()
	r := engine.ReplayRequest{Cascade: []string{core.CascadeNone, core.CascadeSkipped, core.CascadeAll}[w.random.IntN(3)], IgnoreDependencies: true, KeepSteps: w.random.IntN(2) == 0}
	passes, first := w.random.Int64N(4000), w.random.IntN(2) == 0
	answer := make(chan error, 1)
	go func() {
		_, err := w.e.Replay(w.ctx(), operator, id, r, engine.Operator{})
		answer <- err
	}()
	if first {
		answer <- <-answer
	}
	w.turn(passes)
	switch err := <-answer; base.CodeOf(err) {
	case "":
		w.replayed++
		w.whole(f)
	case base.CodeExecutionNotFound:
		w.late++
	case base.CodeExecutionNotTerminal, base.CodeDescendantActive: // it runs, or what hangs on it does
	default:
		w.t.Fatalf("replay: %v", err)
	}
}

// whole fails unless a flow is there with all its members.
func (w *keptWalk) whole(f keptFlow) {
	w.t.Helper()
	if _, err := w.e.Flow(w.ctx(), client, f.Flow.ID.Given()); err != nil {
		w.t.Fatalf("a flow that is open again: %v", err)
	}
	for name, id := range f.Members {
		if _, err := w.e.Describe(w.ctx(), client, id.Given()); err != nil {
			w.t.Fatalf("member %s of a flow that is open again: %v", name, err)
		}
	}
}

// open reports whether a flow is there and has not ended.
func (w *keptWalk) open(f keptFlow) bool {
	if w.removed[f.Flow.ID] {
		return false
	}
	view, err := w.e.Flow(w.ctx(), client, f.Flow.ID.Given())
	if base.CodeOf(err) == base.CodeFlowNotFound {
		w.removed[f.Flow.ID] = true
		return false
	}
	ok(w.t, err)
	return !view.Flow.State.Terminal()
}

func TestL141_a_replay_that_meets_the_removal_of_its_flow_finds_no_execution(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		b := w.interpose()
		for _, name := range []string{"after", "x"} { // a member of the flow, and one of the flow inside of it
			outer := w.submitFlow(nodeOf(inner()))
			members := maps.Clone(outer.Members)
			maps.Copy(members, w.subflow(outer, "n").Members)
			for _, kind := range []string{"x", "y", "after"} {
				w.end(kind)
			}
			w.flowBecomes(outer, core.FlowCompleted)
			member := members[name]
			b.afterRead.set(func(want store.Want) bool {
				return slices.ContainsFunc(want.Owned, func(o store.Owned) bool { return o.Owner == member.UUID.String() })
			}, func() { ok(t, w.deleteFlow(outer, "")) })
			_, err := w.e.Replay(w.ctx(), operator, member.Given(), engine.ReplayRequest{}, engine.Operator{})
			refused(t, err, base.CodeExecutionNotFound)
			w.flowGone(outer)
		}
	})
}

func TestL140_F56_replays_and_retention_meet_and_leave_flows_whole_or_gone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, plain *world) {
		w := &keptWalk{world: plain, random: testseed.New(t), removed: map[base.ID]bool{}}
		for range 25 {
			if len(w.flows) == len(w.removed) || w.random.IntN(4) == 0 {
				w.begin()
			}
			w.work()
			w.replayWhileTimePasses()
			for _, f := range w.flows {
				if w.open(f) {
					w.whole(f)
				}
			}
		}
		eventually(t, "every flow has ended", func() bool {
			w.work()
			return !slices.ContainsFunc(w.flows, w.open)
		})
		w.turn(base.Day)
		for _, f := range w.flows {
			eventually(t, "the flow is gone", func() bool {
				_, err := w.e.Flow(w.ctx(), client, f.Flow.ID.Given())
				return base.CodeOf(err) == base.CodeFlowNotFound
			})
			w.flowGone(f.FlowAnswer)
		}
		if t.Logf("%d flows, %d replays, %d too late", len(w.flows), w.replayed, w.late); w.replayed == 0 {
			t.Error("nothing was replayed")
		}
	})
}
