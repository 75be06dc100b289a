package limits

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// BudgetRef names a budget, by its id or by its name in the namespace.
type BudgetRef struct {
	Namespace string
	Budget    string
}

// BudgetAnswer is the answer to create_budget (B2).
type BudgetAnswer struct {
	Outcome string // created, already_exists
	Budget  BudgetView
}

// BudgetView is a budget as get_budget shows it: exact in one snapshot (B39).
type BudgetView struct {
	core.Budget
	Numbers           map[string]core.DimensionView // by dimension
	Exhausted         []string                      // dimensions that admit nothing, by name
	BlockedExecutions int
	Holders           []Holder // the first ten; LiveHolds counts them all
	AsOf              base.Time
}

// Holder is a lease or grant that is charged to a budget.
type Holder struct {
	ExecutionID base.ID
	Epoch       int64 // of the lease; for a grant the epoch that its claim will have
	Since       base.Time
}

// BudgetQuery filters a list of budgets (B40).
type BudgetQuery struct {
	Namespace string // "": all of the caller's
	Scope     string // a type, or type:value; "": all
	Exhausted *bool
	State     string // active, closed; "": all
	Cursor    string
	Limit     *int
}

// SpendQuery asks for rows of a ledger (B40).
type SpendQuery struct {
	Epoch     *int64 // nil: the current one
	Execution *base.GivenID
	Cursor    string
	Limit     *int
}

// SpendRow is what an execution used of a budget in an epoch.
type SpendRow struct {
	Epoch       int64
	ExecutionID base.ID
	Used        map[string]int64
	Total       int64 // over all dimensions: what the rows are ordered by
}

// UsageRequest reports what a lease has used or is about to use (B19).
type UsageRequest struct {
	Fence        core.Fence
	Usage        map[string]int64
	DedupKey     string
	AlreadySpent bool
}

// ChargeRequest charges a budget without a lease (B24).
type ChargeRequest struct {
	Usage        map[string]int64
	DedupKey     string
	AlreadySpent bool
	Execution    *base.GivenID // record_spend: on its ledger and meters too; nil: charge
}

// UsageView are meters (B18).
type UsageView struct {
	ExecutionID base.ID
	Attempt     *int // nil: of all attempts
	Usage       map[string]int64
}

// Applicable is what decides on an execution's admission by budgets (B6, B40).
type Applicable struct {
	Budgets []BudgetView  // in the order of B8
	Refusal *core.Refusal // nil: they would admit it now
	AsOf    base.Time
}
