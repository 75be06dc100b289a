package flows

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// planBudgets plans the budgets that a submit makes for its flow.
func (s *submitFlow) planBudgets(ctx context.Context) error {
	definitions, err := s.s.OwnBudgets()
	if err != nil {
		return err
	}
	s.budgets, err = s.e.PlanOwn(ctx, s.s.Namespace, core.BudgetScope{Type: core.ScopeFlow, Value: s.flow.UUID.String()}, definitions)
	s.allowParents(s.budgets.List)
	return err
}

// Behind locks the budgets above those that the flow and its nodes make.
func (s *submitFlow) Behind(u *txn.Tx, w *store.Want) {
	s.graphDelta.Behind(u, w)
	s.budgets.Behind(u, w)
}

// makeBudgets makes the budgets of the flow, which its members are charged to (B6).
func (s *submitFlow) makeBudgets(u *txn.Tx, f *core.Flow) {
	f.Budgets = s.scoped
	s.budgets.Make(u, s.caller, func(b *core.Budget) { f.AddBudget(b) })
	for i := range s.nodes {
		s.nodes[i].cmd.S.Budgets = f.Budgets
	}
}

// spreadBudget lets a budget reach the members that a flow has, and those of the flows below it, at every depth (B6); one that is gone it
// takes away from them. Members that come later have it from their flow.
//
// Members that cannot be read are passed over; when all others are done it fails, to be tried again for those (S63).
func (e *Graphs) spreadBudget(ctx context.Context, flow, budget base.UUID) error {
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

func (r *budgetReach) Behind(u *txn.Tx, w *store.Want) {
	limits.WantBudgets(u, w, []base.UUID{r.budget})
}

func (r *budgetReach) Flows(*txn.Tx) []base.UUID { return []base.UUID{r.flow} }

func (r *budgetReach) Decide(u *txn.Tx) error {
	r.below = nil
	b, err := limits.Budget(u, txn.EngineCaller, r.budget)
	if err != nil && base.CodeOf(err) != base.CodeBudgetNotFound {
		return err // what cannot be read is not gone (B3)
	}
	if f := flow(u, r.flow); f != nil {
		if b == nil && core.DropBudget(&f.Budgets, r.budget) || b != nil && f.AddBudget(b) {
			touchFlow(u, f)
		}
	}
	for _, id := range r.members {
		ent := u.Entries[id]
		if ent == nil {
			continue
		}
		err := u.Apply(txn.EngineCaller, ent, func(x *core.Execution, fx *core.Effects) (bool, error) {
			if b != nil {
				return x.AddBudget(b), nil
			}
			return limits.Without(r.budget)(u, x, fx), nil
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
