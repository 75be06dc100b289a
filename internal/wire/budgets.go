package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// budgetCalls are the budgets of section 2.6, and the usage of executions.
var budgetCalls = []*Operation{
	row(CreateBudget), row(ListBudgets), row(GetBudget), row(ListBudgetEpochs), row(ListBudgetSpend), row(UpdateBudget), row(DeleteBudget), row(CloseBudget), row(ReopenBudget), row(ResetBudget),
	row(ChargeBudget), row(ReleaseBudget), row(ReportUsage), row(GetUsage), row(ListExecutionBudgets),
}

// forLeased limits workers with lanes to executions that they hold.
var forLeased = map[Role]Condition{Work: LeasedInLanes}

// The calls on budgets.
var (
	CreateBudget = Call[CreateBudgetRequest, api.CreatedBudget]{&Operation{
		ID: "create_budget", Rule: "U95", Method: http.MethodPost, Path: "/v1/budgets", Roles: Operate,
		Go: "Budgets.Create", Command: "budgets create", Summary: "Create a budget", Status: []int{http.StatusCreated, http.StatusOK},
	}}
	ListBudgets = Call[ListBudgetsRequest, api.Page[*api.BudgetStatus]]{&Operation{
		ID: "list_budgets", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets", Roles: Read,
		Go: "Budgets.List", Command: "budgets list", Summary: "List budgets and their usage", Status: []int{http.StatusOK},
	}}
	GetBudget = Call[ByBudget, api.BudgetStatus]{&Operation{
		ID: "get_budget", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}", Roles: Read,
		Go: "Budgets.Get", Command: "budgets get", Summary: "Show a budget and its usage", Status: []int{http.StatusOK},
	}}
	ListBudgetEpochs = Call[BudgetEpochsRequest, api.Page[api.BudgetEpoch]]{&Operation{
		ID: "list_budget_epochs", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}/epochs", Roles: Read,
		Go: "Budgets.Epochs", Command: "budgets epochs", Summary: "List past epochs of a budget", Status: []int{http.StatusOK},
	}}
	ListBudgetSpend = Call[BudgetSpendRequest, api.Page[api.BudgetSpend]]{&Operation{
		ID: "list_budget_spend", Rule: "U96", Method: http.MethodGet, Path: "/v1/budgets/{id}/spend", Roles: Read,
		Go: "Budgets.Spend", Command: "budgets spend", Summary: "List usage of a budget per execution", Status: []int{http.StatusOK},
	}}
	UpdateBudget = Call[UpdateBudgetRequest, api.BudgetStatus]{&Operation{
		ID: "update_budget", Rule: "U97", Method: http.MethodPatch, Path: "/v1/budgets/{id}", Roles: Operate,
		Go: "Budgets.Update", Command: "budgets set", Summary: "Change a budget", Status: []int{http.StatusOK},
	}}
	DeleteBudget = Call[ChangeBudgetRequest, None]{&Operation{
		ID: "delete_budget", Rule: "U97", Method: http.MethodDelete, Path: "/v1/budgets/{id}", Roles: Operate,
		Go: "Budgets.Delete", Command: "budgets delete", Summary: "Delete a budget", Status: []int{http.StatusNoContent},
	}}
	CloseBudget = Call[ChangeBudgetRequest, api.BudgetStatus]{&Operation{
		ID: "close_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/close", Roles: Operate,
		Go: "Budgets.Close", Command: "budgets close", Summary: "Close a budget: it admits no new work", Status: []int{http.StatusOK},
	}}
	ReopenBudget = Call[ChangeBudgetRequest, api.BudgetStatus]{&Operation{
		ID: "reopen_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/reopen", Roles: Operate,
		Go: "Budgets.Reopen", Command: "budgets reopen", Summary: "Undo close", Status: []int{http.StatusOK},
	}}
	ResetBudget = Call[ChangeBudgetRequest, api.BudgetStatus]{&Operation{
		ID: "reset_budget", Rule: "U97", Method: http.MethodPost, Path: "/v1/budgets/{id}/reset", Roles: Operate,
		Go: "Budgets.Reset", Command: "budgets reset", Summary: "Start a new epoch now", Status: []int{http.StatusOK},
	}}
	ChargeBudget = Call[ChargeBudgetRequest, api.UsageReceipt]{&Operation{
		ID: "charge_budget", Rule: "U98", Method: http.MethodPost, Path: "/v1/budgets/{id}/charge", Roles: Work | Operate, Only: forLeased,
		Go: "Budgets.Charge", Command: "budgets charge", Summary: "Book usage without a lease", Status: []int{http.StatusOK},
	}}
	ReleaseBudget = Call[ReleaseBudgetRequest, api.ReleasedSpend]{&Operation{
		ID: "release_budget", Rule: "U98", Method: http.MethodPost, Path: "/v1/budgets/{id}/release", Roles: Work | Operate, Only: forLeased,
		Go: "Budgets.Refund", Command: "budgets release", Summary: "Refund what an execution has used of a budget", Status: []int{http.StatusOK},
	}}
	ReportUsage = Call[ReportUsageRequest, api.UsageReceipt]{&Operation{
		ID: "report_usage", Rule: "U74", Method: http.MethodPost, Path: "/v1/executions/{id}/usage", Roles: Work,
		Go: "Work.Do(usage)", NoCommand: workerOnly, Summary: "Report usage", Status: []int{http.StatusOK},
	}}
	GetUsage = Call[GetUsageRequest, api.ExecutionUsage]{&Operation{
		ID: "get_usage", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/usage", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Usage", Command: "usage", Summary: "Show what an execution has used", Status: []int{http.StatusOK},
	}}
	ListExecutionBudgets = Call[ByID, api.ApplicableBudgets]{&Operation{
		ID: "list_execution_budgets", Rule: "U42", Method: http.MethodGet, Path: "/v1/executions/{id}/budgets", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Executions.Budgets", Command: "usage --budgets", Summary: "Show the budgets of an execution, and whether they admit it",
		Status: []int{http.StatusOK},
	}}
)

// ByBudget identifies a budget in the path.
type ByBudget struct {
	ID string `path:"id" argument:"budget_id" doc:"Id or name of the budget."`
}

// CreateBudgetRequest creates a budget.
type CreateBudgetRequest struct {
	Body struct {
		api.Budget
		AdminFields
	}
}

// ListBudgetsRequest lists budgets.
type ListBudgetsRequest struct {
	PageFields
	Scope     string `query:"scope" doc:"Budgets of this scope type, or type:value, such as lane:mail."`
	Exhausted *bool  `query:"exhausted" doc:"Budgets without capacity in some dimension; false: the others."`
	State     string `query:"state" enum:"active,closed" doc:"Budgets in this state."`
}

// BudgetEpochsRequest lists epochs.
type BudgetEpochsRequest struct {
	ByBudget
	PageFields
}

// BudgetSpendRequest lists usage per execution.
type BudgetSpendRequest struct {
	ByBudget
	PageFields
	Epoch       *int64 `query:"epoch" minimum:"0" doc:"In this epoch; default: the current one."`
	ExecutionID string `query:"execution" argument:"execution_id" doc:"By this execution."`
}

// UpdateBudgetRequest changes a budget; absent fields are not changed.
type UpdateBudgetRequest struct {
	ByBudget
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    struct {
		api.BudgetUpdate
		AdminFields
	}
}

// ChangeBudgetRequest closes, reopens, resets or deletes a budget.
type ChangeBudgetRequest struct {
	ByBudget
	IfMatch *Revision `header:"If-Match" argument:"revision" doc:"Refuse if the revision differs."`
	Body    AdminFields
}
