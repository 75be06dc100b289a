package limits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Flows is what the room asks of the one that keeps flows: a budget may be for a flow, and reaches its members.
type Flows interface {
	// Locked returns a flow that the transaction has locked; nil: it does not exist, or is not locked.
	Locked(u *txn.Tx, id base.UUID) *core.Flow
	// Touch marks it as changed.
	Touch(u *txn.Tx, f *core.Flow)
	// Read reads a flow that the caller sees. Codes: flow_not_found.
	Read(ctx context.Context, c txn.Caller, id base.GivenID) (*core.Flow, error)
	// Spread lets a budget reach the members of a flow and of those below it; one that is gone it takes away from them.
	Spread(ctx context.Context, flow, budget base.UUID) error
}

// UseFlows sets the room of flows. It must be set before Start.
func (e *Admission) UseFlows(f Flows) { e.flows = f }

// scopedToFlow is the flow that a budget is for.
func scopedToFlow(s *core.BudgetScope) (base.UUID, bool) {
	if s.Type != core.ScopeFlow {
		return base.UUID{}, false
	}
	id, err := base.ParseID(s.Value)
	return id.UUID, err == nil
}

// flowOfScope finds the flow that a budget is to be for. Codes: flow_not_found.
func (e *Admission) flowOfScope(ctx context.Context, c txn.Caller, namespace string, s *core.BudgetScope) (base.UUID, error) {
	id, err := base.ParseID(s.Value)
	if err != nil {
		return base.UUID{}, noFlowOfScope(s.Value)
	}
	f, err := e.flows.Read(ctx, c, id)
	if base.CodeOf(err) == base.CodeFlowNotFound || err == nil && f.Namespace != namespace {
		return base.UUID{}, noFlowOfScope(s.Value)
	}
	return id.UUID, err
}

func noFlowOfScope(given string) error {
	return base.Errorf(base.CodeFlowNotFound, "there is no flow %s", base.QuoteID(given)).WithField("scope.value")
}

// openFlowOf reports whether the flow that a budget is for has members that may still be charged to it.
func openFlowOf(u *txn.Tx, b *core.Budget) bool {
	flow, ok := scopedToFlow(&b.Scope)
	if !ok {
		return false
	}
	f := Of(u).flows.Locked(u, flow)
	return f != nil && (!f.State.Terminal() || f.Open > 0)
}

// reachFlow records a new budget in the flow that it is for, or finds the flow of the children of its execution, and leaves the members to
// follow-up work. It returns the flow.
func reachFlow(u *txn.Tx, f *core.Flow, ent *txn.Row, made *core.Budget) (flow base.UUID) {
	switch {
	case f != nil:
		if flow = f.ID.UUID; f.AddBudget(made) {
			Of(u).flows.Touch(u, f)
		}
	case ent != nil && ent.Exec.Children != nil:
		flow = ent.Exec.Children.FlowID.UUID
	default:
		return base.UUID{}
	}
	u.AddTask(TaskSpreadBudget, TaskArgs{Flow: flow, Budget: made.ID})
	return flow
}

// ReachBelow leaves the members of the flow below an execution, which budgets have come to reach, to follow-up work.
func ReachBelow(u *txn.Tx, x *core.Execution, budgets []core.ScopedBudget) {
	if x.Children == nil {
		return
	}
	for _, budget := range budgets {
		u.AddTask(TaskSpreadBudget, TaskArgs{Flow: x.Children.FlowID.UUID, Budget: budget.ID})
	}
}
