package wire

import "net/http"

// budgetCalls are the budgets of section 2.6, and what executions use.
var budgetCalls = []*Operation{
	row(CreateBudget), row(ListBudgets), row(GetBudget), row(ListBudgetEpochs), row(ListBudgetSpend), row(UpdateBudget), row(DeleteBudget), row(CloseBudget), row(ReopenBudget), row(ResetBudget),
	row(ChargeBudget), row(ReleaseBudget), row(ReportUsage), row(GetUsage), row(ListExecutionBudgets),
}

// forLeased bounds workers of certain lanes to what they work on.
var forLeased = map[Role]Condition{Work: LeasedInLanes}

// The calls on budgets.
var (
	CreateBudget = Call[CreateBudgetRequest, CreatedBudget]{&Operation{
		ID: "create_budget", Rule: "U95", Method: http.MethodPost, Path: "/v1/budgets", Roles: Operate,
		Go: "Budgets.Create", Command: "budgets create", Summary: "Make a budget", Status: []int{http.StatusCreated, http.StatusOK},
	}}
	ListBudgets = Call[ListBudgetsRequest, Page[Budget]]{&Operation{
		ID: "list_budgets", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets", Roles: Read,
		Go: "Budgets.List", Command: "budgets list", Summary: "List the budgets and their numbers", Status: []int{http.StatusOK},
	}}
	GetBudget = Call[ByBudget, Budget]{&Operation{
		ID: "get_budget", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}", Roles: Read,
		Go: "Budgets.Get", Command: "budgets get", Summary: "Show a budget and its numbers", Status: []int{http.StatusOK},
	}}
	ListBudgetEpochs = Call[BudgetEpochsRequest, Page[BudgetEpoch]]{&Operation{
		ID: "list_budget_epochs", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}/epochs", Roles: Read,
		Go: "Budgets.Epochs", Command: "budgets epochs", Summary: "List the epochs of a budget that are over", Status: []int{http.StatusOK},
	}}
	ListBudgetSpend = Call[BudgetSpendRequest, Page[BudgetSpend]]{&Operation{
		ID: "list_budget_spend", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}/spend", Roles: Read,
		Go: "Budgets.Spend", Command: "budgets spend", Summary: "List what executions have used of a budget", Status: []int{http.StatusOK},
	}}
	UpdateBudget = Call[UpdateBudgetRequest, Budget]{&Operation{
		ID: "update_budget", Rule: "U97", Method: http.MethodPatch, Path: "/v1/budgets/{id}", Roles: Operate,
		Go: "Budgets.Update", Command: "budgets set", Summary: "Change a budget", Status: []int{http.StatusOK},
	}}
	DeleteBudget = Call[ChangeBudgetRequest, None]{&Operation{
		ID: "delete_budget", Rule: "U97", Method: http.MethodDelete, Path: "/v1/budgets/{id}", Roles: Operate,
		Go: "Budgets.Delete", Command: "budgets delete", Summary: "Remove a budget", Status: []int{http.StatusNoContent},
	}}
	CloseBudget = Call[ChangeBudgetRequest, Budget]{&Operation{
		ID: "close_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/close", Roles: Operate,
		Go: "Budgets.Close", Command: "budgets close", Summary: "Let a budget admit nobody", Status: []int{http.StatusOK},
	}}
	ReopenBudget = Call[ChangeBudgetRequest, Budget]{&Operation{
		ID: "reopen_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/reopen", Roles: Operate,
		Go: "Budgets.Reopen", Command: "budgets reopen", Summary: "Undo close", Status: []int{http.StatusOK},
	}}
	ResetBudget = Call[ChangeBudgetRequest, Budget]{&Operation{
		ID: "reset_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/reset", Roles: Operate,
		Go: "Budgets.Reset", Command: "budgets reset", Summary: "Begin a new epoch now", Status: []int{http.StatusOK},
	}}
	ChargeBudget = Call[ChargeBudgetRequest, UsageReceipt]{&Operation{
		ID: "charge_budget", Rule: "U98", Method: http.MethodPost, Path: "/v1/budgets/{id}/charge", Roles: Work | Operate, Only: forLeased,
		Go: "Budgets.Charge", Command: "budgets charge", Summary: "Book what was used without a lease", Status: []int{http.StatusOK},
	}}
	ReleaseBudget = Call[ReleaseBudgetRequest, ReleasedSpend]{&Operation{
		ID: "release_budget", Rule: "U98", Method: http.MethodPost, Path: "/v1/budgets/{id}/release", Roles: Work | Operate, Only: forLeased,
		Go: "Budgets.ReleaseSpend", Command: "budgets release", Summary: "Give back what an execution has used of a budget", Status: []int{http.StatusOK},
	}}
	ReportUsage = Call[ReportUsageRequest, UsageReceipt]{&Operation{
		ID: "report_usage", Rule: "U74", Method: http.MethodPost, Path: "/v1/executions/{id}/usage", Roles: Work,
		Go: "Work.Do(usage)", NoCommand: workerOnly, Summary: "Report what the work uses", Status: []int{http.StatusOK},
	}}
	GetUsage = Call[GetUsageRequest, ExecutionUsage]{&Operation{
		ID: "get_usage", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/usage", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Usage", Command: "usage", Summary: "Show what an execution has used", Status: []int{http.StatusOK},
	}}
	ListExecutionBudgets = Call[ByID, ApplicableBudgets]{&Operation{
		ID: "list_execution_budgets", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/budgets", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Budgets", Command: "usage --budgets", Summary: "Show the budgets that decide about an execution, and whether they admit it",
		Status: []int{http.StatusOK},
	}}
)

// ByBudget names a budget in the path.
type ByBudget struct {
	ID string `path:"id" argument:"budget_id" doc:"Id or name of the budget."`
}

// BudgetFields are what a budget is, besides its name (U95). Numbers and words out of their range are invalid_budget.
type BudgetFields struct {
	BudgetID    string                  `json:"budget_id,omitempty" doc:"Id that the caller brings, which makes the create repeatable."`
	Parent      string                  `json:"parent,omitempty" doc:"Id or name of the budget above it."`
	Dimensions  map[string]BudgetLimits `json:"dimensions" required:"true" doc:"What it counts, 1 to 32: limits by name."`
	Reset       *BudgetReset            `json:"reset,omitempty" doc:"When it begins anew; never if absent."`
	OnHard      string                  `json:"on_hard,omitempty" doc:"What a breach of a hard limit does: block_new (if absent), fail, suspend_for_approval or cancel_running."`
	OnLeaseLoss string                  `json:"on_lease_loss,omitempty" doc:"What becomes of what a lost lease has reserved: release (if absent) or forfeit."`
	Approval    *BudgetApproval         `json:"approval,omitempty" doc:"How suspend_for_approval asks."`
}

// BudgetDefinition is a budget that is made with an execution, and for it (U32).
type BudgetDefinition struct {
	Name string `json:"name,omitempty" doc:"Name, unique in the namespace; made of the execution's id if absent."`
	BudgetFields
}

// BudgetScope is what a budget covers.
type BudgetScope struct {
	Type  string `json:"type" required:"true" doc:"namespace, lane, flow, execution, tag or none."`
	Value string `json:"value,omitempty" doc:"Name of the lane, id of the flow or execution, key=value of the tag."`
}

// BudgetLimits are the limits of a dimension.
type BudgetLimits struct {
	Hard           *int64 `json:"hard,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Never passed; at least 1. No limit if absent."`
	Soft           *int64 `json:"soft,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Told of when it is passed; at least 1."`
	DefaultReserve *int64 `json:"default_reserve,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Reserved for executions that give no estimate."`
}

// BudgetReset is when a budget begins anew.
type BudgetReset struct {
	Type     string `json:"type" required:"true" doc:"none, interval or calendar."`
	EveryMS  int64  `json:"every_ms,omitempty" maximum:"9000000000000" doc:"Of interval: its length, at least 60000."`
	AnchorAt Time   `json:"anchor_at,omitzero" doc:"Of interval: a moment from which the intervals are counted."`
	Unit     string `json:"unit,omitempty" doc:"Of calendar: hour, day, week (from Monday) or month."`
	Timezone string `json:"timezone,omitempty" doc:"Of calendar: IANA name; UTC if absent."`
}

// BudgetApproval is how suspend_for_approval asks.
type BudgetApproval struct {
	TimeoutMS       int64            `json:"timeout_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"604800000 if absent."`
	TimeoutBehavior string           `json:"timeout_behavior,omitempty" doc:"fail if absent; as that of a suspension."`
	DefaultRaise    map[string]int64 `json:"default_raise,omitempty" doc:"By how much an approval raises the limits that says nothing of it, by dimension."`
}

// CreateBudgetRequest makes a budget.
type CreateBudgetRequest struct {
	Body struct {
		NewBudget
		AdminFields
	}
}

// NewBudget is a budget that is to be made.
type NewBudget struct {
	Name  string       `json:"name" required:"true" doc:"Name, unique in the namespace."`
	Scope *BudgetScope `json:"scope,omitempty" doc:"What it covers; if absent only executions that name it."`
	BudgetFields
}

// CreatedBudget is the budget, and whether this call made it.
type CreatedBudget struct {
	Outcome string `json:"outcome" enum:"created,already_exists" doc:"Whether this call made it."`
	Budget
}

// Budget is a budget with its numbers (U31).
type Budget struct {
	BudgetID          string                     `json:"budget_id" doc:"Id of the budget."`
	Namespace         string                     `json:"namespace" doc:"Namespace that it belongs to."`
	Name              string                     `json:"name" doc:"Its name."`
	Scope             BudgetScope                `json:"scope" doc:"What it covers."`
	Parent            string                     `json:"parent,omitempty" doc:"Id of the budget above it."`
	Dimensions        map[string]BudgetDimension `json:"dimensions" doc:"Limits and numbers by dimension."`
	Reset             BudgetReset                `json:"reset" doc:"When it begins anew."`
	OnHard            string                     `json:"on_hard" doc:"What a breach of a hard limit does."`
	OnLeaseLoss       string                     `json:"on_lease_loss" doc:"What becomes of what a lost lease has reserved."`
	Approval          BudgetApproval             `json:"approval" doc:"How suspend_for_approval asks."`
	State             string                     `json:"state" enum:"active,closed" doc:"A closed one admits nobody."`
	Revision          int64                      `json:"revision" doc:"Counts the changes of the definition."`
	Exhausted         []string                   `json:"exhausted" doc:"Dimensions that admit nobody."`
	Epoch             int64                      `json:"epoch" doc:"Counts the resets."`
	EpochStartedAt    Time                       `json:"epoch_started_at,omitzero" doc:"When the present epoch began."`
	NextResetAt       Time                       `json:"next_reset_at,omitzero" doc:"When the next one begins."`
	BreachCount       int64                      `json:"breach_count" doc:"Breaches of hard limits, in all epochs."`
	SoftBreachCount   int64                      `json:"soft_breach_count" doc:"Times that a soft limit was passed, in all epochs."`
	LastBreach        *BudgetBreach              `json:"last_breach,omitempty" doc:"The last breach of a hard limit in this epoch."`
	LiveHolds         int64                      `json:"live_holds" doc:"Leases and grants that are charged to it."`
	Holders           []BudgetHolder             `json:"holders,omitempty" doc:"The first ten of them."`
	BlockedExecutions int                        `json:"blocked_executions" doc:"Executions that wait for room in it."`
	CreatedAt         Time                       `json:"created_at,omitzero" doc:"When it was made."`
	UpdatedAt         Time                       `json:"updated_at,omitzero" doc:"When its definition changed."`
}

// BudgetDimension is a dimension with its limits and its numbers.
type BudgetDimension struct {
	BudgetLimits
	EffectiveHard *int64 `json:"effective_hard,omitempty" doc:"The hard limit with what approvals have added until the next reset."`
	Used          int64  `json:"used" doc:"Used in this epoch."`
	Reserved      int64  `json:"reserved" doc:"Reserved for leases and grants that are out."`
	Overrun       int64  `json:"overrun" doc:"Used beyond the hard limit."`
	Available     *int64 `json:"available,omitempty" doc:"What is left of the effective limit."`
}

// BudgetBreach is a hard limit that was reached.
type BudgetBreach struct {
	At          Time   `json:"at,omitzero" doc:"When."`
	Dimension   string `json:"dimension" doc:"Of what."`
	ExecutionID string `json:"execution_id,omitempty" doc:"By whom; absent: by a charge."`
}

// BudgetHolder is a lease or grant that is charged to a budget.
type BudgetHolder struct {
	ExecutionID string `json:"execution_id" doc:"Whose it is."`
	LeaseEpoch  int64  `json:"lease_epoch" doc:"Its epoch; of a grant that which its claim will have."`
	Since       Time   `json:"since,omitzero" doc:"Since when."`
}

// ListBudgetsRequest lists budgets.
type ListBudgetsRequest struct {
	PageFields
	Scope     string `query:"scope" doc:"Those of this type, or type:value, such as lane:mail."`
	Exhausted *bool  `query:"exhausted" doc:"Those of which some dimension admits nobody; false: the others."`
	State     string `query:"state" enum:"active,closed" doc:"Those in this state."`
}

// BudgetEpochsRequest lists epochs.
type BudgetEpochsRequest struct {
	ByBudget
	PageFields
}

// BudgetEpoch is an epoch that is over.
type BudgetEpoch struct {
	Epoch           int64               `json:"epoch" doc:"Its number."`
	StartedAt       Time                `json:"started_at,omitzero" doc:"When it began."`
	EndedAt         Time                `json:"ended_at,omitzero" doc:"When it ended."`
	Dimensions      map[string]EpochUse `json:"dimensions" doc:"What was used, by dimension."`
	BreachCount     int64               `json:"breach_count" doc:"Breaches of hard limits in it."`
	SoftBreachCount int64               `json:"soft_breach_count" doc:"Times that a soft limit was passed in it."`
}

// EpochUse is what an epoch has used of a dimension.
type EpochUse struct {
	Used    int64 `json:"used" doc:"Within the limit."`
	Overrun int64 `json:"overrun" doc:"Beyond it."`
}

// BudgetSpendRequest lists what executions have used.
type BudgetSpendRequest struct {
	ByBudget
	PageFields
	Epoch       *int64 `query:"epoch" minimum:"0" doc:"In this epoch; the present one if absent."`
	ExecutionID string `query:"execution" argument:"execution_id" doc:"By this execution."`
}

// BudgetSpend is what an execution has used of a budget in an epoch.
type BudgetSpend struct {
	Epoch       int64            `json:"epoch" doc:"The epoch."`
	ExecutionID string           `json:"execution_id" doc:"The execution."`
	Used        map[string]int64 `json:"used" doc:"What it used, by dimension."`
	Total       int64            `json:"total" doc:"The sum of that: what the list is ordered by."`
}

// LimitChange changes the limits of a dimension; what is absent stays.
type LimitChange struct {
	BudgetLimits
	Remove []string `json:"remove,omitempty" doc:"Limits that are taken away: hard, soft, default_reserve."`
}

// UpdateBudgetRequest changes a budget; what is absent stays.
type UpdateBudgetRequest struct {
	ByBudget
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    struct {
		Name             *string                `json:"name,omitempty" doc:"Another name."`
		Dimensions       map[string]LimitChange `json:"dimensions,omitempty" doc:"Limits to change, by dimension; one that is new is made."`
		RemoveDimensions []string               `json:"remove_dimensions,omitempty" doc:"Dimensions to remove."`
		Reset            *BudgetReset           `json:"reset,omitempty" doc:"When it begins anew."`
		OnHard           *string                `json:"on_hard,omitempty" doc:"What a breach of a hard limit does."`
		OnLeaseLoss      *string                `json:"on_lease_loss,omitempty" doc:"What becomes of what a lost lease has reserved."`
		Approval         *BudgetApproval        `json:"approval,omitempty" doc:"How suspend_for_approval asks."`
		AdminFields
	}
}

// ChangeBudgetRequest closes, reopens, resets or removes a budget.
type ChangeBudgetRequest struct {
	ByBudget
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse when the revision is another."`
	Body    AdminFields
}
