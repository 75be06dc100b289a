package api

// ExecutionBudget is a budget that an execution is charged to.
type ExecutionBudget struct {
	ID       string           `json:"budget_id" doc:"Id of the budget."`
	Reserved map[string]int64 `json:"reserved,omitempty" doc:"What its lease or grant still has of it, by dimension."`
}
