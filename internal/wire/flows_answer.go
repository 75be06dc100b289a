package wire

// FlowChecked is the answer to a dry run.
type FlowChecked struct {
	OK    bool     `json:"ok" doc:"It would be taken."`
	Order []string `json:"order" doc:"The members, each after all that it waits for."`
}

// FlowUsage is what the members of a flow have used.
type FlowUsage struct {
	FlowID string           `json:"flow_id" doc:"The flow."`
	Usage  map[string]int64 `json:"usage" doc:"What was used, by dimension."`
}
