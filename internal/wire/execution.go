package wire

// ExecutionID is an execution with view=ids.
type ExecutionID struct {
	ExecutionID string `json:"execution_id" doc:"Id of the execution."`
}
