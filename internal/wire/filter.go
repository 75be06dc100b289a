package wire

// FilterFields select executions by query parameters (U34). All given ones must hold, of the values in one any.
type FilterFields struct {
	Status           []string           `query:"status" doc:"Statuses, by comma."`
	PublicState      []string           `query:"public_state" doc:"Public states, by comma."`
	Reason           []string           `query:"reason" doc:"Reasons, by comma."`
	Next             []string           `query:"next" doc:"What the next acquisition does, by comma: initial, retry, reclaim, replay, resume."`
	Kind             []string           `query:"kind" doc:"Kinds, by comma."`
	Lane             []string           `query:"lane" doc:"Lanes, by comma."`
	WorkerInstanceID []string           `query:"worker_instance_id" doc:"Instances that hold the lease or held the last one, by comma."`
	FlowID           []string           `query:"flow_id" doc:"Flows, by comma."`
	ParentID         []string           `query:"parent_id" doc:"Executions that spawned them, by comma."`
	Creator          []string           `query:"creator" doc:"Who submitted them, by comma."`
	IdempotencyKey   []string           `query:"idempotency_key" doc:"Idempotency keys, by comma."`
	Tags             map[string]*string `query:"tag." doc:"tag.<key>=<value>, or tag.<key> for any value."`
	CreatedFrom      Time               `query:"created_from" doc:"Created at this moment or later."`
	CreatedTo        Time               `query:"created_to" doc:"Created before this moment."`
	CompletedFrom    Time               `query:"completed_from" doc:"Ended at this moment or later."`
	CompletedTo      Time               `query:"completed_to" doc:"Ended before this moment."`
	UpdatedFrom      Time               `query:"updated_from" doc:"Changed at this moment or later."`
	UpdatedTo        Time               `query:"updated_to" doc:"Changed before this moment."`
	PriorityMin      *int               `query:"priority_min" doc:"Priority of at least this."`
	PriorityMax      *int               `query:"priority_max" doc:"Priority of at most this."`
	Query            string             `query:"q" doc:"Beginning of an id, an idempotency key, or words of kind, tags and failure message."`
}

// Filter is the same selection in a body (U57). A tag with null as value has any value.
type Filter struct {
	Status           []string           `json:"status,omitempty" doc:"Statuses."`
	PublicState      []string           `json:"public_state,omitempty" doc:"Public states."`
	Reason           []string           `json:"reason,omitempty" doc:"Reasons."`
	Next             []string           `json:"next,omitempty" doc:"What the next acquisition does."`
	Kind             []string           `json:"kind,omitempty" doc:"Kinds."`
	Lane             []string           `json:"lane,omitempty" doc:"Lanes."`
	WorkerInstanceID []string           `json:"worker_instance_id,omitempty" doc:"Instances that hold the lease or held the last one."`
	FlowID           []string           `json:"flow_id,omitempty" doc:"Flows."`
	ParentID         []string           `json:"parent_id,omitempty" doc:"Executions that spawned them."`
	Creator          []string           `json:"creator,omitempty" doc:"Who submitted them."`
	IdempotencyKey   []string           `json:"idempotency_key,omitempty" doc:"Idempotency keys."`
	Tags             map[string]*string `json:"tags,omitempty" doc:"Tags by key; null: any value."`
	CreatedFrom      Time               `json:"created_from,omitzero" doc:"Created at this moment or later."`
	CreatedTo        Time               `json:"created_to,omitzero" doc:"Created before this moment."`
	CompletedFrom    Time               `json:"completed_from,omitzero" doc:"Ended at this moment or later."`
	CompletedTo      Time               `json:"completed_to,omitzero" doc:"Ended before this moment."`
	UpdatedFrom      Time               `json:"updated_from,omitzero" doc:"Changed at this moment or later."`
	UpdatedTo        Time               `json:"updated_to,omitzero" doc:"Changed before this moment."`
	PriorityMin      *int               `json:"priority_min,omitempty" doc:"Priority of at least this."`
	PriorityMax      *int               `json:"priority_max,omitempty" doc:"Priority of at most this."`
	Query            string             `json:"q,omitempty" doc:"Beginning of an id, an idempotency key, or words of kind, tags and failure message."`
}

// Filter is the selection in the form of bodies.
func (f FilterFields) Filter() Filter { return Filter(f) }

// Fields is the selection in the form of queries.
func (f Filter) Fields() FilterFields { return FilterFields(f) }

// ListExecutionsRequest lists executions.
type ListExecutionsRequest struct {
	FilterFields
	PageFields
	Order string `query:"order" enum:"created_desc,created_asc,completed_desc,id_asc" doc:"Order of the list; created_desc if absent."`
	View  View   `query:"view" enum:"ids,summary" doc:"How much to show; summary if absent."`
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
	Include  []string `query:"include" doc:"What to add, by comma: input, result, attempts, signals, events."`
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
}
