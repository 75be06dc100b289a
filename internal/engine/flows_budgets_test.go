package engine_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestB3_B6_a_budget_that_comes_with_a_flow_is_shared_by_its_members(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := core.FlowSubmission{
			Kind: "spender", Budgets: []byte(`[{"name":"shared","dimensions":{"tokens":{"hard":3}}}]`),
			Nodes: []core.FlowNode{{Name: "a", Kind: "work", PolicyJSON: []byte(`{"estimate":{"tokens":2}}`)}, {Name: "b", Kind: "work", PolicyJSON: []byte(`{"estimate":{"tokens":2}}`)}},
		}
		flow := w.submitFlow(s)
		first := w.claim()
		same(t, "reserved", w.numbers("shared")[1], 2)
		w.nothing()
		w.complete(first)
		w.complete(w.claim())
		same(t, "state", w.flowBecomes(flow, core.FlowCompleted).State, core.FlowCompleted)
		same(t, "nothing is reserved any more", w.numbers("shared")[1], 0)
	})
}

func TestB2_B6_a_budget_for_a_flow_reaches_members_that_are_there_and_those_of_sub_flows(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		_, err := w.e.CreateBudget(w.ctx(), operator, "default", tokens("missing", 1, covering(core.ScopeFlow, "01890a5d-ac96-774b-bcce-b302099a8057")), engine.AdminAction{})
		refused(t, err, base.CodeFlowNotFound)
		inner := chain("x")
		inner.Kind = ""
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: []core.FlowNode{{Name: "sub", Flow: &inner}, {Name: "a", Kind: "work"}}})
		eventually(t, "the sub-flow has begun", func() bool { return w.member(flow, "sub").Children != nil })
		made := w.create(tokens("whole", 10, covering(core.ScopeFlow, flow.Flow.ID.String())))
		whole := engine.BudgetRef{Namespace: "default", Budget: "whole"}
		refused(t, w.e.DeleteBudget(w.ctx(), operator, whole, engine.AdminAction{}), base.CodeBudgetInUse)
		for range 2 {
			task := w.claim()
			same(t, "charged to", task.Execution.ChargedTo(), []base.UUID{made.ID})
			w.complete(task)
		}
		w.flowBecomes(flow, core.FlowCompleted)
		ok(t, w.e.DeleteBudget(w.ctx(), operator, whole, engine.AdminAction{}))
		eventually(t, "members name it no more", func() bool { return len(w.member(flow, "a").Budgets) == 0 })
	})
}

func TestB3_F12_budgets_of_a_flow_that_cannot_be_made_refuse_it_and_leave_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for budgets, want := range map[string]struct {
			code  base.Code
			field string
		}{
			`[{"name":"twice","dimensions":{"tokens":{"hard":1}}},{"name":"twice","dimensions":{"tokens":{"hard":1}}}]`: {base.CodeBudgetAlreadyExists, "budgets[1].name"},
			`[{"name":"low","parent":"missing","dimensions":{"tokens":{"hard":1}}}]`:                                    {base.CodeBudgetNotFound, "budgets[0].parent"},
		} {
			s := chain("a")
			s.Budgets = []byte(budgets)
			_, err := w.e.SubmitFlow(w.ctx(), client, s)
			same(t, "field", refused(t, err, want.code).Field, want.field)
		}
		same(t, "flows", len(must(w.e.Flows(w.ctx(), client, engine.FlowQuery{}))(t).Flows), 0)
		w.nothing()
	})
}

// forFlow makes a budget for a flow and waits until it has reached all that the flow has.
func (w *world) forFlow(name string, flow engine.FlowAnswer) base.UUID {
	w.t.Helper()
	made := w.create(tokens(name, 10, covering(core.ScopeFlow, flow.Flow.ID.String())))
	w.workedOff("spread_budget")
	return made.ID
}

// chargedTo claims one of a kind, which must be charged to these budgets.
func (w *world) chargedTo(kind string, budgets ...base.UUID) {
	w.t.Helper()
	task := w.claimKind(kind)
	same(w.t, kind+" is charged to", task.Execution.ChargedTo(), budgets)
	w.complete(task)
}

func TestB6_a_budget_for_a_flow_reaches_an_execution_that_becomes_a_member_and_its_children(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		flow := w.emptyFlow()
		whole := w.forFlow("whole", flow)
		var members []core.FlowMember
		for _, name := range []string{"old", "parent"} {
			id := base.ID{N: flow.Flow.ID.N, UUID: drawUUID()}.Given()
			w.submit(core.Submission{Kind: name, ID: &id})
			members = append(members, core.FlowMember{ID: id, Name: name})
		}
		parent := w.claimKind("parent")
		w.spawn(parent, "child")
		w.extend(flow, core.FlowExtension{Members: members})
		w.workedOff("spread_budget")
		w.chargedTo("old", whole)
		w.chargedTo("child", whole)
		same(t, "a lease that is older is charged to nothing (B7)", w.get(given(parent)).ChargedTo(), nil)
		w.complete(parent)
	})
}

func TestB6_a_budget_that_comes_while_a_flow_is_extended_reaches_the_new_nodes(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.emptyFlow()
		var whole base.UUID
		b.afterRead.set(func(want store.Want) bool {
			return len(want.Scans) > 0 && want.Scans[0].Owner == flow.Flow.ID.UUID.String()
		}, func() { whole = w.forFlow("whole", flow) })
		w.extend(flow, core.FlowExtension{Nodes: nodesNamed("a")})
		w.chargedTo("a", whole)
	})
}

func TestB6_nodes_that_others_add_to_a_children_flow_are_charged_as_children_are(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		flow := w.submitFlow(core.FlowSubmission{Kind: "outer", Nodes: nodesNamed("parent")})
		whole := w.forFlow("whole", flow)
		parent := w.claimKind("parent")
		w.spawn(parent, "child")
		w.extend(engine.FlowAnswer{Flow: w.childrenFlow(given(parent)).Flow}, core.FlowExtension{Nodes: nodesNamed("added")})
		w.chargedTo("child", whole)
		w.chargedTo("added", whole)
		w.complete(parent)
	})
}

func TestB6_a_budget_that_comes_while_a_subflow_begins_reaches_its_members(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		b := w.interpose()
		flow := w.emptyFlow()
		reached, whole := make(chan struct{}), make(chan base.UUID)
		b.afterRead.set(func(want store.Want) bool { return len(want.Executions) == 1 && len(want.Docs) == 2 }, func() { // of the node, its definition and its inputs
			close(reached)
			defer close(whole)
			whole <- w.forFlow("whole", flow)
		})
		w.extend(flow, core.FlowExtension{Nodes: []core.FlowNode{{Name: "n", Flow: inner()}}})
		<-reached
		w.chargedTo("x", <-whole)
	})
}

func TestB6_children_that_are_spawned_after_a_budget_of_their_flow_are_charged_to_it(t *testing.T) {
	t.Parallel()
	onBudgets(t, func(t *testing.T, w *world) {
		parent := w.parent()
		w.spawn(parent, "one")
		whole := w.forFlow("whole", engine.FlowAnswer{Flow: w.childrenFlow(given(parent)).Flow})
		w.chargedTo("one", whole)
		w.spawn(parent, "two")
		w.chargedTo("two", whole)
		w.complete(parent)
	})
}
