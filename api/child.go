package api

// Child is a child as its parent sees it.
type Child struct {
	Name          string `json:"name" doc:"Its name."`
	ID            ID     `json:"execution_id" doc:"Its execution."`
	Outcome       Status `json:"outcome,omitempty" doc:"How it ended; absent: it has not."`
	HasResult     bool   `json:"has_result,omitempty" doc:"It left a result: the route /result of its execution delivers it."` // which ChildResult fetches
	ResultType    string `json:"result_content_type,omitempty" doc:"Content type of the result."`
	ResultSize    int    `json:"result_size,omitempty" doc:"Size of the result in bytes."`
	FailureReason string `json:"failure_reason,omitempty" doc:"Why it did not succeed."`
}
