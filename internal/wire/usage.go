package wire

import "encoding/json"

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
		Usage map[string]int64 `json:"usage" required:"true" doc:"Amounts by dimension."`
		UsageFields
	}
}

// ChargeBudgetRequest books usage without a lease.
type ChargeBudgetRequest struct {
	ByBudget
	Body struct {
		Usage map[string]int64 `json:"usage" required:"true" doc:"Amounts by dimension."`
		UsageFields
		ExecutionID string `json:"execution_id,omitempty" doc:"Execution that has used it; nobody if absent."`
	}
}

// UsageReceipt is the answer to a report of usage or a charge.
type UsageReceipt struct {
	Outcome      string `json:"outcome" enum:"ok,soft_breach,hard_breach,already_applied" doc:"What came of it."`
	FirstOutcome string `json:"first_outcome,omitempty" enum:"ok,soft_breach,hard_breach" doc:"Of already_applied: what came of it when it was booked."`
	Applied      bool   `json:"applied" doc:"It is booked."`
	Action       string `json:"action" enum:"none,failed,suspended,cancelled" doc:"What a breach did to the execution. After all but none its lease is gone."`
	BreachNumbers
	Remaining Remaining     `json:"remaining,omitempty" doc:"What may still be reported of each dimension with a hard limit, by id of the budget."`
	All       []UsageBreach `json:"all,omitempty" doc:"Every limit that was passed."`
}

// Remaining is what is left of dimensions with a hard limit, by budget and dimension.
type Remaining = map[string]map[string]int64

// BreachNumbers are those of the first limit that was passed.
type BreachNumbers struct {
	Budget    string `json:"budget,omitempty" doc:"Id of the first budget that was breached."`
	Dimension string `json:"dimension,omitempty" doc:"Its dimension."`
	Used      int64  `json:"used,omitempty" doc:"What is used of it."`
	Reserved  int64  `json:"reserved,omitempty" doc:"What is reserved of it."`
	Hard      int64  `json:"hard,omitempty" doc:"Its hard limit."`
	Attempted int64  `json:"attempted,omitempty" doc:"What was reported."`
	Overrun   int64  `json:"overrun,omitempty" doc:"What was booked beyond the limit."`
	Soft      int64  `json:"soft,omitempty" doc:"Its soft limit."`
}

// UsageBreach is a limit that was passed.
type UsageBreach struct{ BreachNumbers }

// ReleaseBudgetRequest gives back what an execution has used.
type ReleaseBudgetRequest struct {
	ByBudget
	Body struct {
		ExecutionID string `json:"execution_id" required:"true" doc:"The execution."`
		AdminFields
	}
}

// ReleasedSpend is what was given back.
type ReleasedSpend struct {
	Released map[string]int64 `json:"released" doc:"By dimension; empty: there was nothing."`
}

// GetUsageRequest shows what an execution has used.
type GetUsageRequest struct {
	ByID
	Attempt *int `query:"attempt" minimum:"0" doc:"Of this attempt alone; of all if absent."`
}

// ExecutionUsage is what an execution has used.
type ExecutionUsage struct {
	ExecutionID  string           `json:"execution_id" doc:"The execution."`
	AttemptIndex *int             `json:"attempt_index,omitempty" doc:"The attempt; absent: all of them."`
	Usage        map[string]int64 `json:"usage" doc:"Totals by dimension."`
}

// ApplicableBudgets are the budgets that decide about an execution.
type ApplicableBudgets struct {
	Budgets  []Budget       `json:"budgets" doc:"The budgets: explicit ones first, then from the innermost to the outermost."`
	Admitted bool           `json:"admitted" doc:"They would let it start now."`
	Refusal  *BudgetRefusal `json:"refusal,omitempty" doc:"Why not."`
}

// BudgetRefusal says which budget has no room.
type BudgetRefusal struct {
	BlockedOn      string          `json:"blocked_on" doc:"budget:<id>."`
	BlockingDetail json.RawMessage `json:"blocking_detail,omitempty" doc:"dimension, need, available and next_reset_at."`
}
