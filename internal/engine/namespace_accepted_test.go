package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// deep is a flow whose sub-flow, and one within that, begin once its first node has succeeded.
func deep() core.FlowSubmission {
	input := &core.Payload{Data: []byte("0123456789"), Size: 10}
	innermost := &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "z", Kind: "z", Input: input}}}
	inner := &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "x", Kind: "x", Input: input}, {Name: "m", Flow: innermost, After: []string{"x"}}}}
	return core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "first", Kind: "first"}, {Name: "n", Flow: inner, After: []string{"first"}}}}
}

func TestU101_F46_a_bound_of_the_namespace_does_not_fail_a_subflow_that_was_accepted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(deep())
		w.namespace("default", core.NamespaceSettings{MaxLanes: 1, MaxClasses: 1, MaxPayloadBytes: 1})
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "another"})
		refused(t, err, base.CodeNamespaceLimitExceeded)
		for _, kind := range []string{"first", "x", "z"} {
			w.workOff(kind, 1, succeeds)
		}
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestU101_F11_a_repeat_of_a_flow_is_told_of_it_whatever_refuses_the_nodes_of_its_subflows_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		asked := func() core.FlowSubmission {
			s := deep()
			s.IdempotencyKey = "once"
			s.Nodes[1].Flow.Nodes[0].Lane = "aside"
			return s
		}
		w.lane("aside", core.LaneSettings{})
		flow := w.submitFlow(asked())
		again := func() {
			t.Helper()
			answer := must(w.e.SubmitFlow(w.ctx(), client, asked()))(t)
			same(t, "the repeat", []any{answer.Created, answer.Flow.ID}, []any{false, flow.Flow.ID})
		}
		w.namespace("default", core.NamespaceSettings{MaxLanes: 1, MaxClasses: 1})
		again()
		other := asked()
		other.IdempotencyKey = "twice"
		_, err := w.e.SubmitFlow(w.ctx(), client, other)
		refused(t, err, base.CodeNamespaceLimitExceeded)
		w.namespace("default", core.NamespaceSettings{})
		w.lane("aside", core.LaneSettings{State: core.LaneDraining})
		again()
		_, err = w.e.SubmitFlow(w.ctx(), client, other)
		refused(t, err, base.CodeLaneNotAccepting)
	})
}

func TestU101_L80_a_repeat_is_told_of_its_execution_though_its_class_was_retired_and_the_namespace_is_full(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		asked := core.Submission{Kind: "once", Lane: "gone", IdempotencyKey: "key"}
		first := must(w.e.Submit(w.ctx(), client, asked))(t)
		class := w.classOf(first.ID.Given())
		tx, _, err := w.store.Begin(w.ctx(), store.Want{})
		ok(t, err)
		ok(t, tx.Commit(w.ctx(), &store.Changes{RetireClasses: []store.RetiredClass{{ID: class, Since: w.now()}}}))
		w.submit(core.Submission{Kind: "other"}) // with a class of its own, which is registered in the newest dictionary
		w.namespace("default", core.NamespaceSettings{MaxClasses: 1})
		again := must(w.e.Submit(w.ctx(), client, asked))(t)
		same(t, "the repeat", []any{again.Outcome, again.ID}, []any{"duplicate", first.ID})
		for _, atomic := range []bool{false, true} {
			items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{asked}, atomic))(t)
			ok(t, items[0].Err)
			same(t, "the repeat", []any{items[0].Outcome, items[0].ID}, []any{"duplicate", first.ID})
		}
		w.namespace("default", core.NamespaceSettings{MaxLanes: 1})
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "new"}, asked}, true))(t)
		same(t, "together with what is new", []any{items[0].Outcome, items[1].Outcome}, []any{"created", "duplicate"})
		asked.IdempotencyKey = "another"
		_, err = w.e.Submit(w.ctx(), client, asked)
		refused(t, err, base.CodeNamespaceLimitExceeded)
	})
}

func TestU101_U13_a_repeat_of_a_request_is_one_though_the_namespace_allows_another_priority_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		c := client
		c.RequestKey = "once"
		id := base.IDOf(base.UUID{15: 7}).Given()
		asked := core.Submission{ID: &id, Kind: "k", Priority: 50}
		w.namespace("default", core.NamespaceSettings{MaxPriority: 40})
		first := must(w.e.Submit(w.ctx(), c, asked))(t)
		w.namespace("default", core.NamespaceSettings{MaxPriority: 10})
		again := must(w.e.Submit(w.ctx(), c, asked))(t)
		same(t, "the repeat", []any{again.ID, again.Priority}, []any{first.ID, 40})
		asked.Priority = 60
		_, err := w.e.Submit(w.ctx(), c, asked)
		refused(t, err, base.CodeIdempotencyConflict)
	})
}

func TestU101_L87_F12_a_request_that_is_refused_as_a_whole_registers_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "there"})
		w.namespace("default", core.NamespaceSettings{MaxClasses: 2, MaxPayloadBytes: 5})
		before, _ := w.classes()
		large := core.Payload{Data: []byte("0123456789"), Size: 10}
		for _, bad := range []core.Submission{{Kind: "two"}, {Kind: "there", Input: large}} {
			_, err := w.e.SubmitMany(w.ctx(), client, []core.Submission{{Kind: "one", Lane: "new"}, bad}, true)
			if err == nil {
				t.Fatalf("%s was accepted", bad.Kind)
			}
			_, err = w.e.SubmitFlow(w.ctx(), client, core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
				{Name: "one", Kind: "one", Lane: "new"}, {Name: "bad", Kind: bad.Kind, Input: &bad.Input},
			}})
			if err == nil {
				t.Fatalf("a flow with %s was accepted", bad.Kind)
			}
		}
		after, _ := w.classes()
		same(t, "classes", after, before)
		_, err := w.e.GetLane(w.ctx(), client, "new")
		refused(t, err, base.CodeLaneNotFound)
	})
}

func TestU101_L82_L117_a_repeat_is_told_of_its_execution_though_the_namespace_takes_no_such_input_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.repeatsOutlive(func() { w.namespace("default", core.NamespaceSettings{MaxPayloadBytes: 9}) })
	})
}

func TestL6_L82_L117_a_repeat_is_told_of_its_execution_though_its_process_takes_no_such_input_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.repeatsOutlive(func() {
			w.cfg.Limits.MaxPayload = 9
			w.restart()
		})
	})
}

// repeatsOutlive submits inputs of ten bytes, has the bound of payloads lowered to nine, and submits them again.
func (w *world) repeatsOutlive(lower func()) {
	t := w.t
	t.Helper()
	input := core.Payload{Data: []byte("0123456789"), Size: 10}
	id := base.IDOf(base.UUID{15: 7}).Given()
	requested := client
	requested.RequestKey = "request"
	byKey, byID := core.Submission{Kind: "k", Input: input, IdempotencyKey: "key"}, core.Submission{Kind: "k", Input: input, ID: &id}
	graph := core.FlowSubmission{Kind: "f", IdempotencyKey: "flow", Nodes: []core.FlowNode{{Name: "n", Kind: "k", Input: &input}}}
	first, second := must(w.e.Submit(w.ctx(), client, byKey))(t), must(w.e.Submit(w.ctx(), requested, byID))(t)
	flow := must(w.e.SubmitFlow(w.ctx(), client, graph))(t)
	lower()
	again := must(w.e.Submit(w.ctx(), client, byKey))(t)
	same(t, "by its key", []any{again.Outcome, again.ID}, []any{"duplicate", first.ID})
	again = must(w.e.Submit(w.ctx(), client, byID))(t)
	same(t, "by its id", []any{again.Outcome, again.ID}, []any{"duplicate", second.ID})
	again = must(w.e.Submit(w.ctx(), requested, byID))(t)
	same(t, "by the key of its request", again.ID, second.ID)
	for _, atomic := range []bool{false, true} {
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{byKey, {Kind: "k"}}, atomic))(t)
		same(t, "of many", []any{items[0].Outcome, items[0].ID, items[1].Outcome}, []any{"duplicate", first.ID, "created"})
	}
	repeat := must(w.e.SubmitFlow(w.ctx(), client, graph))(t)
	same(t, "the flow", []any{repeat.Created, repeat.Flow.ID}, []any{false, flow.Flow.ID})
	for what, bad := range map[string]core.Submission{"without a key": {Kind: "k", Input: input}, "with another": {Kind: "k", Input: input, IdempotencyKey: "other"}} {
		_, err := w.e.Submit(w.ctx(), client, bad)
		if e := refused(t, err, base.CodePayloadTooLarge); e.Field != "input" {
			t.Errorf("%s: %v", what, err)
		}
		items := must(w.e.SubmitMany(w.ctx(), client, []core.Submission{byKey, bad}, false))(t)
		refused(t, items[1].Err, base.CodePayloadTooLarge)
	}
	graph.IdempotencyKey = "another"
	_, err := w.e.SubmitFlow(w.ctx(), client, graph)
	refused(t, err, base.CodePayloadTooLarge)
}

func TestL6_F46_a_lowered_bound_of_the_process_does_not_fail_a_subflow_that_was_accepted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(deep())
		w.cfg.Limits.MaxPayload = 9
		w.restart()
		for _, kind := range []string{"first", "x", "z"} {
			w.workOff(kind, 1, succeeds)
		}
		w.flowBecomes(flow, core.FlowCompleted)
	})
}

func TestL6_L117_a_repeated_completion_is_answered_though_its_process_takes_no_such_result_now(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Kind: "a"})
		w.submit(core.Submission{Kind: "a"})
		done, open := w.claim(), w.claim()
		result := &core.Payload{Data: []byte("0123456789")}
		complete := func(task engine.Task) (core.CompleteAnswer, error) {
			return w.e.Complete(w.ctx(), client, given(task), fence(task), result)
		}
		first := must(complete(done))(t)
		w.cfg.Limits.MaxPayload = 9
		w.restart()
		again := must(complete(done))(t)
		same(t, "the repeat", []any{again.Status, again.Repeated}, []any{first.Status, true})
		_, err := complete(open)
		if e := refused(t, err, base.CodePayloadTooLarge); e.Field != "result" {
			t.Error(err)
		}
		same(t, "the other", w.get(given(open)).Status, core.Running)
	})
}
