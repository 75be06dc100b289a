package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// sourceBudget is the source of cancellations caused by a budget breach (L108).
const sourceBudget = "budget"

// breach counts the hard breaches of a bill, emits their events and carries out the action of the first budget (B27). act reports whether the
// action may affect the reporter (B28). It returns the action taken on the reporter.
//
// Every breached budget counts the breach once, with its first dimension: each has its own limit and its own readers.
func (l *bill) breach(fx *Effects, act bool) (action string) {
	action = ActionNone
	if len(l.breaches) == 0 {
		return action
	}
	f := &l.breaches[0]
	first := l.books.Get(f.Budget)
	if act && l.x != nil && l.x.Status == Running {
		action = l.actionOf(first)
	}
	l.count(fx, action)
	if first.OnHard == OnHardCancelRunning {
		l.cancelRunning(first.ID, action)
	}
	switch action {
	case ActionFailed:
		l.x.failForBudget(fx, f)
	case ActionSuspended:
		l.x.suspendForBudget(fx, first, f)
	case ActionCancelled:
		l.x.CancelForBudget(fx, first.ID)
	}
	return action
}

// actionOf returns what on_hard does to the reporter. Only a holder of a lease charged to the budget is cancelled with the others.
func (l *bill) actionOf(budget *Budget) string {
	switch budget.OnHard {
	case OnHardFail:
		return ActionFailed
	case OnHardSuspendForApproval:
		return ActionSuspended
	case OnHardCancelRunning:
		if l.x.chargedTo(budget.ID) {
			return ActionCancelled
		}
	}
	return ActionNone
}

func (l *bill) count(fx *Effects, action string) {
	counted := map[base.UUID]bool{}
	for i := range l.breaches {
		breach := &l.breaches[i]
		if counted[breach.Budget] {
			continue
		}
		counted[breach.Budget] = true
		budget := l.books.own(breach.Budget)
		budget.Breaches++
		budget.EpochHard++
		budget.LastBreach = &BudgetBreach{At: fx.Now, Dimension: breach.Dimension}
		if l.x != nil {
			budget.LastBreach.ExecutionID = l.x.ID
		}
		done := ActionNone
		if i == 0 {
			done = action
		}
		budget.emitHardBreach(fx, l.x, breach, done)
	}
}

func (l *bill) cancelRunning(budget base.UUID, action string) {
	cancel := CancelRunning{Budget: budget}
	if l.x != nil && action != ActionCancelled {
		cancel.Spare = l.x.ID
	}
	l.books.cancels = append(l.books.cancels, cancel)
}

// failForBudget ends x as failed (B27). There is no retry: another attempt would need the same usage.
func (x *Execution) failForBudget(fx *Effects, breach *UsageBreach) {
	x.end(fx, ending{
		status: Failed, reason: BudgetExceeded, attempt: EndedFailure, lease: EndBudgetExceeded,
		failure: budgetFailure(fx.Now, "the limit of "+breach.Dimension+" of a budget was reached"),
	})
}

func budgetFailure(now base.Time, message string) *Failure {
	return &Failure{Class: classPermanent, Category: BudgetExceeded.String(), Message: message, At: now}
}

// CancelForBudget cancels x because it holds a lease charged to a budget that was breached (B27). It reports whether it did.
func (x *Execution) CancelForBudget(fx *Effects, budget base.UUID) bool {
	if !x.chargedTo(budget) || x.Status != Running {
		return false
	}
	x.cancel(fx, CancelCommand{Source: sourceBudget, By: EngineActor().ID, Reason: BudgetExceeded.String(), Why: BudgetExceeded}, entry{})
	return true
}
