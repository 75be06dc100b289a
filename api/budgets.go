package api

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Budget is the definition of a budget. Values out of range are invalid_budget with the field.
type Budget struct {
	Name string `json:"name" required:"true" doc:"Name, unique in the namespace."` // 1..128 characters
	// Scope is what it covers. The zero value covers only executions that name it in BudgetIDs. It cannot be changed.
	Scope  BudgetScope `json:"scope,omitzero" doc:"What it covers; if absent, only executions that name it."`
	ID     string      `json:"budget_id,omitempty" doc:"Id chosen by the caller, which makes the create repeatable."` // a UUID; "": generated
	Parent string      `json:"parent,omitempty" doc:"Id or name of the parent budget."`                               // at most 8 levels; "": none. It cannot be changed
	// Dimensions are what it counts, 1 to 32: InputTokens, OutputTokens, CostMicros, WallMillis, and names of your own (a-z, 0-9,
	// _).
	Dimensions  map[string]BudgetLimits `json:"dimensions" required:"true" doc:"What it counts, 1 to 32 dimensions: limits by name."`
	Reset       BudgetReset             `json:"reset,omitzero" doc:"When it resets; never if absent."`
	OnHard      HardAction              `json:"on_hard,omitempty" doc:"What a breach of a hard limit does: block_new (default), fail, suspend_for_approval or cancel_running."`
	OnLeaseLoss LossAction              `json:"on_lease_loss,omitempty" doc:"What happens to the reservation of a lost lease: release (default) or forfeit."`
	Approval    BudgetApproval          `json:"approval,omitzero" doc:"How suspend_for_approval asks."`
}

// BudgetDefinition is a budget that is created with an execution or a flow, and covers it. Its fields are those of Budget.
type BudgetDefinition struct {
	Name        string                  `json:"name,omitempty" doc:"Name, unique in the namespace; derived from the execution's id if absent."`
	ID          string                  `json:"budget_id,omitempty" doc:"Id chosen by the caller, which makes the create repeatable."`
	Parent      string                  `json:"parent,omitempty" doc:"Id or name of the parent budget."`
	Dimensions  map[string]BudgetLimits `json:"dimensions" required:"true" doc:"What it counts, 1 to 32 dimensions: limits by name."`
	Reset       BudgetReset             `json:"reset,omitzero" doc:"When it resets; never if absent."`
	OnHard      HardAction              `json:"on_hard,omitempty" doc:"What a breach of a hard limit does: block_new (default), fail, suspend_for_approval or cancel_running."`
	OnLeaseLoss LossAction              `json:"on_lease_loss,omitempty" doc:"What happens to the reservation of a lost lease: release (default) or forfeit."`
	Approval    BudgetApproval          `json:"approval,omitzero" doc:"How suspend_for_approval asks."`
}

// BudgetLimits are the limits of a dimension. The zero value counts without a limit.
type BudgetLimits struct {
	Hard           int64 `json:"hard,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Hard limit, at least 1; no limit if absent."`             // 0: no limit
	Soft           int64 `json:"soft,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Soft limit, at least 1; exceeding it is reported."`       // at most Hard; 0: none
	DefaultReserve int64 `json:"default_reserve,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Reserved for executions without an estimate."` // at most Hard

	zeroHard, zeroSoft bool // JSON contained a 0, which is refused
}

// CheckJSON records which limits were given as 0. It does not refuse them: in a batch only their item must fail, not the whole
// request.
func (l *BudgetLimits) CheckJSON(given []string) jsonx.Errors {
	l.zeroHard = l.Hard == 0 && slices.Contains(given, "hard")
	l.zeroSoft = l.Soft == 0 && slices.Contains(given, "soft")
	return nil
}

// checkLimits refuses a limit that was 0 in JSON. If there are several, it always reports the same one.
func checkLimits(dimensions map[string]BudgetLimits) error {
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		at := base.FieldUnder("dimensions", name)
		switch limits := dimensions[name]; {
		case limits.Hard == 0 && limits.zeroHard:
			return zeroLimit(at + ".hard")
		case limits.Soft == 0 && limits.zeroSoft:
			return zeroLimit(at + ".soft")
		}
	}
	return nil
}

func zeroLimit(field string) error {
	return Errorf(string(base.CodeInvalidBudget), "a limit must be at least 1").At(field, "omit it for no limit; to stop at once, close the budget")
}

// CheckLimits refuses a limit that was 0 in JSON with invalid_budget; in Go 0 means no limit.
func (b *Budget) CheckLimits() error { return checkLimits(b.Dimensions) }

// CheckLimits refuses a limit that was 0 in JSON with invalid_budget; in Go 0 means no limit.
func (b *BudgetDefinition) CheckLimits() error { return checkLimits(b.Dimensions) }

// BudgetScope is what a budget covers.
type BudgetScope struct {
	Type  string `json:"type" required:"true" doc:"namespace, lane, flow, execution, tag or none."` // "": none
	Value string `json:"value,omitempty" doc:"Name of the lane, id of the flow or execution, key=value of the tag."`
}

// BudgetReset is when a budget resets: in intervals, or by the calendar. The zero value: never.
type BudgetReset struct {
	Type     string        `json:"type" required:"true" doc:"none, interval or calendar."`                                     // "": that of the fields that are set
	Every    time.Duration `json:"every_ms,omitempty" maximum:"9000000000000" doc:"For interval: its length, at least 60000."` // at least a minute
	AnchorAt time.Time     `json:"anchor_at,omitzero" doc:"For interval: start of the intervals."`                             // zero: 1970-01-01 UTC
	Unit     string        `json:"unit,omitempty" doc:"For calendar: hour, day, week (from Monday) or month."`                 // instead of Every
	Timezone string        `json:"timezone,omitempty" doc:"For calendar: IANA time zone; UTC if absent."`
}

// Kind returns Type, or the type that the other fields imply.
func (r BudgetReset) Kind() string {
	switch {
	case r.Type != "":
		return r.Type
	case r.Every != 0 || !r.AnchorAt.IsZero():
		return base.ResetInterval
	case r.Unit != "" || r.Timezone != "":
		return base.ResetCalendar
	default:
		return base.ResetNone
	}
}

// Check refuses fields that the type of reset does not have with invalid_budget, because they would have no effect.
func (r BudgetReset) Check() error {
	kind := r.Kind()
	byInterval, byCalendar := r.Every != 0 || !r.AnchorAt.IsZero(), r.Unit != "" || r.Timezone != ""
	if byInterval && kind != base.ResetInterval || byCalendar && kind != base.ResetCalendar {
		return Errorf(string(base.CodeInvalidBudget), "a reset is either an interval or a calendar unit").At("reset", "give every_ms and anchor_at, or unit and timezone")
	}
	return nil
}

// HardAction is what the breach of a hard limit does.
type HardAction string

// Actions on a hard breach.
const (
	BlockNew           HardAction = "block_new"            // new work waits for capacity, running work continues
	FailReporter       HardAction = "fail"                 // the reporting execution fails, without a retry
	SuspendForApproval HardAction = "suspend_for_approval" // the reporting execution waits until an operator raises the limit or refuses
	CancelRunning      HardAction = "cancel_running"       // all running executions that hold a reservation are cancelled
)

// LossAction is what happens to the reservation of a lost lease.
type LossAction string

// Actions on the loss of a lease.
const (
	ReleaseReserved LossAction = "release" // it is released
	ForfeitReserved LossAction = "forfeit" // it counts as used
)

// BudgetApproval configures SuspendForApproval.
type BudgetApproval struct {
	Timeout   time.Duration   `json:"timeout_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"Default 604800000."` // 0: 7 days
	OnTimeout TimeoutBehavior `json:"timeout_behavior,omitempty" doc:"As that of a suspension; default fail."`         // "": FailOnTimeout
	// DefaultRaise is by how much an approval raises the limits unless it contains amounts.
	DefaultRaise map[string]int64 `json:"default_raise,omitempty" doc:"By how much an approval raises the limits unless it contains amounts, by dimension."`
}

// BudgetUpdate changes a budget. Nil fields are not changed.
type BudgetUpdate struct {
	Name             *string                `json:"name,omitempty" doc:"New name."`
	Dimensions       map[string]LimitChange `json:"dimensions,omitempty" doc:"Limits to change, by dimension; new dimensions are created."`
	RemoveDimensions []string               `json:"remove_dimensions,omitempty" doc:"Dimensions to remove."`
	Reset            *BudgetReset           `json:"reset,omitempty" doc:"When it resets."`
	OnHard           *HardAction            `json:"on_hard,omitempty" doc:"What a breach of a hard limit does."`
	OnLeaseLoss      *LossAction            `json:"on_lease_loss,omitempty" doc:"What happens to the reservation of a lost lease."`
	Approval         *BudgetApproval        `json:"approval,omitempty" doc:"How suspend_for_approval asks."`
}

// LimitChange changes the limits of a dimension. Nil fields are not changed.
type LimitChange struct {
	Hard           *int64   `json:"hard,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Hard limit, at least 1; no limit if absent."`
	Soft           *int64   `json:"soft,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Soft limit, at least 1; exceeding it is reported."`
	DefaultReserve *int64   `json:"default_reserve,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Reserved for executions without an estimate."`
	Remove         []string `json:"remove,omitempty" doc:"Limits to remove: hard, soft, default_reserve."`
}

// MarshalJSON writes the definition as the HTTP API accepts it.
func (b Budget) MarshalJSON() ([]byte, error) {
	b.Dimensions = notNil(b.Dimensions)
	return jsonx.Marshal(&b)
}

// UnmarshalJSON reads a definition as strictly as the HTTP API does: its errors have codes, and the path of the invalid field.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument, invalid_budget for a limit of 0.
func (b *Budget) UnmarshalJSON(text []byte) error {
	var read Budget
	if err := cmp.Or(readRequest(text, &read), read.CheckLimits()); err != nil {
		return err
	}
	*b = read
	return nil
}

// MarshalJSON writes the definition as the HTTP API accepts it.
func (b BudgetDefinition) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (b BudgetDefinition) AppendJSON(text []byte) ([]byte, error) {
	type fields BudgetDefinition
	shown := fields(b)
	shown.Dimensions = notNil(b.Dimensions)
	return jsonx.Append(text, &shown)
}

// UnmarshalJSON reads a definition as strictly as the HTTP API does, with the codes of Budget.UnmarshalJSON.
func (b *BudgetDefinition) UnmarshalJSON(text []byte) error {
	var read BudgetDefinition
	if err := cmp.Or(readRequest(text, &read), read.CheckLimits()); err != nil {
		return err
	}
	*b = read
	return nil
}

// MarshalJSON writes the limits as the HTTP API accepts them.
func (l BudgetLimits) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes. A limit that was read as 0 is written as 0, so that every reader refuses it.
func (l BudgetLimits) AppendJSON(text []byte) ([]byte, error) {
	return jsonx.Append(text, &LimitChange{
		Hard: limitGiven(l.Hard, l.zeroHard), Soft: limitGiven(l.Soft, l.zeroSoft), DefaultReserve: limitGiven(l.DefaultReserve, false),
	})
}

func limitGiven(n int64, zero bool) *int64 {
	if n == 0 && !zero {
		return nil
	}
	return &n
}

// MarshalJSON writes the reset as the HTTP API accepts it, with its type.
func (r BudgetReset) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (r BudgetReset) AppendJSON(text []byte) ([]byte, error) {
	type fields BudgetReset
	shown := fields(r)
	shown.Type = r.Kind()
	return jsonx.Append(text, &shown)
}

// UnmarshalJSON reads a reset as strictly as the HTTP API does.
func (r *BudgetReset) UnmarshalJSON(text []byte) error {
	*r = BudgetReset{}
	return readRequest(text, r)
}

// MarshalJSON writes the approval as the HTTP API accepts it.
func (a BudgetApproval) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&a) }

// UnmarshalJSON reads it as strictly as the HTTP API does.
func (a *BudgetApproval) UnmarshalJSON(text []byte) error {
	*a = BudgetApproval{}
	return readRequest(text, a)
}

// MarshalJSON writes the change as the HTTP API accepts it.
func (u BudgetUpdate) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&u) }

// UnmarshalJSON reads a change as strictly as the HTTP API does.
func (u *BudgetUpdate) UnmarshalJSON(text []byte) error {
	*u = BudgetUpdate{}
	return readRequest(text, u)
}

// notNil returns the map, or an empty one if it is nil, so that it is an object in JSON.
func notNil[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
