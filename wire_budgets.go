package flowfabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of budgets (U95..U97).

// MarshalJSON writes the definition as the HTTP API takes it.
func (b Budget) MarshalJSON() ([]byte, error) {
	w := wire.NewBudget{Name: b.Name, BudgetFields: b.fields()}
	if b.Scope != (BudgetScope{}) {
		w.Scope = &wire.BudgetScope{Type: b.Scope.Type, Value: b.Scope.Value}
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads a definition as strictly as the HTTP API does: its errors have codes, and the path of the field at fault.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument, invalid_budget for a limit of 0.
func (b *Budget) UnmarshalJSON(text []byte) error {
	var w wire.NewBudget
	if err := wire.DecodeJSON(text, &w); err != nil {
		return api.FaultsError(err)
	}
	read, err := budgetFrom(w.Name, &w.BudgetFields)
	if err != nil {
		return err
	}
	if w.Scope != nil {
		read.Scope = BudgetScope(*w.Scope)
	}
	*b = read
	return nil
}

func (b *Budget) fields() wire.BudgetFields {
	w := wire.BudgetFields{
		BudgetID: b.ID, Parent: b.Parent, Dimensions: make(map[string]wire.BudgetLimits, len(b.Dimensions)),
		OnHard: string(b.OnHard), OnLeaseLoss: string(b.OnLeaseLoss),
	}
	for name, limit := range b.Dimensions {
		w.Dimensions[name] = limit.wire()
	}
	if b.Reset != (BudgetReset{}) {
		reset := b.Reset.wire()
		w.Reset = &reset
	}
	if approval := b.Approval.wire(); b.Approval.Timeout != 0 || b.Approval.OnTimeout != "" || len(b.Approval.DefaultRaise) > 0 {
		w.Approval = &approval
	}
	return w
}

// budgetFrom reads a definition. A limit of 0 would be none here, and is refused as the rules do.
func budgetFrom(name string, w *wire.BudgetFields) (Budget, error) {
	b := Budget{
		ID: w.BudgetID, Name: name, Parent: w.Parent, OnHard: HardAction(w.OnHard), OnLeaseLoss: LossAction(w.OnLeaseLoss),
		Dimensions: make(map[string]Limit, len(w.Dimensions)),
	}
	for _, dimension := range slices.Sorted(maps.Keys(w.Dimensions)) { // of several faults the same is told each time
		limits := w.Dimensions[dimension]
		if err := checkLimits(dimension, limits); err != nil {
			return Budget{}, err
		}
		b.Dimensions[dimension] = limitFrom(limits)
	}
	if w.Reset != nil {
		b.Reset = resetFrom(*w.Reset)
	}
	if w.Approval != nil {
		b.Approval = approvalFrom(*w.Approval)
	}
	return b, nil
}

// checkLimits refuses a limit of 0.
func checkLimits(dimension string, l wire.BudgetLimits) error {
	for _, limit := range []struct {
		name  string
		given *int64
	}{{"hard", l.Hard}, {"soft", l.Soft}} {
		if limit.given != nil && *limit.given == 0 {
			return newError(core.CodeInvalidBudget, "a limit is at least 1").
				At(core.FieldUnder("dimensions", dimension)+"."+limit.name, "leave it out for no limit; to stop at once, close the budget")
		}
	}
	return nil
}

func (l Limit) wire() wire.BudgetLimits {
	return wire.BudgetLimits{Hard: amount(l.Hard), Soft: amount(l.Soft), DefaultReserve: amount(l.DefaultReserve)}
}

func limitFrom(w wire.BudgetLimits) Limit {
	return Limit{Hard: amountOf(w.Hard), Soft: amountOf(w.Soft), DefaultReserve: amountOf(w.DefaultReserve)}
}

func (r BudgetReset) wire() wire.BudgetReset {
	return wire.BudgetReset{Type: r.kind(), EveryMS: millis(r.Every), AnchorAt: wireTime(r.AnchorAt), Unit: r.Unit, Timezone: r.Timezone}
}

func resetFrom(w wire.BudgetReset) BudgetReset {
	r := BudgetReset{Type: w.Type, Every: duration(w.EveryMS), AnchorAt: w.AnchorAt.Time, Unit: w.Unit, Timezone: w.Timezone}
	if r == (BudgetReset{Type: core.ResetNone}) {
		return BudgetReset{}
	}
	return r
}

func (a BudgetApproval) wire() wire.BudgetApproval {
	return wire.BudgetApproval{TimeoutMS: millis(a.Timeout), TimeoutBehavior: string(a.OnTimeout), DefaultRaise: a.DefaultRaise}
}

func approvalFrom(w wire.BudgetApproval) BudgetApproval {
	return BudgetApproval{Timeout: duration(w.TimeoutMS), OnTimeout: TimeoutBehavior(w.TimeoutBehavior), DefaultRaise: w.DefaultRaise}
}

// MarshalJSON writes the budget as the HTTP API shows it (U31).
func (b BudgetStatus) MarshalJSON() ([]byte, error) { return wire.Marshal(b.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (b *BudgetStatus) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Budget](text)
	*b = *budgetStatusFrom(*w)
	return err
}

func (b *BudgetStatus) wire() wire.Budget {
	w := wire.Budget{
		BudgetID: b.ID, Namespace: b.Namespace, Name: b.Name, Scope: wire.BudgetScope(b.Scope), Parent: b.Parent,
		Dimensions: make(map[string]wire.BudgetDimension, len(b.Dimensions)), Reset: b.Reset.wire(), OnHard: string(b.OnHard),
		OnLeaseLoss: string(b.OnLeaseLoss), Approval: b.Approval.wire(), State: b.State, Revision: b.Revision, Exhausted: each(b.Exhausted, same),
		Epoch: b.Epoch, EpochStartedAt: wireTime(b.EpochStartedAt), NextResetAt: wireTime(b.NextResetAt), BreachCount: b.Breaches,
		SoftBreachCount: b.SoftBreaches, LiveHolds: b.LiveHolds, BlockedExecutions: b.BlockedExecutions,
		CreatedAt: wireTime(b.CreatedAt), UpdatedAt: wireTime(b.UpdatedAt), Holders: some(b.Holders, BudgetHolder.wire),
	}
	w.Scope.Type = cmp.Or(w.Scope.Type, core.ScopeNone)
	for name, limit := range b.Dimensions {
		n := b.Numbers[name]
		d := wire.BudgetDimension{BudgetLimits: limit.wire(), Used: n.Used, Reserved: n.Reserved, Overrun: n.Overrun}
		if n.EffectiveHard != 0 {
			d.EffectiveHard, d.Available = &n.EffectiveHard, &n.Available
		}
		w.Dimensions[name] = d
	}
	if l := b.LastBreach; l != nil {
		w.LastBreach = &wire.BudgetBreach{At: wireTime(l.At), Dimension: l.Dimension, ExecutionID: string(l.ExecutionID)}
	}
	return w
}

func same(text string) string { return text }

func budgetStatusFrom(w wire.Budget) *BudgetStatus {
	b := &BudgetStatus{
		Budget: Budget{
			ID: w.BudgetID, Name: w.Name, Scope: BudgetScope(w.Scope), Parent: w.Parent, Dimensions: make(map[string]Limit, len(w.Dimensions)),
			Reset: resetFrom(w.Reset), OnHard: HardAction(w.OnHard), OnLeaseLoss: LossAction(w.OnLeaseLoss), Approval: approvalFrom(w.Approval),
		},
		Namespace: w.Namespace, State: w.State, Revision: w.Revision, Numbers: make(map[string]BudgetNumbers, len(w.Dimensions)),
		Exhausted: some(w.Exhausted, same), Epoch: w.Epoch, EpochStartedAt: w.EpochStartedAt.Time, NextResetAt: w.NextResetAt.Time,
		Breaches: w.BreachCount, SoftBreaches: w.SoftBreachCount, LiveHolds: w.LiveHolds, BlockedExecutions: w.BlockedExecutions,
		CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time, Holders: some(w.Holders, holderFrom),
	}
	for name, d := range w.Dimensions {
		b.Dimensions[name] = limitFrom(d.BudgetLimits)
		b.Numbers[name] = BudgetNumbers{
			Used: d.Used, Reserved: d.Reserved, Overrun: d.Overrun, EffectiveHard: amountOf(d.EffectiveHard), Available: amountOf(d.Available),
		}
	}
	if l := w.LastBreach; l != nil {
		b.LastBreach = &BudgetBreach{At: l.At.Time, Dimension: l.Dimension, ExecutionID: ID(l.ExecutionID)}
	}
	return b
}

func (h BudgetHolder) wire() wire.BudgetHolder {
	return wire.BudgetHolder{ExecutionID: string(h.ExecutionID), LeaseEpoch: h.LeaseEpoch, Since: wireTime(h.Since)}
}

func holderFrom(w wire.BudgetHolder) BudgetHolder {
	return BudgetHolder{ExecutionID: ID(w.ExecutionID), LeaseEpoch: w.LeaseEpoch, Since: w.Since.Time}
}

// MarshalJSON writes the epoch as the HTTP API shows it (U96).
func (e BudgetEpoch) MarshalJSON() ([]byte, error) {
	w := wire.BudgetEpoch{
		Epoch: e.Epoch, StartedAt: wireTime(e.StartedAt), EndedAt: wireTime(e.EndedAt), Dimensions: make(map[string]wire.EpochUse, len(e.Dimensions)),
		BreachCount: e.Breaches, SoftBreachCount: e.SoftBreaches,
	}
	for name, use := range e.Dimensions {
		w.Dimensions[name] = wire.EpochUse(use)
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *BudgetEpoch) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.BudgetEpoch](text)
	*e = epochFrom(*w)
	return err
}

func epochFrom(w wire.BudgetEpoch) BudgetEpoch {
	e := BudgetEpoch{
		Epoch: w.Epoch, StartedAt: w.StartedAt.Time, EndedAt: w.EndedAt.Time, Dimensions: make(map[string]EpochUse, len(w.Dimensions)),
		Breaches: w.BreachCount, SoftBreaches: w.SoftBreachCount,
	}
	for name, use := range w.Dimensions {
		e.Dimensions[name] = EpochUse(use)
	}
	return e
}

// MarshalJSON writes what was used as the HTTP API shows it (U96).
func (s BudgetSpend) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.BudgetSpend{Epoch: s.Epoch, ExecutionID: string(s.ExecutionID), Used: amounts(s.Used), Total: s.Total})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *BudgetSpend) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.BudgetSpend](text)
	*s = spendFrom(*w)
	return err
}

func spendFrom(w wire.BudgetSpend) BudgetSpend {
	return BudgetSpend{Epoch: w.Epoch, ExecutionID: ID(w.ExecutionID), Used: w.Used, Total: w.Total}
}

// amounts are never absent.
func amounts(given map[string]int64) map[string]int64 {
	if given == nil {
		return map[string]int64{}
	}
	return given
}

// budgetsWire are budgets that are made with an execution, in the JSON of submissions and policies; budgetsFrom reads those.
func budgetsWire(all []Budget) []wire.BudgetDefinition {
	return some(all, func(b Budget) wire.BudgetDefinition {
		return wire.BudgetDefinition{Name: b.Name, BudgetFields: b.fields()}
	})
}

func budgetsFrom(all []wire.BudgetDefinition) (budgets []Budget, err error) {
	for i := range all {
		b, err := budgetFrom(all[i].Name, &all[i].BudgetFields)
		if err != nil {
			return nil, within(fmt.Sprintf("budgets[%d]", i), err)
		}
		budgets = append(budgets, b)
	}
	return budgets, nil
}

// budgetsShownOf are those that a policy's text gives; what cannot be read stays zero.
func budgetsShownOf(all []wire.BudgetDefinition) []Budget {
	budgets, _ := budgetsFrom(all)
	return budgets
}

// checkOwnBudgets refuses budgets that could not be made with an execution as they are written.
func checkOwnBudgets(all []Budget) error {
	for _, b := range all {
		if b.Scope != (BudgetScope{}) {
			return newError(core.CodeInvalidPolicy, "the scope is the execution itself, and cannot be given").At("policy.budgets", "leave Scope empty")
		}
		if err := b.Reset.check(); err != nil {
			return err
		}
	}
	return nil
}
