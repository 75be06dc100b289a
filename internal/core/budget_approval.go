package core

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// The reason code, waitpoint key and signal names of a suspension by a budget (B29).
const (
	ReasonCodeBudget = base.ReasonCodeBudget

	budgetWaitpointKey   = "budget"
	budgetApprovedSignal = "budget_approved"
	budgetDeniedSignal   = "budget_denied"
)

// BudgetDecisions returns the decisions of a link at a budget's waitpoint that names none (B29).
func BudgetDecisions() []Decision {
	return []Decision{
		{ID: "approve", Label: "Approve", SignalName: budgetApprovedSignal},
		{ID: "reject", Label: "Reject", SignalName: budgetDeniedSignal},
	}
}

// budgetCondition returns a condition that is satisfied by one decision of a person, either way.
func budgetCondition() *condition.Condition {
	one := func(name string) condition.Condition {
		return condition.Condition{
			Kind: condition.Count, N: 1, CountKind: condition.CountDistinctSignals, Waitpoints: []string{budgetWaitpointKey}, Matcher: condition.ByName(name),
			SourceTypes: []string{condition.SourceOperator, condition.SourceApprover},
		}
	}
	return &condition.Condition{Kind: condition.AnyOf, Members: []condition.Condition{one(budgetApprovedSignal), one(budgetDeniedSignal)}}
}

// suspendForBudget takes the lease back until a person decides whether the limit is raised (B29). No token is issued: people decide with their own
// credentials or by a link.
func (x *Execution) suspendForBudget(fx *Effects, budget *Budget, breach *UsageBreach) {
	fence := Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Attempt.ID}
	condition := budgetCondition()
	digest := sha256.Sum256(condition.Canonical())
	waitpoint := x.budgetUUID(fx.Now, "waitpoint")
	p := &suspendPlan{
		condition: condition,
		bound: []boundRow{{fresh: true, Waitpoint: Waitpoint{
			ID: waitpoint, ExecutionID: x.ID, Namespace: x.Class.Namespace, Key: budgetWaitpointKey, RunIndex: x.RunIndex(),
			MintedAt: fx.Now, CreatedAt: fx.Now,
		}}},
		record: &Suspension{
			ID: x.budgetUUID(fx.Now, "suspension"), RunIndex: x.RunIndex(), AttemptIndex: x.Attempt.Index, Fence: fence,
			Waitpoints: []BoundWaitpoint{{waitpoint, budgetWaitpointKey}}, Condition: condition.Canonical(), Fingerprint: digest[:],
			ReasonCode: ReasonCodeBudget, TimeoutAt: fx.Now.Add(budget.Approval.TimeoutMS), Behavior: budget.Approval.TimeoutBehavior,
			At: fx.Now, Budget: breach.Budget, Dimension: breach.Dimension,
		},
	}
	held := x.leave(fx, exit{end: EndBudgetExceeded, state: AttemptInterrupted, interruption: InterruptedSuspended})
	x.park(fx, p, held)
	x.emitApprovalRequested(fx, breach, waitpoint)
}

// budgetUUID derives an id from the lease, which ends at most once. A timer that is noticed late, or by two processes of which one loses, therefore
// makes the same records (LI13).
func (x *Execution) budgetUUID(now base.Time, what string) base.UUID {
	digest := sha256.Sum256(append([]byte("budget "+what), x.Lease.ID[:]...))
	return base.MintUUID(now, [10]byte(digest[:10]))
}

// AskedBudget returns the budget whose raise x waits for. A signal to x needs that budget loaded and locked.
func (x *Execution) AskedBudget(d *WaitState) (base.UUID, bool) {
	s := x.askingBudget(d)
	return valueOr(s).Budget, s != nil
}

// askingBudget returns the open suspension by a budget, or nil.
func (x *Execution) askingBudget(d *WaitState) *Suspension {
	open := x.openSuspension()
	if open == nil {
		return nil
	}
	if s := d.suspension(open.Seq); s != nil && !s.Budget.IsZero() {
		return s
	}
	return nil
}

// raiseIn reads the raise that a signal to the suspension requests; nil if none. Only an operator may name one. Errors: invalid_signal.
func (s *Suspension) raiseIn(signal *Signal) (map[string]int64, error) {
	if signal.Name != budgetApprovedSignal || !s.binds(signal.WaitpointID) {
		return nil, nil
	}
	var payload map[string]json.RawMessage
	if json.Unmarshal(signal.Payload.Data, &payload) != nil || payload["raise"] == nil {
		return nil, nil
	}
	const field = "payload.raise"
	if signal.SourceType != condition.SourceOperator {
		return nil, invalidSignal(field, "only an operator may say by how much")
	}
	var raise map[string]int64
	if err := json.Unmarshal(payload["raise"], &raise); err != nil || len(raise) == 0 {
		return nil, invalidSignal(field, "must be whole amounts by dimension")
	}
	for _, name := range slices.Sorted(maps.Keys(raise)) {
		if amount := raise[name]; amount < 1 || amount > maxAmount {
			return nil, invalidSignal(field, "amounts must be in 1..9007199254740991")
		}
	}
	return raise, nil
}

// checkDecision reads the raise that a signal to a suspension by a budget requests; it returns nothing for other suspensions. Errors:
// invalid_signal for a raise that cannot be made.
func (x *Execution) checkDecision(fx *Effects, asked *Suspension, s *Signal) (map[string]int64, error) {
	if asked == nil {
		return nil, nil
	}
	raise, err := asked.raiseIn(s)
	if err != nil {
		return nil, err
	}
	budget := fx.Budgets.Get(asked.Budget)
	for name := range raise {
		if budget == nil || budget.Dimensions[name] == nil || budget.Dimensions[name].Hard == nil {
			return nil, invalidSignal("payload.raise", "the budget has no such dimension with a hard limit")
		}
	}
	return raise, nil
}

// decideBudget ends the suspension by the decision of a person (B30, B31).
func (x *Execution) decideBudget(fx *Effects, asked *Suspension, s *Signal, raise map[string]int64) {
	if s.Name == budgetDeniedSignal {
		x.end(fx, ending{
			status: Failed, reason: BudgetExceeded, attempt: EndedFailure, denied: s,
			failure: budgetFailure(fx.Now, "more of "+asked.Dimension+" was denied"),
		})
		return
	}
	fx.Budgets.raise(fx, x, asked, raise, s.SourceIdentity)
	x.resume(fx, closing{cause: CauseBudgetApproved, closer: s.ID, by: s.SourceIdentity}, 0)
}

// raise increases limits of the budget until the next reset (B30). A deleted budget is ignored.
func (b *BudgetSet) raise(fx *Effects, x *Execution, asked *Suspension, raise map[string]int64, by string) {
	budget := b.settled(fx, asked.Budget)
	if budget == nil {
		return
	}
	if raise == nil {
		raise = map[string]int64{asked.Dimension: budget.Approval.DefaultRaise[asked.Dimension]}
	}
	for _, name := range slices.Sorted(maps.Keys(raise)) {
		if d := budget.Dimensions[name]; d == nil || d.Hard == nil || raise[name] == 0 {
			continue
		}
		budget = b.own(asked.Budget)
		d := budget.Dimensions[name]
		d.Raised = AddAmounts(d.Raised, raise[name])
		d.shrink()
		b.free(budget.ID)
		budget.emitRaised(fx, x, name, raise[name], by)
	}
}
