package flowfabric

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
)

// Usage is what work has used, or is about to use.
type Usage struct {
	// Amounts are by dimension, 1..32, each 0..2^53-1.
	Amounts map[string]int64
	// DedupKey makes the report count once, however often it is made: of an execution as long as that is kept, of a charge for 7 days.
	// "": each call counts.
	DedupKey string
	// AlreadySpent books it even beyond the limits, as overrun: it cannot be undone any more. Otherwise a report that does not fit changes
	// nothing.
	AlreadySpent bool
}

// The outcomes of a report of usage.
const (
	UsageOK         = "ok"
	UsageSoftBreach = "soft_breach" // a soft limit is passed
	UsageHardBreach = "hard_breach" // a hard limit would be passed, and nothing was booked; or was, by what was spent already
)

// The actions that a hard breach takes on the work that reports.
const (
	ActionNone      = "none"
	ActionFailed    = "failed"
	ActionSuspended = "suspended"
	ActionCancelled = "cancelled"
)

// UsageReceipt says what came of a report of usage.
type UsageReceipt struct {
	Outcome  string // UsageOK, UsageSoftBreach, UsageHardBreach
	Repeated bool   // it was booked before, under the same DedupKey: this is what came of it then
	Applied  bool   // it is booked
	Action   string // what the breach did to the work: ActionNone, ActionFailed, ActionSuspended, ActionCancelled
	UsageBreach
	All []UsageBreach // every limit that was passed, of which the embedded one is the first; nil without any
	// Remaining is what may still be reported of each dimension with a hard limit, by id of the budget.
	Remaining map[string]map[string]int64
}

// UsageBreach is a limit that was passed; zero without any.
type UsageBreach struct {
	Budget    string // its id
	Dimension string
	Used      int64
	Reserved  int64
	Hard      int64
	Attempted int64 // what was reported
	Overrun   int64 // how much of that was booked beyond the limit
	Soft      int64
}

// ExecutionUsage is what an execution has used in all, with or without budgets.
type ExecutionUsage struct {
	ExecutionID ID
	Attempt     *int // of this attempt alone; nil: of all
	Amounts     map[string]int64
}

// UsageOptions choose what usage is shown.
type UsageOptions struct {
	Attempt *int // its index; nil: all attempts
}

// ApplicableBudgets are the budgets that decide whether an execution may start.
type ApplicableBudgets struct {
	Budgets []*BudgetStatus // the explicit ones first, then from the innermost to the outermost
	Refusal *BudgetRefusal  // nil: they would admit it now
}

// BudgetRefusal says which budget has no room.
type BudgetRefusal struct {
	BlockedOn string          // budget:<id>
	Detail    json.RawMessage // dimension, need, available, next_reset_at
}

// ExecutionBudget is a budget that an execution is charged to.
type ExecutionBudget = api.ExecutionBudget
