package core

import (
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Bounds of a definition (section 1).
const (
	maxBudgetLevels     = 8
	maxBudgetDimensions = 32
	minResetEvery       = base.Minute
	maxResetEvery       = base.MaxAhead

	DefaultApprovalTimeout = 7 * base.Day
)

// BudgetDefinition is the argument of create_budget (section 1).
type BudgetDefinition struct {
	ID          base.UUID               `json:"budget_id,omitzero"` // the caller's; absent: minted
	Name        string                  `json:"name"`
	Scope       BudgetScope             `json:"scope,omitzero"`    // default: none
	Parent      string                  `json:"parent,omitempty"`  // id or name of another budget of the namespace; "": none
	Dimensions  map[string]BudgetLimits `json:"dimensions"`        // 1..32
	Reset       BudgetReset             `json:"reset,omitzero"`    // default: never
	OnHard      string                  `json:"on_hard,omitempty"` // default: block_new
	OnLeaseLoss string                  `json:"on_lease_loss,omitempty"`
	Approval    BudgetApproval          `json:"approval,omitzero"`
}

// BudgetLimits are the limits of a dimension; nil means no limit.
type BudgetLimits struct {
	Hard           *int64 `json:"hard,omitempty"`
	Soft           *int64 `json:"soft,omitempty"`
	DefaultReserve *int64 `json:"default_reserve,omitempty"`
}

func invalidBudget(field, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidBudget, format, args...).WithField(field)
}

func refuseBudget(field, why string) error {
	if why == "" {
		return nil
	}
	return invalidBudget(field, "%s", why)
}

// Normalize fills in the defaults and checks everything that does not depend on state: invalid_budget with the field.
func (d *BudgetDefinition) Normalize() error {
	if err := refuseBudget("name", base.CheckKeyText(d.Name)); err != nil {
		return err
	}
	if err := d.Scope.normalize(); err != nil {
		return err
	}
	if err := refuseBudget("parent", base.CheckPlain(d.Parent, 0, 128)); err != nil {
		return err
	}
	if err := checkBudgetDimensions(d.Dimensions); err != nil {
		return err
	}
	if err := d.Reset.normalize(); err != nil {
		return err
	}
	if err := normalizeActions(&d.OnHard, &d.OnLeaseLoss); err != nil {
		return err
	}
	return d.Approval.normalize(d.Dimensions)
}

// normalize writes ids in one form, so that equal scopes have equal texts.
func (s *BudgetScope) normalize() error {
	const field = "scope.value"
	switch s.Type {
	case "", ScopeNone, ScopeNamespace:
		if s.Value != "" {
			return invalidBudget(field, "this scope has no value")
		}
		if s.Type == "" {
			s.Type = ScopeNone
		}
		return nil
	case ScopeLane:
		return refuseBudget(field, base.CheckGraphic(s.Value, 64))
	case ScopeFlow, ScopeExecution:
		id, err := base.ParseID(s.Value)
		if err != nil {
			return invalidBudget(field, "%s is not an id", base.QuoteID(s.Value))
		}
		s.Value = id.UUID.String()
		return nil
	case ScopeTag:
		key, value, found := strings.Cut(s.Value, "=")
		if !found {
			return invalidBudget(field, "must be key=value")
		}
		if err := base.CheckTag(key, value); err != nil {
			return invalidBudget(field, "is no tag: %w", err)
		}
		return nil
	default:
		return invalidBudget("scope.type", "%q is not a scope", base.CutText(s.Type, 80)).
			WithHint("use namespace, lane, flow, execution, tag or none")
	}
}

func checkBudgetDimensions(dimensions map[string]BudgetLimits) error {
	switch n := len(dimensions); {
	case n == 0:
		return invalidBudget("dimensions", "at least one is required")
	case n > maxBudgetDimensions:
		return invalidBudget("dimensions", "%d dimensions, at most %d are allowed", n, maxBudgetDimensions)
	}
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		at := base.FieldUnder("dimensions", name)
		if err := refuseBudget(at, base.CheckDimensionText(name)); err != nil {
			return err
		}
		if err := dimensions[name].check(at); err != nil {
			return err
		}
	}
	return nil
}

// check: hard 1..2^53-1, soft 1..hard, default_reserve 0..hard. A limit of 0 is invalid: to stop admission at once, close the budget.
func (l BudgetLimits) check(at string) error {
	most := int64(maxAmount)
	if l.Hard != nil {
		if *l.Hard < 1 || *l.Hard > maxAmount {
			return invalidBudget(at+".hard", "must be in 1..%d", int64(maxAmount))
		}
		most = *l.Hard
	}
	if l.Soft != nil && (*l.Soft < 1 || *l.Soft > most) {
		return invalidBudget(at+".soft", "must be in 1..%d", most)
	}
	if l.DefaultReserve != nil && (*l.DefaultReserve < 0 || *l.DefaultReserve > most) {
		return invalidBudget(at+".default_reserve", "must be in 0..%d", most)
	}
	return nil
}

func normalizeActions(onHard, onLeaseLoss *string) error {
	switch *onHard {
	case "":
		*onHard = OnHardBlockNew
	case OnHardBlockNew, OnHardFail, OnHardSuspendForApproval, OnHardCancelRunning:
	default:
		return invalidBudget("on_hard", "%q is not an action", base.CutText(*onHard, 80)).
			WithHint("use block_new, fail, suspend_for_approval or cancel_running")
	}
	switch *onLeaseLoss {
	case "":
		*onLeaseLoss = OnLossRelease
	case OnLossRelease, OnLossForfeit:
	default:
		return invalidBudget("on_lease_loss", "%q is neither release nor forfeit", base.CutText(*onLeaseLoss, 80))
	}
	return nil
}

// normalize fills in the defaults of an approval. A raise requires a limit that can be raised.
func (a *BudgetApproval) normalize(dimensions map[string]BudgetLimits) error {
	switch {
	case a.TimeoutMS == 0:
		a.TimeoutMS = DefaultApprovalTimeout
	case a.TimeoutMS < 0 || a.TimeoutMS > maxSuspendTimeout:
		return invalidBudget("approval.timeout_ms", "must be in 1..%d", maxSuspendTimeout)
	}
	switch {
	case a.TimeoutBehavior == "":
		a.TimeoutBehavior = BehaviorFail
	case !slices.Contains(timeoutBehaviors, a.TimeoutBehavior):
		return invalidBudget("approval.timeout_behavior", "%q is not a behavior", base.CutText(a.TimeoutBehavior, 80)).
			WithHint("use %s", strings.Join(timeoutBehaviors, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(a.DefaultRaise)) {
		at := base.FieldUnder("approval.default_raise", name)
		if dimensions[name].Hard == nil {
			return invalidBudget(at, "there is no such dimension with a hard limit")
		}
		if amount := a.DefaultRaise[name]; amount < 1 || amount > maxAmount {
			return invalidBudget(at, "must be in 1..%d", int64(maxAmount))
		}
	}
	return nil
}
