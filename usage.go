package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/mint"
)

// The dimensions that mean the same everywhere. Time is measured by the engine: reporting it is reserved_dimension.
const (
	InputTokens  = api.InputTokens
	OutputTokens = api.OutputTokens
	CostMicros   = api.CostMicros // millionths of the currency
	WallMillis   = api.WallMillis
)

// Usage is what work has used, or is about to use.
type Usage = api.Usage

// Charge is usage that is booked without a lease.
type Charge = api.Charge

// The outcomes of a report of usage.
const (
	UsageOK         = api.UsageOK
	UsageSoftBreach = api.UsageSoftBreach // a soft limit is passed
	UsageHardBreach = api.UsageHardBreach // a hard limit would be passed, and nothing was booked; or was, by what was spent already
	UsageApplied    = api.UsageApplied    // it was booked before, under the same DedupKey; FirstOutcome is what came of it then
)

// The actions that a hard breach takes on the work that reports.
const (
	ActionNone      = api.ActionNone
	ActionFailed    = api.ActionFailed
	ActionSuspended = api.ActionSuspended
	ActionCancelled = api.ActionCancelled
)

// UsageReceipt says what came of a report of usage.
type UsageReceipt = api.UsageReceipt

// UsageBreach is a limit that was passed; zero without any.
type UsageBreach = api.UsageBreach

// ExecutionUsage is what an execution has used in all, with or without budgets.
type ExecutionUsage = api.ExecutionUsage

// UsageOptions choose what usage is shown.
type UsageOptions struct {
	Attempt *int // its index; nil: all attempts
}

// ApplicableBudgets are the budgets that decide whether an execution may start.
type ApplicableBudgets = api.ApplicableBudgets

// BudgetRefusal says which budget has no room.
type BudgetRefusal = api.BudgetRefusal

// ExecutionBudget is a budget that an execution is charged to.
type ExecutionBudget = api.ExecutionBudget

// keyedUsage gives a report that brings no key one before its first try, so that a second try does not count again.
func keyedUsage(u Usage, c clock.Clock) (keyed Usage, minted bool) {
	if u.DedupKey == "" {
		u.DedupKey, minted = mint.Key(c), true
	}
	return u, minted
}

// amounts are never absent.
func amounts(given map[string]int64) map[string]int64 {
	if given == nil {
		return map[string]int64{}
	}
	return given
}
