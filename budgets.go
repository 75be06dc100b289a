package flowfabric

import (
	"context"
	"iter"
	"time"
)

// Budgets limit what executions use: tokens, money, time, or anything that can be counted. A claim reserves, reports settle, the end of
// a lease gives back what is left, and a breach acts. A budget belongs to a namespace; every call takes its id or its name.
//
// A Revision in an AdminAction that is not the budget's is stale_version.
type Budgets interface {
	// Create makes a budget. The same definition again, by name or by id, finds the one that there is.
	//
	// Codes: invalid_budget with the field, budget_already_exists for another definition, budget_not_found for the parent,
	// execution_not_found and flow_not_found for the scope, idempotency_conflict.
	Create(ctx context.Context, b Budget, o ...AdminAction) (*BudgetStatus, error)
	// Get shows a budget and its numbers. Codes: budget_not_found.
	Get(ctx context.Context, budget string) (*BudgetStatus, error)
	// List walks the budgets by id, the oldest first. Codes: invalid_argument, invalid_cursor.
	List(ctx context.Context, q ...BudgetQuery) iter.Seq2[*BudgetStatus, error]
	// Page gives one page of them. Codes: invalid_argument, invalid_cursor.
	Page(ctx context.Context, q ...BudgetQuery) (Page[*BudgetStatus], error)
	// Update changes what is given. Room that it makes starts work that waits for it at once.
	//
	// Codes: budget_not_found, stale_version, invalid_budget, limit_below_usage with the minimum, budget_in_use for a dimension that is
	// reserved, budget_already_exists for a name that is taken.
	Update(ctx context.Context, budget string, u BudgetUpdate, o ...AdminAction) (*BudgetStatus, error)
	// Close lets a budget admit nobody and refuse charges; work that runs already still books. Codes: budget_not_found, stale_version.
	Close(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error)
	// Reopen undoes Close. Codes: budget_not_found, stale_version.
	Reopen(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error)
	// Reset begins a new epoch now and leaves the schedule as it is. Codes: budget_not_found, stale_version.
	Reset(ctx context.Context, budget string, o ...AdminAction) (*BudgetStatus, error)
	// Delete removes a budget. Codes: budget_not_found, stale_version, budget_in_use while it has children, or work that has not ended
	// names it.
	Delete(ctx context.Context, budget string, o ...AdminAction) error
	// Charge books what was used without a lease, against the budget and those above it. A breach is in the receipt, and no error.
	//
	// Codes: invalid_usage, reserved_dimension, unknown_dimension, amount_out_of_range, budget_not_found, budget_closed,
	// execution_not_found, idempotency_conflict.
	Charge(ctx context.Context, budget string, c Charge) (UsageReceipt, error)
	// ReleaseSpend gives back what an execution has used of the budget in its present epoch, and answers how much that was, by dimension.
	// A second time there is nothing to give back. Codes: budget_not_found, stale_version.
	ReleaseSpend(ctx context.Context, budget string, execution ID, o ...AdminAction) (map[string]int64, error)
	// Epochs walks the epochs that are over, newest first. Codes: budget_not_found.
	Epochs(ctx context.Context, budget string) iter.Seq2[BudgetEpoch, error]
	// EpochsPage gives one page of them. Codes: budget_not_found, invalid_cursor.
	EpochsPage(ctx context.Context, budget string, o ...PageOptions) (Page[BudgetEpoch], error)
	// Spend walks what executions have used, the largest first. Codes: budget_not_found.
	Spend(ctx context.Context, budget string, q ...SpendQuery) iter.Seq2[BudgetSpend, error]
	// SpendPage gives one page of it. Codes: budget_not_found, invalid_cursor.
	SpendPage(ctx context.Context, budget string, q ...SpendQuery) (Page[BudgetSpend], error)

	sealed()
}

// Budget is the definition of a budget.
type Budget struct {
	ID   string // a UUID that makes the create repeatable; "": minted
	Name string // 1..128 characters, unique in the namespace
	// Scope is what it covers. The zero value: only executions that name it in their BudgetIDs. It cannot be changed.
	Scope  BudgetScope
	Parent string // id or name of the budget above it, at most 8 levels; "": none. It cannot be changed
	// Dimensions are what it counts, 1..32: InputTokens, OutputTokens, CostMicros, WallMillis, and names of your own (a-z, 0-9, _).
	Dimensions  map[string]Limit
	Reset       BudgetReset    // when it begins anew; zero: never
	OnHard      HardAction     // what a breach of a hard limit does; "": BlockNew
	OnLeaseLoss LossAction     // what becomes of what a lost lease has reserved; "": ReleaseReserved
	Approval    BudgetApproval // of SuspendForApproval
}

// The dimensions that mean the same everywhere. Time is measured by the engine: reporting it is reserved_dimension.
const (
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
	CostMicros   = "cost_micros" // millionths of the currency
	WallMillis   = "wall_ms"
)

// Limit are the limits of a dimension. The zero value limits nothing and counts.
type Limit struct {
	Hard           int64 // never passed; 0: no limit
	Soft           int64 // told of when it is passed, at most Hard; 0: none
	DefaultReserve int64 // reserved for who gives no estimate, at most Hard
}

// BudgetScope is what a budget covers.
type BudgetScope struct {
	Type  string // "namespace", "lane", "flow", "execution", "tag", "none"; "": none
	Value string // name of the lane, id of the flow or execution, key=value of the tag
}

// BudgetReset is when a budget begins anew: in intervals, or by the calendar. The zero value: never.
type BudgetReset struct {
	Type     string        // "interval", "calendar" or "none"; "": what else is given says it
	Every    time.Duration // at least a minute
	AnchorAt time.Time     // of Every: a moment from which the intervals are counted; zero: 1970-01-01 UTC
	Unit     string        // "hour", "day", "week" (from Monday) or "month", instead of Every
	Timezone string        // of Unit: IANA name; "": UTC
}

// HardAction is what the breach of a hard limit does.
type HardAction string

// The actions on a hard breach.
const (
	BlockNew           HardAction = "block_new"            // new work waits for room, running work goes on
	FailReporter       HardAction = "fail"                 // the work that reports ends failed, without a retry
	SuspendForApproval HardAction = "suspend_for_approval" // the work that reports waits for somebody who raises the limit or says no
	CancelRunning      HardAction = "cancel_running"       // all work that is charged to the budget and runs is cancelled
)

// LossAction is what becomes of what a lease has reserved when it is lost.
type LossAction string

// The actions on the loss of a lease.
const (
	ReleaseReserved LossAction = "release" // it is given back
	ForfeitReserved LossAction = "forfeit" // it counts as used
)

// BudgetApproval is how SuspendForApproval asks.
type BudgetApproval struct {
	Timeout      time.Duration    // 0: 7 days
	OnTimeout    TimeoutBehavior  // "": FailOnTimeout
	DefaultRaise map[string]int64 // by how much an approval raises the limits that says nothing of it
}

// BudgetStatus is a budget with its numbers, all of one moment.
type BudgetStatus struct {
	Budget
	Namespace string
	State     string // active, closed
	Revision  int64  // counts the changes of the definition
	// Numbers are what is used and reserved, by dimension.
	Numbers           map[string]BudgetNumbers
	Exhausted         []string // dimensions that admit nobody, by name
	Epoch             int64    // counts the resets
	EpochStartedAt    time.Time
	NextResetAt       time.Time // zero: none
	Breaches          int64     // of hard limits, in all epochs
	SoftBreaches      int64
	LastBreach        *BudgetBreach  // of a hard limit in this epoch; nil: none
	LiveHolds         int64          // leases and grants that are charged to it
	Holders           []BudgetHolder // the first ten of them
	BlockedExecutions int            // that wait for room in it
	CreatedAt         time.Time
	UpdatedAt         time.Time

	// Existed tells of Create that there was one already with this definition.
	Existed bool
}

// BudgetNumbers is what there is of a dimension.
type BudgetNumbers struct {
	Used          int64
	Reserved      int64 // for leases and grants that are out
	Overrun       int64 // used beyond the hard limit: it was spent before it was reported
	EffectiveHard int64 // the hard limit with what approvals have added until the next reset; 0: no limit
	Available     int64 // what is left of that; 0 without a limit
}

// BudgetBreach is a hard limit that was reached.
type BudgetBreach struct {
	At          time.Time
	Dimension   string
	ExecutionID ID // "": a charge
}

// BudgetHolder is a lease or grant that is charged to a budget.
type BudgetHolder struct {
	ExecutionID ID
	LeaseEpoch  int64 // of a grant: that which its claim will have
	Since       time.Time
}

// BudgetUpdate changes a budget. What is nil stays as it is.
type BudgetUpdate struct {
	Name             *string
	Dimensions       map[string]LimitChange // those named are changed, or made
	RemoveDimensions []string
	Reset            *BudgetReset
	OnHard           *HardAction
	OnLeaseLoss      *LossAction
	Approval         *BudgetApproval
}

// LimitChange changes the limits of a dimension. What is nil stays as it is.
type LimitChange struct {
	Hard           *int64
	Soft           *int64
	DefaultReserve *int64
	Remove         []string // limits that are taken away: "hard", "soft", "default_reserve"
}

// BudgetQuery filters a list of budgets. The zero value: all of them.
type BudgetQuery struct {
	Scope     string // a type, or type:value, such as lane:mail
	Exhausted *bool  // whether some dimension admits nobody
	State     string // active, closed
	PageOptions
}

// BudgetEpoch is an epoch of a budget that is over.
type BudgetEpoch struct {
	Epoch        int64
	StartedAt    time.Time
	EndedAt      time.Time
	Dimensions   map[string]EpochUse
	Breaches     int64 // of hard limits
	SoftBreaches int64
}

// EpochUse is what an epoch has used of a dimension.
type EpochUse struct {
	Used    int64
	Overrun int64
}

// SpendQuery filters what executions have used of a budget. The zero value: all of the present epoch.
type SpendQuery struct {
	Epoch       *int64
	ExecutionID ID
	PageOptions
}

// BudgetSpend is what an execution has used of a budget in an epoch.
type BudgetSpend struct {
	Epoch       int64
	ExecutionID ID
	Used        map[string]int64
	Total       int64 // over all dimensions
}

// Charge is usage that is booked without a lease.
type Charge struct {
	Usage
	ExecutionID ID // whose it is: it counts on its meters too; "": nobody's
}
