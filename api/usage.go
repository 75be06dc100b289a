package api

// The dimensions that mean the same everywhere. Time is measured by the engine: reporting it is reserved_dimension.
const (
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
	CostMicros   = "cost_micros" // millionths of the currency
	WallMillis   = "wall_ms"
)

// Usage is what work has used, or is about to use.
type Usage struct {
	// Amounts are by dimension, 1..32, each 0..2^53-1.
	Amounts map[string]int64 `json:"usage" required:"true" doc:"Amounts by dimension."`
	// DedupKey makes the report count once, however often it is made: of an execution as long as that is kept, of a charge for 7 days.
	// "": each call counts.
	DedupKey string `json:"dedup_key,omitempty" doc:"Makes the report count once; the Idempotency-Key of the request if absent."`
	// AlreadySpent books it even beyond the limits, as overrun: it cannot be undone any more. Otherwise a report that does not fit changes
	// nothing.
	AlreadySpent bool `json:"already_spent,omitempty" doc:"Book it even beyond the limits."`
}

// Charge is usage that is booked without a lease.
type Charge struct {
	Usage
	// ExecutionID is the execution that has used it: it counts on its meters too. "": none.
	ExecutionID ID `json:"execution_id,omitempty" doc:"Execution that has used it; nobody if absent."`
}

// The outcomes of a report of usage.
const (
	UsageOK         = "ok"
	UsageSoftBreach = "soft_breach"     // a soft limit is passed
	UsageHardBreach = "hard_breach"     // a hard limit would be passed, and nothing was booked; or was, by what was spent already
	UsageApplied    = "already_applied" // it was booked before, under the same DedupKey; FirstOutcome is what came of it then
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
	Outcome      string `json:"outcome" enum:"ok,soft_breach,hard_breach,already_applied" doc:"What came of it."`
	FirstOutcome string `json:"first_outcome,omitempty" enum:"ok,soft_breach,hard_breach" doc:"Of already_applied: what came of it when it was booked."`
	Applied      bool   `json:"applied" doc:"It is booked."`
	// Action is what the breach did to the work: ActionNone, ActionFailed, ActionSuspended, ActionCancelled.
	Action string `json:"action" enum:"none,failed,suspended,cancelled" doc:"What a breach did to the execution. After all but none its lease is gone."`
	UsageBreach
	// Remaining is what may still be reported of each dimension with a hard limit, by id of the budget.
	Remaining map[string]map[string]int64 `json:"remaining,omitempty" doc:"What may still be reported of each dimension with a hard limit, by id of the budget."`
	All       []UsageBreach               `json:"all,omitempty" doc:"Every limit that was passed."` // the embedded one is the first; nil without any
}

// Repeated reports whether it was booked before, under the same DedupKey.
func (r UsageReceipt) Repeated() bool { return r.Outcome == UsageApplied }

// First returns the receipt as the first report had it.
func (r UsageReceipt) First() UsageReceipt {
	if r.Repeated() {
		r.Outcome, r.FirstOutcome = r.FirstOutcome, ""
	}
	return r
}

// UsageBreach is a limit that was passed; zero without any.
type UsageBreach struct {
	Budget    string `json:"budget,omitempty" doc:"Id of the first budget that was breached."`
	Dimension string `json:"dimension,omitempty" doc:"Its dimension."`
	Used      int64  `json:"used,omitempty" doc:"What is used of it."`
	Reserved  int64  `json:"reserved,omitempty" doc:"What is reserved of it."`
	Hard      int64  `json:"hard,omitempty" doc:"Its hard limit."`
	Attempted int64  `json:"attempted,omitempty" doc:"What was reported."`
	Overrun   int64  `json:"overrun,omitempty" doc:"What was booked beyond the limit."`
	Soft      int64  `json:"soft,omitempty" doc:"Its soft limit."`
}

// ExecutionUsage is what an execution has used in all, with or without budgets.
type ExecutionUsage struct {
	ExecutionID ID               `json:"execution_id" doc:"The execution."`
	Attempt     *int             `json:"attempt_index,omitempty" doc:"The attempt; absent: all of them."`
	Amounts     map[string]int64 `json:"usage" doc:"Totals by dimension."`
}
