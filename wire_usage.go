package flowfabric

import (
	"cmp"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of usage (U42, U74, U98).

// outcomeApplied is that of a report which was booked before.
const outcomeApplied = "already_applied"

// MarshalJSON writes the receipt as the HTTP API shows it (U74).
func (r UsageReceipt) MarshalJSON() ([]byte, error) { return wire.Marshal(r.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *UsageReceipt) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.UsageReceipt](text)
	*r = usageReceiptFrom(w)
	return err
}

func (r *UsageReceipt) wire() wire.UsageReceipt {
	w := wire.UsageReceipt{
		Outcome: r.Outcome, Applied: r.Applied, Action: r.Action, BreachNumbers: wire.BreachNumbers(r.UsageBreach), Remaining: r.Remaining,
		All: some(r.All, func(b UsageBreach) wire.UsageBreach { return wire.UsageBreach{BreachNumbers: wire.BreachNumbers(b)} }),
	}
	if r.Repeated {
		w.Outcome, w.FirstOutcome = outcomeApplied, r.Outcome
	}
	return w
}

func usageReceiptFrom(w *wire.UsageReceipt) UsageReceipt {
	return UsageReceipt{
		Outcome: cmp.Or(w.FirstOutcome, w.Outcome), Repeated: w.Outcome == outcomeApplied, Applied: w.Applied, Action: w.Action,
		UsageBreach: UsageBreach(w.BreachNumbers), Remaining: w.Remaining,
		All: some(w.All, func(b wire.UsageBreach) UsageBreach { return UsageBreach(b.BreachNumbers) }),
	}
}

// MarshalJSON writes the usage as the HTTP API shows it (U42).
func (u ExecutionUsage) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.ExecutionUsage{ExecutionID: string(u.ExecutionID), AttemptIndex: u.Attempt, Usage: amounts(u.Amounts)})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (u *ExecutionUsage) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.ExecutionUsage](text)
	*u = usageFrom(w)
	return err
}

func usageFrom(w *wire.ExecutionUsage) ExecutionUsage {
	u := ExecutionUsage{ExecutionID: ID(w.ExecutionID), Attempt: w.AttemptIndex}
	if len(w.Usage) > 0 {
		u.Amounts = w.Usage
	}
	return u
}

// MarshalJSON writes the budgets as the HTTP API shows them (U42).
func (a ApplicableBudgets) MarshalJSON() ([]byte, error) {
	w := wire.ApplicableBudgets{Budgets: each(a.Budgets, (*BudgetStatus).wire), Admitted: a.Refusal == nil}
	if a.Refusal != nil {
		w.Refusal = &wire.BudgetRefusal{BlockedOn: a.Refusal.BlockedOn, BlockingDetail: a.Refusal.Detail}
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *ApplicableBudgets) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.ApplicableBudgets](text)
	*a = applicableFrom(w)
	return err
}

func applicableFrom(w *wire.ApplicableBudgets) ApplicableBudgets {
	a := ApplicableBudgets{Budgets: each(w.Budgets, budgetStatusFrom)}
	if w.Refusal != nil {
		a.Refusal = &BudgetRefusal{BlockedOn: w.Refusal.BlockedOn, Detail: w.Refusal.BlockingDetail}
	}
	return a
}
