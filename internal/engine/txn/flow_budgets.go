package txn

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// planBudgets plans the budgets that a submit makes for its flow.
func (s *submitFlow) planBudgets(ctx context.Context) error {
	definitions, err := s.s.OwnBudgets()
	if err != nil {
		return err
	}
	s.budgets, err = s.e.planOwn(ctx, s.s.Namespace, core.BudgetScope{Type: core.ScopeFlow, Value: s.flow.UUID.String()}, definitions)
	s.adoptParents(s.budgets.list)
	return err
}

// behind locks the budgets above those that the flow and its nodes make.
func (s *submitFlow) behind(u *Tx, w *store.Want) {
	s.growth.behind(u, w)
	s.budgets.behind(u, w)
}

// makeBudgets makes the budgets of the flow, which its members are charged to (B6).
func (s *submitFlow) makeBudgets(u *Tx, f *core.Flow) {
	f.Budgets = s.scoped
	s.budgets.make(u, s.caller, func(b *core.Budget) { f.AddBudget(b) })
	for i := range s.nodes {
		s.nodes[i].cmd.s.Budgets = f.Budgets
	}
}

// scopedToFlow is the flow that a budget is for.
func scopedToFlow(s *core.BudgetScope) (base.UUID, bool) {
	if s.Type != core.ScopeFlow {
		return base.UUID{}, false
	}
	id, err := base.ParseID(s.Value)
	return id.UUID, err == nil
}

// flowOfScope finds the flow that a budget is to be for. Codes: flow_not_found.
func (e *Engine) flowOfScope(ctx context.Context, c Caller, namespace string, s *core.BudgetScope) (base.UUID, error) {
	id, err := base.ParseID(s.Value)
	if err != nil {
		return base.UUID{}, noFlowOfScope(s.Value)
	}
	f, err := e.ReadFlow(ctx, c, id)
	if base.CodeOf(err) == base.CodeFlowNotFound || err == nil && f.Namespace != namespace {
		return base.UUID{}, noFlowOfScope(s.Value)
	}
	return id.UUID, err
}

func noFlowOfScope(given string) error {
	return base.Errorf(base.CodeFlowNotFound, "there is no flow %s", base.QuoteID(given)).WithField("scope.value")
}

// openFlowOf reports whether the flow that a budget is for has members that may still be charged to it.
func (u *Tx) openFlowOf(b *core.Budget) bool {
	flow, ok := scopedToFlow(&b.Scope)
	if !ok {
		return false
	}
	f := u.flow(flow)
	return f != nil && (!f.State.Terminal() || f.Open > 0)
}

// reachFlow records a new budget in the flow that it is for, or finds the flow of the children of its execution, and leaves the members to
// follow-up work. It returns the flow.
func (u *Tx) reachFlow(f *core.Flow, ent *Row, made *core.Budget) (flow base.UUID) {
	switch {
	case f != nil:
		if flow = f.ID.UUID; f.AddBudget(made) {
			u.touchFlow(f)
		}
	case ent != nil && ent.Exec.Children != nil:
		flow = ent.Exec.Children.FlowID.UUID
	default:
		return base.UUID{}
	}
	u.addTask(task{Kind: taskSpreadBudget, Flow: flow, Budget: made.ID})
	return flow
}

// reachBelow leaves the members of the flow below an execution, which budgets have come to reach, to follow-up work.
func (u *Tx) reachBelow(x *core.Execution, budgets []core.ScopedBudget) {
	if x.Children == nil {
		return
	}
	for _, budget := range budgets {
		u.addTask(task{Kind: taskSpreadBudget, Flow: x.Children.FlowID.UUID, Budget: budget.ID})
	}
}

// spreadBudget lets a budget reach the members that a flow has, and those of the flows below it, at every depth (B6); one that is gone it
// takes away from them. Members that come later have it from their flow.
//
// Members that cannot be read are passed over; when all others are done it fails, to be tried again for those (S63).
func (e *Engine) spreadBudget(ctx context.Context, flow, budget base.UUID) error {
	var unread error
	seen := map[base.UUID]bool{flow: true}
	for flows := []base.UUID{flow}; len(flows) > 0; flows = flows[1:] {
		if err := e.Do(ctx, &budgetReach{flow: flows[0], budget: budget}); err != nil {
			return err
		}
		var members []base.UUID
		bad, err := e.eachReadable(ctx, flows[0], func(x *core.Execution) { members = append(members, x.ID.UUID) })
		if err != nil {
			return err
		}
		unread = cmp.Or(unread, bad)
		for len(members) > 0 {
			some := members[:min(len(members), cancelPage)]
			members = members[len(some):]
			cmd := &budgetReach{members: some, budget: budget}
			if err := e.Do(ctx, cmd); err != nil {
				return err
			}
			for _, below := range cmd.below {
				if !seen[below] {
					seen[below] = true
					flows = append(flows, below)
				}
			}
		}
	}
	return unread
}

// budgetReach notes a budget of scope flow in the record of a flow, or in those of some members.
type budgetReach struct {
	flow    base.UUID // absent: members
	members []base.UUID
	budget  base.UUID
	below   []base.UUID // the flows below those members when it reached them: what they spawn later has it from them
}

func (r *budgetReach) Name() string { return "spread_budget" }

func (r *budgetReach) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, r.members...) }

func (r *budgetReach) behind(u *Tx, w *store.Want) { u.wantBudgets(w, []base.UUID{r.budget}) }

func (r *budgetReach) Flows(*Tx) []base.UUID { return []base.UUID{r.flow} }

func (r *budgetReach) Decide(u *Tx) error {
	r.below = nil
	b, err := u.budget(EngineCaller, r.budget)
	if err != nil && base.CodeOf(err) != base.CodeBudgetNotFound {
		return err // what cannot be read is not gone (B3)
	}
	if f := u.flow(r.flow); f != nil {
		if b == nil && core.DropBudget(&f.Budgets, r.budget) || b != nil && f.AddBudget(b) {
			u.touchFlow(f)
		}
	}
	for _, id := range r.members {
		ent := u.Entries[id]
		if ent == nil {
			continue
		}
		err := u.Apply(EngineCaller, ent, func(x *core.Execution, fx *core.Effects) (bool, error) {
			if b != nil {
				return x.AddBudget(b), nil
			}
			return without(r.budget)(u, x, fx), nil
		})
		if err != nil {
			return err
		}
		if ent.Exec.Children != nil {
			r.below = append(r.below, ent.Exec.Children.FlowID.UUID)
		}
	}
	return nil
}
