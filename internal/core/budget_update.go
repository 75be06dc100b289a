package core

import (
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The states of a budget.
const (
	BudgetActive = "active"
	BudgetClosed = "closed"
)

// State returns the word for the state.
func (b *Budget) State() string {
	if b.Closed {
		return BudgetClosed
	}
	return BudgetActive
}

// BudgetUpdate is the argument of update_budget (B4). Absent fields are left unchanged.
type BudgetUpdate struct {
	ExpectedRevision *int64 // nil: any
	Name             *string
	Dimensions       map[string]DimensionUpdate
	Reset            *BudgetReset
	OnHard           *string
	OnLeaseLoss      *string
	Approval         *BudgetApproval
}

// DimensionUpdate changes a dimension or adds it.
type DimensionUpdate struct {
	Remove         bool
	Hard           LimitChange
	Soft           LimitChange
	DefaultReserve LimitChange
}

// LimitChange sets a limit or, with a nil value, removes it.
type LimitChange struct {
	Set   bool
	Value *int64
}

func (c LimitChange) apply(to **int64) {
	if c.Set {
		*to = copyAmount(c.Value)
	}
}

// Update changes the definition of a budget. The caller must check that the name is free. Errors: budget_not_found, stale_version, invalid_budget,
// limit_below_usage, budget_in_use.
func (b *Books) Update(fx *Effects, id base.UUID, u BudgetUpdate) (changed bool, err error) {
	budget, err := b.toChange(fx, id, u.ExpectedRevision)
	if err != nil {
		return false, err
	}
	d := budget.Definition()
	u.applyTo(&d)
	if err := d.Normalize(); err != nil {
		return false, err
	}
	if err := budget.checkUpdate(&d); err != nil {
		return false, err
	}
	fields := budget.differing(&d)
	if len(fields) == 0 {
		return false, nil
	}
	b.own(id).redefine(fx, &d, fields)
	b.free(id)
	return true, nil
}

// toChange returns a budget that may be changed: budget_not_found, stale_version.
func (b *Books) toChange(fx *Effects, id base.UUID, expected *int64) (*Budget, error) {
	budget := b.settled(fx, id)
	if budget == nil {
		return nil, BudgetNotFound(id.String())
	}
	if expected != nil && *expected != budget.Revision {
		return nil, base.Errorf(base.CodeStaleVersion, "the budget was changed meanwhile").WithField("revision").With("revision", budget.Revision).
			WithHint("look at the budget again and decide anew")
	}
	return budget, nil
}

// applyTo applies the update to a definition.
func (u *BudgetUpdate) applyTo(d *BudgetDefinition) {
	if u.Name != nil {
		d.Name = *u.Name
	}
	if u.Reset != nil {
		d.Reset = *u.Reset
	}
	if u.OnHard != nil {
		d.OnHard = *u.OnHard
	}
	if u.OnLeaseLoss != nil {
		d.OnLeaseLoss = *u.OnLeaseLoss
	}
	if u.Approval != nil {
		d.Approval = u.Approval.clone()
	}
	for name, change := range u.Dimensions {
		if change.Remove {
			delete(d.Dimensions, name)
			delete(d.Approval.DefaultRaise, name)
			continue
		}
		limits := d.Dimensions[name]
		change.Hard.apply(&limits.Hard)
		change.Soft.apply(&limits.Soft)
		change.DefaultReserve.apply(&limits.DefaultReserve)
		d.Dimensions[name] = limits
	}
}

// checkUpdate refuses a limit below what is used and reserved, and the removal of a dimension with reservations (B4). A limit that stays or grows
// is never too low, even if what is used exceeds it by a raise.
func (b *Budget) checkUpdate(d *BudgetDefinition) error {
	for _, name := range b.dimensionNames() {
		now := b.Dimensions[name]
		limits, kept := d.Dimensions[name]
		switch {
		case !kept && now.Reserved > 0:
			return base.Errorf(base.CodeBudgetInUse, "%d of %s are reserved", now.Reserved, name).WithField("dimensions."+name).
				With("reserved", now.Reserved).WithHint("wait until the work that reserved it has ended")
		case !kept || limits.Hard == nil || now.Hard != nil && *limits.Hard >= *now.Hard:
		case *limits.Hard < now.Used+now.Reserved:
			return base.Errorf(base.CodeLimitBelowUsage, "%d of %s are used and reserved", now.Used+now.Reserved, name).
				WithField("dimensions."+name+".hard").With("minimum", now.Used+now.Reserved).WithHint("to stop new work at once, close the budget")
		}
	}
	return nil
}

// differing names the fields in which the definition differs, in order.
func (b *Budget) differing(d *BudgetDefinition) []string {
	var fields []string
	note := func(name string, differs bool) {
		if differs {
			fields = append(fields, name)
		}
	}
	now := b.Definition()
	note("name", now.Name != d.Name)
	names := maps.Clone(now.Dimensions)
	maps.Copy(names, d.Dimensions)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := now.Dimensions[name]
		is, has := d.Dimensions[name]
		note("dimensions."+name, had != has || !was.equal(is))
	}
	note("reset", now.Reset != d.Reset)
	note("on_hard", now.OnHard != d.OnHard)
	note("on_lease_loss", now.OnLeaseLoss != d.OnLeaseLoss)
	note("approval", now.Approval.TimeoutMS != d.Approval.TimeoutMS || now.Approval.TimeoutBehavior != d.Approval.TimeoutBehavior ||
		!maps.Equal(now.Approval.DefaultRaise, d.Approval.DefaultRaise))
	return fields
}

func (l BudgetLimits) equal(o BudgetLimits) bool {
	same := func(a, b *int64) bool { return (a == nil) == (b == nil) && valueOr(a) == valueOr(b) }
	return same(l.Hard, o.Hard) && same(l.Soft, o.Soft) && same(l.DefaultReserve, o.DefaultReserve)
}

// redefine sets the new definition. New dimensions start at 0; removing a limit also removes its raises.
func (b *Budget) redefine(fx *Effects, d *BudgetDefinition, fields []string) {
	b.Name, b.OnHard, b.OnLeaseLoss, b.Approval = d.Name, d.OnHard, d.OnLeaseLoss, d.Approval
	if b.Reset != d.Reset {
		b.Reset = d.Reset
		b.NextResetAt = d.Reset.next(fx.Now)
	}
	maps.DeleteFunc(b.Dimensions, func(name string, _ *BudgetDimension) bool {
		_, kept := d.Dimensions[name]
		if !kept {
			if b.Removed == nil {
				b.Removed = map[string]int{}
			}
			b.Removed[name]++
		}
		return !kept
	})
	for name, limits := range d.Dimensions {
		if b.Dimensions[name] == nil {
			b.Dimensions[name] = &BudgetDimension{}
		}
		dimension := b.Dimensions[name]
		dimension.limit(limits)
		if limits.Hard == nil {
			dimension.Raised, dimension.Carried = 0, 0
		}
		dimension.shrink()
	}
	b.revise(fx, "budget.updated", fields)
}

// revise counts a change of the definition and emits it.
func (b *Budget) revise(fx *Effects, kind string, fields []string) {
	b.Revision++
	b.UpdatedAt = fx.Now
	b.emitChange(fx, kind, fields)
}

// Close makes the budget admit no executions and refuse charges (B5). changed is false if it is already closed. Errors: budget_not_found,
// stale_version.
func (b *Books) Close(fx *Effects, id base.UUID, expected *int64) (changed bool, err error) {
	return b.turn(fx, id, expected, true, "budget.closed")
}

// Reopen undoes Close.
func (b *Books) Reopen(fx *Effects, id base.UUID, expected *int64) (changed bool, err error) {
	return b.turn(fx, id, expected, false, "budget.reopened")
}

func (b *Books) turn(fx *Effects, id base.UUID, expected *int64, closed bool, kind string) (bool, error) {
	budget, err := b.toChange(fx, id, expected)
	if err != nil || budget.Closed == closed {
		return false, err
	}
	budget = b.own(id)
	budget.Closed = closed
	budget.revise(fx, kind, nil)
	if !closed {
		b.free(id)
	}
	return true, nil
}

// DeleteFacts are the facts outside the record that decide whether a budget may be deleted.
type DeleteFacts struct {
	Expected *int64
	Children bool // another budget has it as its parent
	Named    bool // an execution that is not terminal names it
}

// Delete deletes a budget; its history is kept. Errors: budget_not_found, stale_version, budget_in_use.
func (b *Books) Delete(fx *Effects, id base.UUID, f DeleteFacts) error {
	budget, err := b.toChange(fx, id, f.Expected)
	if err != nil {
		return err
	}
	var why []string
	if f.Children {
		why = append(why, "other budgets are below it")
	}
	if f.Named {
		why = append(why, "executions name it")
	}
	if budget.LiveHolds > 0 {
		why = append(why, "leases are charged to it")
	}
	if len(why) > 0 {
		return base.Errorf(base.CodeBudgetInUse, "%s", strings.Join(why, ", ")).With("live_holds", budget.LiveHolds).
			WithHint("close the budget, and delete it when the work is done")
	}
	budget.emitChange(fx, "budget.deleted", nil)
	b.replace(id, nil)
	b.free(id)
	return nil
}
