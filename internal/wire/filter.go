package wire

// FilterFields select executions by query parameters (U34). All given ones must match; several values of one are alternatives.
type FilterFields struct {
	Status           []string           `query:"status" doc:"Statuses, comma-separated."`
	PublicState      []string           `query:"public_state" doc:"Public states, comma-separated."`
	Reason           []string           `query:"reason" doc:"Reasons, comma-separated."`
	Next             []string           `query:"next" doc:"How the next attempt begins, comma-separated: initial, retry, reclaim, replay, resume."`
	Kind             []string           `query:"kind" doc:"Kinds, comma-separated."`
	Lane             []string           `query:"lane" doc:"Lanes, comma-separated."`
	WorkerInstanceID []string           `query:"worker_instance_id" doc:"Instances that hold the lease or held the last one, comma-separated."`
	FlowID           []string           `query:"flow_id" doc:"Flows, comma-separated."`
	ParentID         []string           `query:"parent_id" doc:"Executions that spawned them, comma-separated."`
	Creator          []string           `query:"creator" doc:"Who submitted them, comma-separated."`
	IdempotencyKey   []string           `query:"idempotency_key" doc:"Idempotency keys, comma-separated."`
	Tags             map[string]*string `query:"tag." doc:"tag.<key>=<value>, or tag.<key> for any value."`
	CreatedFrom      Time               `query:"created_from" doc:"Created at or after this time."`
	CreatedTo        Time               `query:"created_to" doc:"Created before this time."`
	CompletedFrom    Time               `query:"completed_from" doc:"Ended at or after this time."`
	CompletedTo      Time               `query:"completed_to" doc:"Ended before this time."`
	UpdatedFrom      Time               `query:"updated_from" doc:"Changed at or after this time."`
	UpdatedTo        Time               `query:"updated_to" doc:"Changed before this time."`
	PriorityMin      *int               `query:"priority_min" doc:"Minimum priority."`
	PriorityMax      *int               `query:"priority_max" doc:"Maximum priority."`
	Query            string             `query:"q" doc:"Prefix of an id or an idempotency key, or words of kind, tags and failure message."`
}

// Filter is the same selection in a body (U57). A tag with null as value matches any value.
type Filter struct {
	Status           []string           `json:"status,omitempty" doc:"Statuses."`
	PublicState      []string           `json:"public_state,omitempty" doc:"Public states."`
	Reason           []string           `json:"reason,omitempty" doc:"Reasons."`
	Next             []string           `json:"next,omitempty" doc:"How the next attempt begins."`
	Kind             []string           `json:"kind,omitempty" doc:"Kinds."`
	Lane             []string           `json:"lane,omitempty" doc:"Lanes."`
	WorkerInstanceID []string           `json:"worker_instance_id,omitempty" doc:"Instances that hold the lease or held the last one."`
	FlowID           []string           `json:"flow_id,omitempty" doc:"Flows."`
	ParentID         []string           `json:"parent_id,omitempty" doc:"Executions that spawned them."`
	Creator          []string           `json:"creator,omitempty" doc:"Who submitted them."`
	IdempotencyKey   []string           `json:"idempotency_key,omitempty" doc:"Idempotency keys."`
	Tags             map[string]*string `json:"tags,omitempty" doc:"Tags by key; null: any value."`
	CreatedFrom      Time               `json:"created_from,omitzero" doc:"Created at or after this time."`
	CreatedTo        Time               `json:"created_to,omitzero" doc:"Created before this time."`
	CompletedFrom    Time               `json:"completed_from,omitzero" doc:"Ended at or after this time."`
	CompletedTo      Time               `json:"completed_to,omitzero" doc:"Ended before this time."`
	UpdatedFrom      Time               `json:"updated_from,omitzero" doc:"Changed at or after this time."`
	UpdatedTo        Time               `json:"updated_to,omitzero" doc:"Changed before this time."`
	PriorityMin      *int               `json:"priority_min,omitempty" doc:"Minimum priority."`
	PriorityMax      *int               `json:"priority_max,omitempty" doc:"Maximum priority."`
	Query            string             `json:"q,omitempty" doc:"Prefix of an id or an idempotency key, or words of kind, tags and failure message."`
}

// Filter converts the selection to the form of bodies.
func (f FilterFields) Filter() Filter { return Filter(f) }

// Fields converts the selection to the form of queries.
func (f Filter) Fields() FilterFields { return FilterFields(f) }

// ListExecutionsRequest lists executions.
type ListExecutionsRequest struct {
	FilterFields
	PageFields
	Order string `query:"order" enum:"created_desc,created_asc,completed_desc,id_asc" doc:"Order of the list; default created_desc."`
	View  View   `query:"view" enum:"ids,summary" doc:"Level of detail; default summary."`
}

// CountRequest counts executions.
type CountRequest struct {
	FilterFields
	By string `query:"by" doc:"Also count by status, public_state, kind, lane or tag.<key>."`
}

// ExportRequest exports executions.
type ExportRequest struct {
	FilterFields
	PageFields
	Include  []string `query:"include" doc:"What to include, comma-separated: input, result, attempts, signals, events, frames. Frames over 16 MiB are cut: frames_next is the position to read on after."`
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
}
