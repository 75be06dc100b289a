package api

// Predefined dimensions. Time is measured by the engine: reporting it is reserved_dimension.
const (
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
	CostMicros   = "cost_micros" // millionths of the currency
	WallMillis   = "wall_ms"
)

// Usage is what work has used, or is about to use.
type Usage struct {
	// Amounts are by dimension, 1 to 32, each from 0 to 2^53-1.
	Amounts map[string]int64 `json:"usage" required:"true" doc:"Amounts by dimension."`
	// DedupKey makes the report idempotent: for an execution as long as it is kept, for a charge for 7 days. "": each call
	// counts.
	DedupKey string `json:"dedup_key,omitempty" doc:"Makes the report idempotent; default: the request's Idempotency-Key."`
	// AlreadySpent books it even beyond the limits, as overrun, because it cannot be undone. Otherwise a report that exceeds a
	// limit changes nothing.
	AlreadySpent bool `json:"already_spent,omitempty" doc:"Book it even beyond the limits."`
}

// Charge is usage that is booked without a lease.
type Charge struct {
	Usage
	// ExecutionID is the execution that used it; its own usage grows too. "": none.
	ExecutionID ID `json:"execution_id,omitempty" doc:"Execution that used it, if any."`
}

// Outcomes of a usage report.
const (
	UsageOK         = "ok"
	UsageSoftBreach = "soft_breach"     // a soft limit was exceeded
	UsageHardBreach = "hard_breach"     // a hard limit would be exceeded, and nothing was booked; or was exceeded, with AlreadySpent
	UsageApplied    = "already_applied" // it was booked before, with the same DedupKey; FirstOutcome is the outcome then
)

// Actions of a hard breach on the reporting execution.
const (
	ActionNone      = "none"
	ActionFailed    = "failed"
	ActionSuspended = "suspended"
	ActionCancelled = "cancelled"
)

// UsageReceipt is the result of a usage report.
type UsageReceipt struct {
	Outcome      string `json:"outcome" enum:"ok,soft_breach,hard_breach,already_applied" doc:"Outcome of the report."`
	FirstOutcome string `json:"first_outcome,omitempty" enum:"ok,soft_breach,hard_breach" doc:"For already_applied: the outcome when it was booked."`
	Applied      bool   `json:"applied" doc:"Whether it is booked."`
	// Action is the effect of the breach on the execution: ActionNone, ActionFailed, ActionSuspended, ActionCancelled.
	Action string `json:"action" enum:"none,failed,suspended,cancelled" doc:"Effect of a breach on the execution. Unless none, its lease has ended."`
	UsageBreach
	// Remaining is what can still be reported for each dimension with a hard limit, by budget id.
	Remaining map[string]map[string]int64 `json:"remaining,omitempty" doc:"What can still be reported for each dimension with a hard limit, by budget id."`
	All       []UsageBreach               `json:"all,omitempty" doc:"Every exceeded limit."` // the embedded one is the first; nil if none
}

// Repeated reports whether it was booked before, with the same DedupKey.
func (r UsageReceipt) Repeated() bool { return r.Outcome == UsageApplied }

// First returns the receipt of the first report.
func (r UsageReceipt) First() UsageReceipt {
	if r.Repeated() {
		r.Outcome, r.FirstOutcome = r.FirstOutcome, ""
	}
	return r
}

// UsageBreach is an exceeded limit; zero if none was exceeded.
type UsageBreach struct {
	Budget    string `json:"budget,omitempty" doc:"Id of the first exceeded budget."`
	Dimension string `json:"dimension,omitempty" doc:"Its dimension."`
	Used      int64  `json:"used,omitempty" doc:"Its usage."`
	Reserved  int64  `json:"reserved,omitempty" doc:"Its reservations."`
	Hard      int64  `json:"hard,omitempty" doc:"Its hard limit."`
	Attempted int64  `json:"attempted,omitempty" doc:"What was reported."`
	Overrun   int64  `json:"overrun,omitempty" doc:"Amount booked beyond the limit."`
	Soft      int64  `json:"soft,omitempty" doc:"Its soft limit."`
}

// ExecutionUsage is the total usage of an execution, with or without budgets.
type ExecutionUsage struct {
	ExecutionID ID               `json:"execution_id" doc:"The execution."`
	Attempt     *int             `json:"attempt_index,omitempty" doc:"The attempt; absent: all of them."`
	Amounts     map[string]int64 `json:"usage" doc:"Totals by dimension."`
}
