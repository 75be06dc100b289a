package engine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// noFlow fails the test if a flow or an execution is there.
func (w *world) noFlow() {
	w.t.Helper()
	w.empty()
	same(w.t, "flows", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(w.t).Flows), 0)
	for _, ev := range w.events(engine.EventFilter{}) {
		if !ev.FlowID.IsZero() || !ev.ExecutionID.IsZero() {
			w.t.Errorf("an event tells of something: %s", ev.Kind)
		}
	}
}

// fan is a flow of one root and many that follow it.
func fan(n int) core.FlowSubmission {
	s := core.FlowSubmission{Kind: "fan", Nodes: []core.FlowNode{{Name: "root", Kind: "work"}}}
	for i := range n {
		s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprintf("n%04d", i), Kind: "work", After: []string{"root"}})
	}
	return s
}

func TestF8_F12_one_bad_node_of_a_thousand_leaves_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.lane("shut", core.LaneSettings{State: core.LaneDisabled})
		for place, spoil := range map[string]func(*core.FlowNode){
			"nodes[700]":             func(n *core.FlowNode) { n.Lane = "shut" },
			"nodes[700].lane":        func(n *core.FlowNode) { n.Lane = "no lane" },
			"nodes[700].kind":        func(n *core.FlowNode) { n.Kind = "no kind" },
			"nodes[700].deadline_at": func(n *core.FlowNode) { n.DeadlineAt = w.now() - 1 },
			"nodes[700].tags":        func(n *core.FlowNode) { n.Tags = base.Tags{"no tag": "x"} },
			"nodes[700].policy":      func(n *core.FlowNode) { n.PolicyJSON = []byte(`{"nonsense":1}`) },
			"nodes[700].after[0]":    func(n *core.FlowNode) { n.After = []string{"missing"} },
			"nodes[700].name":        func(n *core.FlowNode) { n.Name = "n0001" },
		} {
			s := fan(999)
			spoil(&s.Nodes[700])
			_, err := w.e.SubmitFlow(w.ctx(), client, s)
			if err == nil {
				t.Fatalf("%s was accepted", place)
			}
			if got := refused(t, err, base.CodeOf(err)); len(got.Field) < len(place) || got.Field[:len(place)] != place {
				t.Errorf("%s: %s at %s", place, got.Code, got.Field)
			}
		}
		w.noFlow()
		whole := w.submitFlow(fan(999))
		same(t, "members", len(whole.Members), 1000)
		same(t, "counts", []int{w.flow(whole).Nodes, w.flow(whole).Edges, w.flow(whole).Counts["waiting_children"]}, []int{1000, 999, 999})
	})
}

func TestF9_F10_defaults_after_ids_and_delays_of_nodes(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := must(base.ParseID("0198c1de-7b3a-7000-8000-0000000000f1"))(t).ID()
		brought := base.ID{N: flow.N, UUID: base.UUID{1, 2, 3, 6: 0x70, 8: 0x80}}
		s := core.FlowSubmission{
			ID: ptr(flow.Given()), Kind: "mixed",
			Defaults: core.FlowNode{Kind: "usual", Priority: ptr(7), Tags: base.Tags{"team": "a"}, Input: &core.Payload{Data: []byte("usual"), ContentType: "text/plain"}},
			Nodes: []core.FlowNode{
				{Name: "plain", ID: ptr(brought.Given())},
				{Name: "own", Kind: "other", Priority: ptr(3), Tags: base.Tags{}, Input: &core.Payload{Data: []byte("own")}, After: []string{"plain"}},
				{Name: "later", DelayMS: ptr(base.Hour)},
			},
		}
		made := w.submitFlow(s)
		same(t, "flow", made.Flow.ID, flow)
		same(t, "brought id", made.Members["plain"], brought)
		plain, own := w.member(made, "plain"), w.member(made, "own")
		same(t, "defaults", []any{plain.Class.Kind, plain.Priority, plain.Tags["team"]}, []any{"usual", 7, "a"})
		same(t, "own", []any{own.Class.Kind, own.Priority, len(own.Tags)}, []any{"other", 3, 0})
		same(t, "statuses", w.statuses(made), map[string]string{"plain": "ready", "own": "blocked", "later": "delayed"})
		w.is(made.Members["own"].Given(), core.Blocked, core.WaitingForChildren)
		first := w.claimMember(made, "plain")
		same(t, "input", string(first.Execution.Input.Data), "usual")
		same(t, "flow of the member", []base.ID{first.Execution.FlowID, first.Execution.RootFlowID()}, []base.ID{flow, flow})
		w.complete(first)
		second := w.claimMember(made, "own")
		same(t, "input", string(second.Execution.Input.Data), "own")
		same(t, "partition", made.Members["own"].N, flow.N)
		s.ID, s.Nodes[0].ID = nil, &base.GivenID{UUID: base.UUID{9}, Full: true, N: made.Flow.ID.N + 1}
		other, err := w.e.SubmitFlow(w.ctx(), client, s)
		if err == nil && other.Flow.ID.N != made.Flow.ID.N+1 {
			t.Errorf("an id with another N was taken: %s in %s", other.Members["plain"], other.Flow.ID)
		}
	})
}

func TestF11_a_key_names_one_flow_for_a_day(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("a", "b")
		s.IdempotencyKey = "order-7"
		first := w.submitFlow(s)
		same(t, "created", first.Created, true)
		again := w.submitFlow(s)
		same(t, "again", []any{again.Created, again.Flow.ID, again.Members}, []any{false, first.Flow.ID, first.Members})
		other := chain("a", "c")
		other.IdempotencyKey = "order-7"
		_, err := w.e.SubmitFlow(w.ctx(), client, other)
		same(t, "the flow of the key", refused(t, err, base.CodeIdempotencyConflict).Details["flow_id"], any(first.Flow.ID.String()))
		elsewhere := other
		elsewhere.Namespace = "elsewhere"
		same(t, "another namespace", w.submitFlow(elsewhere).Created, true)
		w.pass(base.Day - base.Second)
		same(t, "in the window", w.submitFlow(s).Created, false)
		w.pass(2 * base.Second)
		next := w.submitFlow(other)
		same(t, "after it", []any{next.Created, next.Flow.ID != first.Flow.ID}, []any{true, true})
		same(t, "two flows and one elsewhere", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 3)
	})
}

func TestF11_F13_a_known_id_is_recognised_or_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("a", "b")
		first := w.submitFlow(s)
		s.ID = ptr(first.Flow.ID.Given())
		same(t, "the same", w.submitFlow(s).Created, false)
		for what, edit := range map[string]func(*core.FlowSubmission){
			"kind": func(s *core.FlowSubmission) { s.Kind = "x" }, "nodes": func(s *core.FlowSubmission) { s.Nodes = s.Nodes[:1] },
			"seal": func(s *core.FlowSubmission) { s.Unsealed = true }, "namespace": func(s *core.FlowSubmission) { s.Namespace = "n" },
			"edge": func(s *core.FlowSubmission) {
				s.Edges = []core.FlowEdge{{From: "a", To: "b", Kind: core.AnyTerminal}}
				s.Nodes[1].After = nil
			},
			"output": func(s *core.FlowSubmission) { s.Output = "b" },
		} {
			other := chain("a", "b")
			other.ID = s.ID
			edit(&other)
			if _, err := w.e.SubmitFlow(w.ctx(), client, other); base.CodeOf(err) != base.CodeFlowAlreadyExists {
				t.Errorf("%s: %v", what, err)
			}
		}
		empty := core.FlowSubmission{Kind: "grown", Tags: base.Tags{"a": "b"}}
		made := must(w.e.CreateFlow(w.ctx(), client, empty))(t)
		same(t, "empty", []any{made.Created, made.Flow.Revision, made.Flow.Sealed, made.Flow.State}, []any{true, int64(0), false, core.FlowOpen})
		empty.ID = ptr(made.Flow.ID.Given())
		same(t, "again", must(w.e.CreateFlow(w.ctx(), client, empty))(t).Created, false)
		for _, edit := range []func(*core.FlowSubmission){
			func(s *core.FlowSubmission) { s.Kind = "x" }, func(s *core.FlowSubmission) { s.Tags = nil }, func(s *core.FlowSubmission) { s.Namespace = "n" },
			func(s *core.FlowSubmission) { s.ID = ptr(first.Flow.ID.Given()) },
		} {
			other := empty
			edit(&other)
			_, err := w.e.CreateFlow(w.ctx(), client, other)
			refused(t, err, base.CodeFlowAlreadyExists)
		}
		same(t, "events", w.flowStory(made), []string{"flow.created"})
	})
}

func TestF8_a_dry_run_tells_the_order_and_writes_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := chain("c", "a", "b")
		s.Nodes[0], s.Nodes[2] = s.Nodes[2], s.Nodes[0]
		same(t, "order", must(w.e.CheckFlow(w.ctx(), client, s))(t), []string{"c", "a", "b"})
		s.Nodes[1].Lane = "no lane"
		_, err := w.e.CheckFlow(w.ctx(), client, s)
		same(t, "place", refused(t, err, base.CodeOf(err)).Field, "nodes[1].lane")
		w.noFlow()
	})
}

func TestF3_F4_a_sealed_flow_without_members_completes_and_an_unsealed_one_never_ends_by_itself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		none := w.submitFlow(core.FlowSubmission{Kind: "none"})
		same(t, "empty", []any{none.Flow.State, none.Flow.Revision, w.flow(none).State, w.flow(none).Phase}, []any{core.FlowCompleted, int64(1), core.FlowCompleted, ""})
		made := must(w.e.CreateFlow(w.ctx(), client, core.FlowSubmission{Kind: "later"}))(t)
		same(t, "idle", []any{w.flow(made).State, w.flow(made).Phase}, []any{core.FlowOpen, "idle"})
		same(t, "sealed", w.extend(made, core.FlowExtension{Seal: true}).Flow.State, core.FlowCompleted)
		same(t, "events", w.flowStory(made), []string{"flow.created", "flow.sealed", "flow.completed"})

		open := chain("a")
		open.Unsealed = true
		grown := w.submitFlow(open)
		w.run(grown, "a")
		same(t, "open", []any{w.flow(grown).State, w.flow(grown).Phase}, []any{core.FlowOpen, "idle"})
		w.extend(grown, core.FlowExtension{Seal: true})
		same(t, "sealed", w.flow(grown).State, core.FlowCompleted)
		_, err := w.e.ExtendFlow(w.ctx(), client, core.FlowExtension{Flow: grown.Flow.ID.Given(), Seal: true})
		refused(t, err, base.CodeFlowAlreadyTerminal)
	})
}

func TestF28_a_fan_out_and_a_fan_in_of_a_thousand_run_to_their_end(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := fan(1000)
		last := core.FlowNode{Name: "sum", Kind: "sum"}
		for _, n := range s.Nodes[1:] {
			last.After = append(last.After, n.Name)
		}
		s.Nodes = append(s.Nodes, last)
		flow := w.submitFlow(s)
		w.run(flow, "root")
		w.workOff("work", 1000, succeeds)
		w.workOff("sum", 1, succeeds)
		view := w.flowBecomes(flow, core.FlowCompleted)
		same(t, "counts", []int{view.Counts["completed"], view.Nodes, view.Edges}, []int{1002, 1002, 2000})
	})
}

func TestF11_of_many_submits_at_once_with_one_key_or_id_one_makes_the_flow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		for what, edit := range map[string]func(*core.FlowSubmission){
			"key": func(s *core.FlowSubmission) { s.IdempotencyKey = "k" }, "id": func(s *core.FlowSubmission) { s.ID = ptr(base.IDOf(drawUUID()).Given()) },
		} {
			s := chain("a", "b", "c")
			edit(&s)
			answers := make([]engine.FlowAnswer, 16)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() {
					var err error
					if answers[i], err = engines[i%2].SubmitFlow(w.ctx(), client, s); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			created := 0
			for _, a := range answers {
				if a.Created {
					created++
				}
				same(t, what, []any{a.Flow.ID, a.Members}, []any{answers[0].Flow.ID, answers[0].Members})
			}
			same(t, "created by "+what, created, 1)
		}
	})
}
