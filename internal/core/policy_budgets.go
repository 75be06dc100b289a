package core

import (
	"errors"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// maxPolicyBudgets is the maximum number of budgets that a policy may define (B3).
const maxPolicyBudgets = 4

// budgets reads the definitions of budgets that are made with the execution and have it as their scope (B3). A budget without a name is named after
// the execution.
func (r *policyReader) budgets(into *[]BudgetDefinition) error {
	return r.Array(maxPolicyBudgets, func() error {
		var d BudgetDefinition
		if err := r.budget(&d); err != nil {
			return err
		}
		if err := r.normalBudget(&d); err != nil {
			return err
		}
		*into = append(*into, d)
		return nil
	})
}

func (r *policyReader) budget(d *BudgetDefinition) error {
	return r.Object(func(key string) error {
		switch key {
		case "budget_id":
			return r.uuid(&d.ID)
		case "name":
			return r.Checked(&d.Name, base.CheckKeyText)
		case "parent":
			return r.Checked(&d.Parent, base.CheckKeyText)
		case "dimensions":
			return r.dimensions(&d.Dimensions)
		case "reset":
			return r.reset(&d.Reset)
		case "on_hard":
			return r.Word(&d.OnHard, OnHardBlockNew, OnHardFail, OnHardSuspendForApproval, OnHardCancelRunning)
		case "on_lease_loss":
			return r.Word(&d.OnLeaseLoss, OnLossRelease, OnLossForfeit)
		case "approval":
			return r.approval(&d.Approval)
		case "scope":
			return r.Refuse("is the execution itself, and cannot be given")
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) uuid(into *base.UUID) error {
	return r.Checked(new(string), func(text string) (why string) {
		id, ok := base.ParseUUID(text)
		if *into = id; !ok {
			return "must be a UUID"
		}
		return ""
	})
}

func (r *policyReader) dimensions(into *map[string]BudgetLimits) error {
	limits := map[string]BudgetLimits{}
	*into = limits
	return r.Object(func(dimension string) error {
		var l BudgetLimits
		err := r.Object(func(key string) error {
			switch key {
			case "hard":
				return r.limit(&l.Hard)
			case "soft":
				return r.limit(&l.Soft)
			case "default_reserve":
				return r.limit(&l.DefaultReserve)
			default:
				return r.unknown()
			}
		})
		limits[dimension] = l
		return err
	})
}

func (r *policyReader) limit(into **int64) error {
	*into = new(int64)
	return r.Integer(*into, 0, maxAmount)
}

func (r *policyReader) reset(into *BudgetReset) error {
	return r.Object(func(key string) error {
		switch key {
		case "type":
			return r.Word(&into.Type, ResetNone, ResetInterval, ResetCalendar)
		case "every_ms":
			return r.Integer(&into.EveryMS, 0, maxResetEvery)
		case "anchor_at":
			return r.moment(&into.AnchorAt)
		case "unit":
			return r.Word(&into.Unit, UnitHour, UnitDay, UnitWeek, UnitMonth)
		case "timezone":
			return r.Checked(&into.Timezone, base.CheckKeyText)
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) moment(into *base.Time) error {
	return r.Checked(new(string), func(text string) (why string) {
		if into.UnmarshalJSON(base.AppendQuoted(nil, text)) != nil {
			return "must be a moment in RFC 3339"
		}
		return ""
	})
}

func (r *policyReader) approval(into *BudgetApproval) error {
	return r.Object(func(key string) error {
		switch key {
		case "timeout_ms":
			return r.Integer(&into.TimeoutMS, 1, maxSuspendTimeout)
		case "timeout_behavior":
			return r.Word(&into.TimeoutBehavior, timeoutBehaviors...)
		case "default_raise":
			return r.estimate(&into.DefaultRaise)
		default:
			return r.unknown()
		}
	})
}

// normalBudget fills in the defaults of a definition and checks it by the rules of create_budget.
func (r *policyReader) normalBudget(d *BudgetDefinition) error {
	checked := *d
	if checked.Name == "" {
		checked.Name = "unnamed"
	}
	var wrong *base.Error
	if err := checked.Normalize(); errors.As(err, &wrong) {
		r.Path = append(r.Path, wrong.Field)
		return r.Refuse("%s", wrong.Message)
	}
	checked.Name, checked.Scope = d.Name, BudgetScope{}
	*d = checked
	return nil
}

// budgets writes the definitions with all defaults, every object sorted by key. A policy without budgets keeps the text that it had before budgets
// existed, because stored fingerprints are computed from it (L83).
func (w *policyWriter) budgets(name string, all []BudgetDefinition) {
	if len(all) == 0 {
		return
	}
	w.Name(name)
	w.Text = append(w.Text, '[')
	for i := range all {
		if i > 0 {
			w.Text = append(w.Text, ',')
		}
		w.Text = append(w.Text, '{')
		w.budget(&all[i])
		w.Shut()
	}
	w.Text = append(w.Text, ']')
}

func (w *policyWriter) budget(d *BudgetDefinition) {
	w.Open("approval")
	if len(d.Approval.DefaultRaise) > 0 {
		w.Raw("default_raise", amountsText(d.Approval.DefaultRaise))
	}
	w.Str("timeout_behavior", d.Approval.TimeoutBehavior)
	w.Num("timeout_ms", d.Approval.TimeoutMS)
	w.Shut()
	if !d.ID.IsZero() {
		w.UUID("budget_id", d.ID)
	}
	w.Open("dimensions")
	for _, dimension := range slices.Sorted(maps.Keys(d.Dimensions)) {
		w.limits(dimension, d.Dimensions[dimension])
	}
	w.Shut()
	w.StrIf("name", d.Name)
	w.Str("on_hard", d.OnHard)
	w.Str("on_lease_loss", d.OnLeaseLoss)
	w.StrIf("parent", d.Parent)
	if d.Reset.Type == "" {
		return
	}
	w.Open("reset")
	w.Moment("anchor_at", d.Reset.AnchorAt)
	w.optional("every_ms", d.Reset.EveryMS)
	w.StrIf("timezone", d.Reset.Timezone)
	w.Str("type", d.Reset.Type)
	w.StrIf("unit", d.Reset.Unit)
	w.Shut()
}

func (w *policyWriter) limits(dimension string, l BudgetLimits) {
	w.Open(dimension)
	for _, part := range []struct {
		name  string
		value *int64
	}{{"default_reserve", l.DefaultReserve}, {"hard", l.Hard}, {"soft", l.Soft}} {
		if part.value != nil {
			w.Num(part.name, *part.value)
		}
	}
	w.Shut()
}
