package wire

import "github.com/flowfabric/flowfabric/api"

// UsageField is what a command that gives the lease back has used (U68..U71).
type UsageField struct {
	Usage map[string]int64 `json:"usage,omitempty" doc:"What was used since the last report, by dimension: it is booked as already spent."`
}

// UsageFields report usage (U74).
type UsageFields struct {
	DedupKey     string `json:"dedup_key,omitempty" doc:"Makes the report count once; the Idempotency-Key of the request if absent."`
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

// ReleaseBudgetRequest gives back what an execution has used.
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
	Attempt *int `query:"attempt" minimum:"0" doc:"Of this attempt alone; of all if absent."`
}
