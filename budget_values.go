package flowfabric

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// Budgets and usage as the engine has them.

// amount is a limit that is there unless it is 0.
func amount(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// amountOf is a limit that may be absent.
func amountOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// core is the definition for the rules to check.
func (b *Budget) core() (core.BudgetDefinition, error) {
	d := core.BudgetDefinition{
		Name: b.Name, Scope: core.BudgetScope(b.Scope), Parent: b.Parent, Dimensions: make(map[string]core.BudgetLimits, len(b.Dimensions)),
		OnHard: string(b.OnHard), OnLeaseLoss: string(b.OnLeaseLoss), Approval: b.Approval.core(),
	}
	for name, l := range b.Dimensions {
		d.Dimensions[name] = core.BudgetLimits{Hard: amount(l.Hard), Soft: amount(l.Soft), DefaultReserve: amount(l.DefaultReserve)}
	}
	var err error
	if d.Reset, err = b.Reset.core(); err != nil {
		return d, err
	}
	if b.ID == "" {
		return d, nil
	}
	d.ID, err = uuidOf("budget_id", b.ID)
	return d, err
}

// kind is the sort of reset, as the rules call it.
func (r BudgetReset) kind() string {
	switch {
	case r.Type != "":
		return r.Type
	case r.Every != 0 || !r.AnchorAt.IsZero():
		return core.ResetInterval
	case r.Unit != "" || r.Timezone != "":
		return core.ResetCalendar
	default:
		return core.ResetNone
	}
}

func (r BudgetReset) core() (core.BudgetReset, error) {
	if err := r.check(); err != nil {
		return core.BudgetReset{}, err
	}
	return core.BudgetReset{Type: r.kind(), EveryMS: millis(r.Every), AnchorAt: core.TimeOf(r.AnchorAt), Unit: r.Unit, Timezone: r.Timezone}, nil
}

// check refuses what is of both sorts: what belongs to the other would be silently left out.
func (r BudgetReset) check() error {
	byInterval, byCalendar := r.Every != 0 || !r.AnchorAt.IsZero(), r.Unit != "" || r.Timezone != ""
	if byInterval && r.kind() != core.ResetInterval || byCalendar && r.kind() != core.ResetCalendar {
		return newError(core.CodeInvalidBudget, "a reset goes in intervals or by the calendar").At("reset", "give every_ms and anchor_at, or unit and timezone")
	}
	return nil
}

func resetOf(r core.BudgetReset) BudgetReset {
	return BudgetReset{Type: r.Type, Every: duration(r.EveryMS), AnchorAt: r.AnchorAt.Std(), Unit: r.Unit, Timezone: r.Timezone}
}

func (a BudgetApproval) core() core.BudgetApproval {
	return core.BudgetApproval{TimeoutMS: millis(a.Timeout), TimeoutBehavior: string(a.OnTimeout), DefaultRaise: a.DefaultRaise}
}

func (u *BudgetUpdate) core() (core.BudgetUpdate, error) {
	update := core.BudgetUpdate{Name: u.Name, OnHard: (*string)(u.OnHard), OnLeaseLoss: (*string)(u.OnLeaseLoss)}
	if u.Reset != nil {
		reset, err := u.Reset.core()
		if err != nil {
			return update, err
		}
		update.Reset = &reset
	}
	if u.Approval != nil {
		approval := u.Approval.core()
		update.Approval = &approval
	}
	if len(u.Dimensions)+len(u.RemoveDimensions) == 0 {
		return update, nil
	}
	update.Dimensions = map[string]core.DimensionUpdate{}
	for _, name := range slices.Sorted(maps.Keys(u.Dimensions)) {
		change := u.Dimensions[name]
		d, err := change.core(core.FieldUnder("dimensions", name))
		if err != nil {
			return update, err
		}
		update.Dimensions[name] = d
	}
	for _, name := range u.RemoveDimensions {
		if _, both := u.Dimensions[name]; both {
			return update, newError(core.CodeInvalidBudget, "%q is changed and removed", name).At("remove_dimensions", "do one of them")
		}
		update.Dimensions[name] = core.DimensionUpdate{Remove: true}
	}
	return update, nil
}

// The limits of a dimension, as LimitChange.Remove calls them.
var limitNames = []string{"hard", "soft", "default_reserve"}

func (c *LimitChange) core(at string) (core.DimensionUpdate, error) {
	var d core.DimensionUpdate
	for i, part := range []struct {
		given *int64
		into  *core.LimitChange
	}{{c.Hard, &d.Hard}, {c.Soft, &d.Soft}, {c.DefaultReserve, &d.DefaultReserve}} {
		removed := slices.Contains(c.Remove, limitNames[i])
		if removed && part.given != nil {
			return d, newError(core.CodeInvalidBudget, "%s is set and taken away", limitNames[i]).At(at+".remove", "do one of them")
		}
		*part.into = core.LimitChange{Set: removed || part.given != nil, Value: part.given}
	}
	for _, name := range c.Remove {
		if !slices.Contains(limitNames, name) {
			return d, newError(core.CodeInvalidBudget, "%q is not a limit", name).At(at+".remove", "use hard, soft or default_reserve")
		}
	}
	return d, nil
}

func budgetOf(v engine.BudgetView) *BudgetStatus {
	b := &BudgetStatus{
		Budget: Budget{
			ID: v.ID.String(), Name: v.Name, Scope: BudgetScope(v.Scope), Dimensions: make(map[string]Limit, len(v.Numbers)), Reset: resetOf(v.Reset),
			OnHard: HardAction(v.OnHard), OnLeaseLoss: LossAction(v.OnLeaseLoss),
			Approval: BudgetApproval{
				Timeout: duration(v.Approval.TimeoutMS), OnTimeout: TimeoutBehavior(v.Approval.TimeoutBehavior), DefaultRaise: v.Approval.DefaultRaise,
			},
		},
		Namespace: v.Namespace, State: v.State(), Revision: v.Revision, Numbers: make(map[string]BudgetNumbers, len(v.Numbers)),
		Exhausted: v.Exhausted, Epoch: v.Epoch, EpochStartedAt: v.EpochStarted.Std(), NextResetAt: v.NextResetAt.Std(),
		Breaches: v.Breaches, SoftBreaches: v.SoftBreaches, LiveHolds: v.LiveHolds, BlockedExecutions: v.BlockedExecutions,
		CreatedAt: v.CreatedAt.Std(), UpdatedAt: v.UpdatedAt.Std(), Holders: some(v.Holders, holderOf),
	}
	if !v.Parent.IsZero() {
		b.Parent = v.Parent.String()
	}
	for name, d := range v.Numbers {
		b.Dimensions[name] = Limit{Hard: amountOf(d.Hard), Soft: amountOf(d.Soft), DefaultReserve: amountOf(d.DefaultReserve)}
		b.Numbers[name] = BudgetNumbers{
			Used: d.Used, Reserved: d.Reserved, Overrun: d.Overrun, EffectiveHard: amountOf(d.EffectiveHard), Available: amountOf(d.Available),
		}
	}
	if l := v.LastBreach; l != nil {
		b.LastBreach = &BudgetBreach{At: l.At.Std(), Dimension: l.Dimension, ExecutionID: idOf(l.ExecutionID)}
	}
	return b
}

func holderOf(h engine.Holder) BudgetHolder {
	return BudgetHolder{ExecutionID: idOf(h.ExecutionID), LeaseEpoch: h.Epoch, Since: h.Since.Std()}
}

func epochOf(r core.EpochRecord) BudgetEpoch {
	epoch := BudgetEpoch{
		Epoch: r.Epoch, StartedAt: r.StartedAt.Std(), EndedAt: r.EndedAt.Std(), Dimensions: make(map[string]EpochUse, len(r.Dimensions)),
		Breaches: r.Breaches, SoftBreaches: r.SoftBreaches,
	}
	for name, use := range r.Dimensions {
		epoch.Dimensions[name] = EpochUse(use)
	}
	return epoch
}

func spendOf(r engine.SpendRow) BudgetSpend {
	return BudgetSpend{Epoch: r.Epoch, ExecutionID: idOf(r.ExecutionID), Used: r.Used, Total: r.Total}
}

// keyed gives a report that brings no key one before its first try, so that a second try does not count again.
func (u Usage) keyed(c clock.Clock) (keyed Usage, minted bool) {
	if u.DedupKey == "" {
		u.DedupKey, minted = mintUUID(c).String(), true
	}
	return u, minted
}

// usageReceiptOf shows what came of a report. Under a key that was minted for the call a repeat is a further try of it.
func usageReceiptOf(o core.UsageOutcome, minted bool) UsageReceipt {
	r := UsageReceipt{Outcome: o.Outcome, Repeated: o.Repeated && !minted, Applied: o.Applied, Action: o.Action, Remaining: remainingOf(o.Remaining)}
	for _, breach := range o.All {
		r.All = append(r.All, UsageBreach{
			Budget: breach.Budget.String(), Dimension: breach.Dimension, Used: breach.Used, Reserved: breach.Reserved, Hard: breach.Hard,
			Attempted: breach.Attempted, Overrun: breach.Overrun, Soft: breach.Soft,
		})
	}
	if len(r.All) > 0 {
		r.UsageBreach = r.All[0]
	}
	return r
}

func remainingOf(left map[core.UUID]map[string]int64) map[string]map[string]int64 {
	if len(left) == 0 {
		return nil
	}
	shown := make(map[string]map[string]int64, len(left))
	for id, amounts := range left {
		shown[id.String()] = amounts
	}
	return shown
}
