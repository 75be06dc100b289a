package wire

// FlowChecked is the result of a dry run.
type FlowChecked struct {
	OK    bool     `json:"ok" doc:"Whether the flow is valid."`
	Order []string `json:"order" doc:"The members in topological order."`
}

// FlowUsage is the total usage of the members of a flow.
type FlowUsage struct {
	FlowID string           `json:"flow_id" doc:"The flow."`
	Usage  map[string]int64 `json:"usage" doc:"Usage by dimension."`
}
