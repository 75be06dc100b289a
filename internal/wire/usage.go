package wire

import "github.com/flowfabric/flowfabric/api"

// UsageField is the usage in a command that gives the lease back (U68..U71).
type UsageField struct {
	Usage map[string]int64 `json:"usage,omitempty" doc:"Usage since the last report, by dimension, booked as already spent."`
}

// UsageFields report usage (U74).
type UsageFields struct {
	DedupKey     string `json:"dedup_key,omitempty" doc:"Makes the report idempotent; default: the request's Idempotency-Key."`
	AlreadySpent bool   `json:"already_spent,omitempty" doc:"Book it even beyond the limits."`
}

// ReportUsageRequest reports usage under a lease.
type ReportUsageRequest struct {
	FencedByID
	Body struct {
		LeaseField
		api.Usage
	}
}

// ChargeBudgetRequest books usage without a lease.
type ChargeBudgetRequest struct {
	ByBudget
	Body struct{ api.Charge }
}

// ReleaseBudgetRequest refunds what an execution has used.
type ReleaseBudgetRequest struct {
	ByBudget
	Body struct {
		ExecutionID api.ID `json:"execution_id" required:"true" doc:"The execution."`
		AdminFields
	}
}

// GetUsageRequest shows what an execution has used.
type GetUsageRequest struct {
	ByID
	Attempt *int `query:"attempt" minimum:"0" doc:"Only of this attempt; default: all."`
}
