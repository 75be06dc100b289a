package core

import (
	"errors"
	"maps"
	"slices"
)

// maxPolicyBudgets is the maximum number of budgets that a policy may define (B3).
const maxPolicyBudgets = 4

// budgets reads the definitions of budgets that are made with the execution and have it as their scope (B3). A budget without a name is named after
// the execution.
func (r *policyReader) budgets(into *[]BudgetDefinition) error {
	return r.array(maxPolicyBudgets, func() error {
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
	return r.object(func(key string) error {
		switch key {
		case "budget_id":
			return r.uuid(&d.ID)
		case "name":
			return r.checked(&d.Name, checkKeyText)
		case "parent":
			return r.checked(&d.Parent, checkKeyText)
		case "dimensions":
			return r.dimensions(&d.Dimensions)
		case "reset":
			return r.reset(&d.Reset)
		case "on_hard":
			return r.word(&d.OnHard, OnHardBlockNew, OnHardFail, OnHardSuspendForApproval, OnHardCancelRunning)
		case "on_lease_loss":
			return r.word(&d.OnLeaseLoss, OnLossRelease, OnLossForfeit)
		case "approval":
			return r.approval(&d.Approval)
		case "scope":
			return r.refuse("is the execution itself, and cannot be given")
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) uuid(into *UUID) error {
	return r.checked(new(string), func(text string) (why string) {
		id, ok := ParseUUID(text)
		if *into = id; !ok {
			return "must be a UUID"
		}
		return ""
	})
}

func (r *policyReader) dimensions(into *map[string]BudgetLimits) error {
	limits := map[string]BudgetLimits{}
	*into = limits
	return r.object(func(dimension string) error {
		var l BudgetLimits
		err := r.object(func(key string) error {
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
	return r.integer(*into, 0, maxAmount)
}

func (r *policyReader) reset(into *BudgetReset) error {
	return r.object(func(key string) error {
		switch key {
		case "type":
			return r.word(&into.Type, ResetNone, ResetInterval, ResetCalendar)
		case "every_ms":
			return r.integer(&into.EveryMS, 0, maxResetEvery)
		case "anchor_at":
			return r.moment(&into.AnchorAt)
		case "unit":
			return r.word(&into.Unit, UnitHour, UnitDay, UnitWeek, UnitMonth)
		case "timezone":
			return r.checked(&into.Timezone, checkKeyText)
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) moment(into *Time) error {
	return r.checked(new(string), func(text string) (why string) {
		if into.UnmarshalJSON(appendQuoted(nil, text)) != nil {
			return "must be a moment in RFC 3339"
		}
		return ""
	})
}

func (r *policyReader) approval(into *BudgetApproval) error {
	return r.object(func(key string) error {
		switch key {
		case "timeout_ms":
			return r.integer(&into.TimeoutMS, 1, maxSuspendTimeout)
		case "timeout_behavior":
			return r.word(&into.TimeoutBehavior, timeoutBehaviors...)
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
	var wrong *Error
	if err := checked.Normalize(); errors.As(err, &wrong) {
		r.path = append(r.path, wrong.Field)
		return r.refuse("%s", wrong.Message)
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
	w.name(name)
	w.text = append(w.text, '[')
	for i := range all {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.text = append(w.text, '{')
		w.budget(&all[i])
		w.shut()
	}
	w.text = append(w.text, ']')
}

func (w *policyWriter) budget(d *BudgetDefinition) {
	w.open("approval")
	if len(d.Approval.DefaultRaise) > 0 {
		w.raw("default_raise", amountsText(d.Approval.DefaultRaise))
	}
	w.str("timeout_behavior", d.Approval.TimeoutBehavior)
	w.num("timeout_ms", d.Approval.TimeoutMS)
	w.shut()
	if !d.ID.IsZero() {
		w.uuid("budget_id", d.ID)
	}
	w.open("dimensions")
	for _, dimension := range slices.Sorted(maps.Keys(d.Dimensions)) {
		w.limits(dimension, d.Dimensions[dimension])
	}
	w.shut()
	w.strIf("name", d.Name)
	w.str("on_hard", d.OnHard)
	w.str("on_lease_loss", d.OnLeaseLoss)
	w.strIf("parent", d.Parent)
	if d.Reset.Type == "" {
		return
	}
	w.open("reset")
	w.moment("anchor_at", d.Reset.AnchorAt)
	w.optional("every_ms", d.Reset.EveryMS)
	w.strIf("timezone", d.Reset.Timezone)
	w.str("type", d.Reset.Type)
	w.strIf("unit", d.Reset.Unit)
	w.shut()
}

func (w *policyWriter) limits(dimension string, l BudgetLimits) {
	w.open(dimension)
	for _, part := range []struct {
		name  string
		value *int64
	}{{"default_reserve", l.DefaultReserve}, {"hard", l.Hard}, {"soft", l.Soft}} {
		if part.value != nil {
			w.num(part.name, *part.value)
		}
	}
	w.shut()
}
