package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/mint"
)

// The dimensions with a fixed meaning. Time is measured by the engine: reporting it is refused as reserved_dimension.
const (
	InputTokens  = api.InputTokens
	OutputTokens = api.OutputTokens
	CostMicros   = api.CostMicros // millionths of the currency
	WallMillis   = api.WallMillis
)

// Usage is an amount that work has used, or is about to use.
type Usage = api.Usage

// Charge is usage that is booked without a lease.
type Charge = api.Charge

// The outcomes of a report of usage.
const (
	UsageOK         = api.UsageOK
	UsageSoftBreach = api.UsageSoftBreach // a soft limit is exceeded
	UsageHardBreach = api.UsageHardBreach // a hard limit would be exceeded, and nothing was booked; or was exceeded by usage that was spent already
	UsageApplied    = api.UsageApplied    // booked before, under the same DedupKey; FirstOutcome is the outcome then
)

// The actions of a hard breach on the reporting work.
const (
	ActionNone      = api.ActionNone
	ActionFailed    = api.ActionFailed
	ActionSuspended = api.ActionSuspended
	ActionCancelled = api.ActionCancelled
)

// UsageReceipt is the answer to a report of usage.
type UsageReceipt = api.UsageReceipt

// UsageBreach is an exceeded limit; zero if none was.
type UsageBreach = api.UsageBreach

// ExecutionUsage is the total usage of an execution, with or without budgets.
type ExecutionUsage = api.ExecutionUsage

// UsageOptions select the usage to return.
type UsageOptions struct {
	Attempt *int // its index; nil: all attempts
}

// ApplicableBudgets are the budgets that decide whether an execution may start.
type ApplicableBudgets = api.ApplicableBudgets

// BudgetRefusal identifies the budget that has no room.
type BudgetRefusal = api.BudgetRefusal

// ExecutionBudget is a budget that an execution is charged to.
type ExecutionBudget = api.ExecutionBudget

// keyedUsage adds a key to a report without one before its first try, so that a second try does not count again.
func keyedUsage(u Usage, c clock.Clock) (keyed Usage, minted bool) {
	if u.DedupKey == "" {
		u.DedupKey, minted = mint.Key(c), true
	}
	return u, minted
}

// amounts returns an empty map instead of nil.
func amounts(given map[string]int64) map[string]int64 {
	if given == nil {
		return map[string]int64{}
	}
	return given
}
