package service

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// limit is a limit that is there unless it is 0; limitOf is its reverse.
func limit(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func limitOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// budgetDefinition converts the definition to the form that is validated.
func budgetDefinition(b *api.Budget) (core.BudgetDefinition, error) {
	d := core.BudgetDefinition{
		Name: b.Name, Scope: core.BudgetScope(b.Scope), Parent: b.Parent, Dimensions: make(map[string]core.BudgetLimits, len(b.Dimensions)),
		OnHard: string(b.OnHard), OnLeaseLoss: string(b.OnLeaseLoss), Approval: budgetApproval(b.Approval),
	}
	for name, l := range b.Dimensions {
		d.Dimensions[name] = core.BudgetLimits{Hard: limit(l.Hard), Soft: limit(l.Soft), DefaultReserve: limit(l.DefaultReserve)}
	}
	var err error
	if d.Reset, err = budgetReset(b.Reset); err != nil || b.ID == "" {
		return d, err
	}
	d.ID, err = uuidOf("budget_id", b.ID)
	return d, err
}

func budgetReset(r api.BudgetReset) (core.BudgetReset, error) {
	if err := r.Check(); err != nil {
		return core.BudgetReset{}, err
	}
	return core.BudgetReset{Type: r.Kind(), EveryMS: millis(r.Every), AnchorAt: base.TimeOf(r.AnchorAt), Unit: r.Unit, Timezone: r.Timezone}, nil
}

func budgetApproval(a api.BudgetApproval) core.BudgetApproval {
	return core.BudgetApproval{TimeoutMS: millis(a.Timeout), TimeoutBehavior: string(a.OnTimeout), DefaultRaise: a.DefaultRaise}
}

func budgetUpdate(u *api.BudgetUpdate) (core.BudgetUpdate, error) {
	update := core.BudgetUpdate{Name: u.Name, OnHard: (*string)(u.OnHard), OnLeaseLoss: (*string)(u.OnLeaseLoss)}
	if u.Reset != nil {
		reset, err := budgetReset(*u.Reset)
		if err != nil {
			return update, err
		}
		update.Reset = &reset
	}
	if u.Approval != nil {
		approval := budgetApproval(*u.Approval)
		update.Approval = &approval
	}
	if len(u.Dimensions)+len(u.RemoveDimensions) == 0 {
		return update, nil
	}
	update.Dimensions = map[string]core.DimensionUpdate{}
	for _, name := range slices.Sorted(maps.Keys(u.Dimensions)) { // sorted, so that of several invalid fields the same one is always reported
		d, err := dimensionUpdate(u.Dimensions[name], base.FieldUnder("dimensions", name))
		if err != nil {
			return update, err
		}
		update.Dimensions[name] = d
	}
	for _, name := range u.RemoveDimensions {
		if _, both := u.Dimensions[name]; both {
			return update, base.Errorf(base.CodeInvalidBudget, "%q is changed and removed", name).WithField("remove_dimensions").WithHint("do one of them")
		}
		update.Dimensions[name] = core.DimensionUpdate{Remove: true}
	}
	return update, nil
}

// The limits of a dimension, as LimitChange.Remove calls them.
var limitNames = []string{"hard", "soft", "default_reserve"}

func dimensionUpdate(c api.LimitChange, at string) (core.DimensionUpdate, error) {
	var d core.DimensionUpdate
	for i, part := range []struct {
		given *int64
		into  *core.LimitChange
	}{{c.Hard, &d.Hard}, {c.Soft, &d.Soft}, {c.DefaultReserve, &d.DefaultReserve}} {
		removed := slices.Contains(c.Remove, limitNames[i])
		if removed && part.given != nil {
			return d, base.Errorf(base.CodeInvalidBudget, "%s is set and taken away", limitNames[i]).WithField(at + ".remove").WithHint("do one of them")
		}
		*part.into = core.LimitChange{Set: removed || part.given != nil, Value: part.given}
	}
	for _, name := range c.Remove {
		if !slices.Contains(limitNames, name) {
			return d, base.Errorf(base.CodeInvalidBudget, "%q is not a limit", name).WithField(at + ".remove").WithHint("use hard, soft or default_reserve")
		}
	}
	return d, nil
}

func budgetShown(v engine.BudgetView, err error) (api.BudgetStatus, error) {
	if err != nil {
		return api.BudgetStatus{}, err
	}
	return *budgetOf(v), nil
}

func budgetOf(v engine.BudgetView) *api.BudgetStatus {
	b := &api.BudgetStatus{
		ID: v.ID.String(), Namespace: v.Namespace, Name: v.Name, Scope: api.BudgetScope(v.Scope), Dimensions: make(map[string]api.BudgetDimension, len(v.Numbers)),
		Reset: resetOf(v.Reset), OnHard: api.HardAction(v.OnHard), OnLeaseLoss: api.LossAction(v.OnLeaseLoss), Approval: approvalOf(v.Approval),
		State: v.State(), Revision: v.Revision, Exhausted: each(v.Exhausted, func(name string) string { return name }),
		Epoch: v.Epoch, EpochStartedAt: v.EpochStarted.Std(), NextResetAt: v.NextResetAt.Std(), Breaches: v.Breaches, SoftBreaches: v.SoftBreaches,
		LiveHolds: v.LiveHolds, BlockedExecutions: v.BlockedExecutions, CreatedAt: v.CreatedAt.Std(), UpdatedAt: v.UpdatedAt.Std(),
		Holders: some(v.Holders, holderOf),
	}
	if b.Scope.Type == "" {
		b.Scope.Type = core.ScopeNone
	}
	if !v.Parent.IsZero() {
		b.Parent = v.Parent.String()
	}
	for name, d := range v.Numbers {
		b.Dimensions[name] = api.BudgetDimension{
			Hard: limitOf(d.Hard), Soft: limitOf(d.Soft), DefaultReserve: limitOf(d.DefaultReserve),
			EffectiveHard: limitOf(d.EffectiveHard), Used: d.Used, Reserved: d.Reserved, Overrun: d.Overrun, Available: d.Available,
		}
	}
	if l := v.LastBreach; l != nil {
		b.LastBreach = &api.BudgetBreach{At: l.At.Std(), Dimension: l.Dimension, ExecutionID: idOf(l.ExecutionID)}
	}
	return b
}

// resetOf converts a reset with its kind; a budget without a reset has a kind as well.
func resetOf(r core.BudgetReset) api.BudgetReset {
	shown := api.BudgetReset{Type: r.Type, Every: duration(r.EveryMS), AnchorAt: r.AnchorAt.Std(), Unit: r.Unit, Timezone: r.Timezone}
	shown.Type = shown.Kind()
	return shown
}

func approvalOf(a core.BudgetApproval) api.BudgetApproval {
	return api.BudgetApproval{Timeout: duration(a.TimeoutMS), OnTimeout: api.TimeoutBehavior(a.TimeoutBehavior), DefaultRaise: a.DefaultRaise}
}

func holderOf(h engine.Holder) api.BudgetHolder {
	return api.BudgetHolder{ExecutionID: idOf(h.ExecutionID), LeaseEpoch: h.Epoch, Since: h.Since.Std()}
}

func epochOf(r core.EpochRecord) api.BudgetEpoch {
	epoch := api.BudgetEpoch{
		Epoch: r.Epoch, StartedAt: r.StartedAt.Std(), EndedAt: r.EndedAt.Std(), Dimensions: make(map[string]api.EpochUse, len(r.Dimensions)),
		Breaches: r.Breaches, SoftBreaches: r.SoftBreaches,
	}
	for name, use := range r.Dimensions {
		epoch.Dimensions[name] = api.EpochUse(use)
	}
	return epoch
}

func spendOf(r engine.SpendRow) api.BudgetSpend {
	return api.BudgetSpend{Epoch: r.Epoch, ExecutionID: idOf(r.ExecutionID), Used: amounts(r.Used), Total: r.Total}
}

// UsageReceipt converts the answer to a report of usage.
func UsageReceipt(o core.UsageOutcome) api.UsageReceipt {
	r := api.UsageReceipt{Outcome: o.Outcome, Applied: o.Applied, Action: o.Action, Remaining: Remaining(o.Remaining)}
	if o.Repeated {
		r.Outcome, r.FirstOutcome = api.UsageApplied, o.Outcome
	}
	for _, breach := range o.All {
		r.All = append(r.All, api.UsageBreach{
			Budget: breach.Budget.String(), Dimension: breach.Dimension, Used: breach.Used, Reserved: breach.Reserved, Hard: breach.Hard,
			Attempted: breach.Attempted, Overrun: breach.Overrun, Soft: breach.Soft,
		})
	}
	if len(r.All) > 0 {
		r.UsageBreach = r.All[0]
	}
	return r
}

// Remaining returns what is left of budgets, by id; nil if no budget has a limit.
func Remaining(left map[base.UUID]map[string]int64) map[string]map[string]int64 {
	if len(left) == 0 {
		return nil
	}
	shown := make(map[string]map[string]int64, len(left))
	for id, amounts := range left {
		shown[id.String()] = amounts
	}
	return shown
}

// amounts returns an empty map instead of nil: they are an object in JSON.
func amounts(given map[string]int64) map[string]int64 {
	if given == nil {
		return map[string]int64{}
	}
	return given
}
