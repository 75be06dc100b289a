package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
)

// scopedToFlow is the flow that a budget is for.
func scopedToFlow(s *core.BudgetScope) (core.UUID, bool) {
	if s.Type != core.ScopeFlow {
		return core.UUID{}, false
	}
	id, err := core.ParseID(s.Value)
	return id.UUID, err == nil
}

// flowOfScope finds the flow that a budget is to be for. Codes: flow_not_found.
func (e *Engine) flowOfScope(ctx context.Context, c Caller, namespace string, s *core.BudgetScope) (core.UUID, error) {
	id, err := core.ParseID(s.Value)
	if err != nil {
		return core.UUID{}, noFlowOfScope(s.Value)
	}
	f, err := e.Graphs.Read(ctx, c, id)
	if core.CodeOf(err) == core.CodeFlowNotFound || err == nil && f.Namespace != namespace {
		return core.UUID{}, noFlowOfScope(s.Value)
	}
	return id.UUID, err
}

func noFlowOfScope(given string) error {
	return core.Errorf(core.CodeFlowNotFound, "there is no flow %s", core.QuoteID(given)).WithField("scope.value")
}

// openFlowOf reports whether the flow that a budget is for has members that may still be charged to it.
func (u *Tx) openFlowOf(b *core.Budget) bool {
	flow, ok := scopedToFlow(&b.Scope)
	if !ok {
		return false
	}
	f := u.Engine.Graphs.Locked(u, flow)
	return f != nil && (!f.State.Terminal() || f.Open > 0)
}

// reachFlow records a new budget in the flow that it is for, or finds the flow of the children of its execution, and leaves the members to
// follow-up work. It returns the flow.
func (u *Tx) reachFlow(f *core.Flow, ent *Row, made *core.Budget) (flow core.UUID) {
	switch {
	case f != nil:
		if flow = f.ID.UUID; f.AddBudget(made) {
			u.Engine.Graphs.Touch(u, f)
		}
	case ent != nil && ent.Exec.Children != nil:
		flow = ent.Exec.Children.FlowID.UUID
	default:
		return core.UUID{}
	}
	u.AddTask(FollowUp{Kind: TaskSpreadBudget, Flow: flow, Budget: made.ID})
	return flow
}

// ReachBelow leaves the members of the flow below an execution, which budgets have come to reach, to follow-up work.
func (u *Tx) ReachBelow(x *core.Execution, budgets []core.ScopedBudget) {
	if x.Children == nil {
		return
	}
	for _, budget := range budgets {
		u.AddTask(FollowUp{Kind: TaskSpreadBudget, Flow: x.Children.FlowID.UUID, Budget: budget.ID})
	}
}
