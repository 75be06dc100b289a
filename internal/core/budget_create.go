package core

import (
	"maps"
	"reflect"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// NewBudget makes a budget from a normalized definition. parent is the budget that it names, nil if none. Errors: invalid_budget for too many
// levels or an unknown time zone.
func NewBudget(fx *Effects, namespace string, d *BudgetDefinition, id base.UUID, parent *Budget) (*Budget, error) {
	b := &Budget{
		ID: id, Namespace: namespace, Name: d.Name, Scope: d.Scope, Dimensions: map[string]*BudgetDimension{}, Reset: d.Reset,
		OnHard: d.OnHard, OnLeaseLoss: d.OnLeaseLoss, Approval: d.Approval.clone(),
		Revision: 1, Epoch: 1, EpochStarted: fx.Now, CreatedAt: fx.Now, UpdatedAt: fx.Now,
	}
	if parent != nil {
		b.Parent = parent.ID
		b.Ancestors = append([]base.UUID{parent.ID}, parent.Ancestors...)
		if len(b.Ancestors) >= maxBudgetLevels {
			return nil, invalidBudget("parent", "at most %d levels are allowed", maxBudgetLevels)
		}
	}
	for name, limits := range d.Dimensions {
		dimension := &BudgetDimension{}
		dimension.limit(limits)
		b.Dimensions[name] = dimension
	}
	b.NextResetAt = b.Reset.next(fx.Now)
	b.emitChange(fx, "budget.created", nil)
	return b, nil
}

// limit sets the limits of the dimension.
func (d *BudgetDimension) limit(l BudgetLimits) {
	d.Hard, d.Soft, d.DefaultReserve = copyAmount(l.Hard), copyAmount(l.Soft), copyAmount(l.DefaultReserve)
}

func (d *BudgetDimension) limits() BudgetLimits {
	return BudgetLimits{copyAmount(d.Hard), copyAmount(d.Soft), copyAmount(d.DefaultReserve)}
}

func copyAmount(p *int64) *int64 {
	if p == nil {
		return nil
	}
	amount := *p
	return &amount
}

func (a BudgetApproval) clone() BudgetApproval {
	a.DefaultRaise = maps.Clone(a.DefaultRaise)
	return a
}

// clone returns a copy that shares nothing that is ever changed.
func (b *Budget) clone() *Budget {
	c := *b
	c.Dimensions = make(map[string]*BudgetDimension, len(b.Dimensions))
	for name, d := range b.Dimensions {
		dimension := *d
		c.Dimensions[name] = &dimension
	}
	c.Removed = maps.Clone(b.Removed)
	return &c
}

// Definition returns the present definition, with the parent by its id.
func (b *Budget) Definition() BudgetDefinition {
	d := BudgetDefinition{
		ID: b.ID, Name: b.Name, Scope: b.Scope, Dimensions: make(map[string]BudgetLimits, len(b.Dimensions)), Reset: b.Reset,
		OnHard: b.OnHard, OnLeaseLoss: b.OnLeaseLoss, Approval: b.Approval.clone(),
	}
	if !b.Parent.IsZero() {
		d.Parent = b.Parent.String()
	}
	for name, dimension := range b.Dimensions {
		d.Dimensions[name] = dimension.limits()
	}
	return d
}

// CheckSame returns nil if a create asks for the existing budget under the same name or id (B2). d is normalized; parent is the budget that it
// names. Errors: budget_already_exists.
func (b *Budget) CheckSame(d *BudgetDefinition, parent base.UUID) error {
	known, asked := b.Definition(), *d
	if asked.ID.IsZero() {
		asked.ID = b.ID
	}
	asked.Parent = ""
	if !parent.IsZero() {
		asked.Parent = parent.String()
	}
	raises := maps.Equal(known.Approval.DefaultRaise, asked.Approval.DefaultRaise) // absent and empty are the same
	known.Approval.DefaultRaise, asked.Approval.DefaultRaise = nil, nil
	if raises && reflect.DeepEqual(known, asked) {
		return nil
	}
	return base.Errorf(base.CodeBudgetAlreadyExists, "a budget has this name or id and another definition").
		With("budget_id", b.ID.String()).With("name", b.Name).WithHint("update the budget, or use another name")
}

// Entry returns the registry entry of the budget.
func (b *Budget) Entry() BudgetEntry {
	return BudgetEntry{ID: b.ID, Namespace: b.Namespace, Name: b.Name, Scope: b.Scope, Ancestors: b.Ancestors}
}

// DimensionView is what get_budget shows of a dimension (B39).
type DimensionView struct {
	BudgetLimits
	EffectiveHard *int64 // with temporary raises; nil: no limit
	Available     *int64 // of the effective limit; nil: no limit
	Used          int64
	Reserved      int64
	Overrun       int64
}

// View returns the view of a dimension that the budget has.
func (b *Budget) View(dimension string) DimensionView {
	d := b.Dimensions[dimension]
	v := DimensionView{BudgetLimits: d.limits(), Used: d.Used, Reserved: d.Reserved, Overrun: d.Overrun}
	if d.Hard != nil {
		hard, available := d.most(), d.room(0)
		v.EffectiveHard, v.Available = &hard, &available
	}
	return v
}

// Exhausted lists the dimensions that admit no execution, by name (B39).
func (b *Budget) Exhausted() []string {
	var names []string
	for _, name := range b.dimensionNames() {
		if d := b.Dimensions[name]; d.Hard != nil && d.room(0) <= 0 {
			names = append(names, name)
		}
	}
	return names
}

func (b *Budget) dimensionNames() []string { return slices.Sorted(maps.Keys(b.Dimensions)) }

// BudgetNotFound is the refusal for a budget that does not exist or belongs to another namespace.
func BudgetNotFound(given string) *base.Error {
	return base.Errorf(base.CodeBudgetNotFound, "there is no budget %s", base.QuoteID(given))
}
