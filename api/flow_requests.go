package api

import (
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// NodeFields are the fields of a submission that a member of a graph can have.
type NodeFields struct {
	Kind        string             `json:"kind,omitempty" maxLength:"128" doc:"Kind of work."`
	Lane        string             `json:"lane,omitempty" maxLength:"64" doc:"Lane; default if absent."`
	Priority    *int               `json:"priority,omitempty" doc:"Larger starts earlier; clamped into 0..9000."`
	DelayMS     *int64             `json:"delay_ms,omitempty" oneof:"start" minimum:"0" maximum:"315360000000" doc:"Delay before it can start."`
	DelayUntil  time.Time          `json:"delay_until,omitzero" oneof:"start" doc:"It does not start before this time."`
	DeadlineAt  time.Time          `json:"deadline_at,omitzero" doc:"Expires at this time."`
	Tags        map[string]string  `json:"tags,omitzero" doc:"Tags by key."`
	Policy      *Policy            `json:"policy,omitempty" doc:"How to run it: retries, timeouts, routing, retention."`
	Requires    []string           `json:"requires,omitempty" doc:"Capabilities that a worker must have; short for the policy field."`
	FairnessKey string             `json:"fairness_key,omitempty" maxLength:"128" doc:"Key for fair sharing of a lane; short for the policy field."`
	Quotas      []QuotaUse         `json:"quotas,omitempty" doc:"Quotas that limit it; short for the policy field."`
	BudgetIDs   []string           `json:"budget_ids,omitempty" doc:"Budgets that it uses, by id or name; short for the policy field."`
	Estimate    map[string]int64   `json:"estimate,omitempty" doc:"Estimated usage by dimension; short for the policy field."`
	Budgets     []BudgetDefinition `json:"budgets,omitempty" doc:"Budgets created with it that cover only it, up to 4; short for the policy field."`
	Input       Payload            `json:"input,omitempty" spread:"sent" doc:"The input."`
}

// MarshalJSON writes the fields with the members of the input.
func (f NodeFields) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// FlowNode is a member of a graph to submit, or a child to spawn, in API form. Package flowfabric has a builder for it: Node.
type FlowNode struct {
	Name        string    `json:"name" required:"true" maxLength:"64" doc:"Name in the flow, of letters, digits, dots, dashes and underscores."`
	ExecutionID string    `json:"execution_id,omitempty" doc:"Id chosen by the caller; it must carry the number of the flow's id."`
	Join        *JoinSpec `json:"join,omitempty" doc:"How many of its incoming edges it needs; all if absent."`
	MayFail     bool      `json:"may_fail,omitempty" doc:"The flow does not fail if this member fails."`
	After       []string  `json:"after,omitempty" doc:"Names of members whose success it waits for, and whose results it receives under their names."`
	Flow        *SubFlow  `json:"flow,omitempty" doc:"A graph instead of own work."`
	NodeFields
}

// MarshalJSON writes the node with the members of its input.
func (n FlowNode) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// SubFlow is a graph: the content of a sub-flow member, or the children of a spawn.
type SubFlow struct {
	Defaults *NodeFields `json:"defaults,omitempty" doc:"Defaults for fields that nodes omit."`
	Nodes    []FlowNode  `json:"nodes" required:"true" doc:"The members."`
	Edges    []FlowEdge  `json:"edges,omitempty" most:"100000" doc:"Dependencies between members."`
	Output   string      `json:"output,omitempty" doc:"Name of the member whose result is the result of the node."`
}

// JoinSpec says how many of its edges a member needs.
type JoinSpec struct {
	Policy      string      `json:"policy,omitempty" enum:"all_of,any_of,quorum" doc:"all_of if absent."`
	K           int         `json:"k,omitempty" minimum:"0" doc:"For quorum: the number."`
	OnSatisfied OnSatisfied `json:"on_satisfied,omitempty" enum:"let_run,cancel_remaining" doc:"What happens to members that are no longer needed; let_run if absent."`
}

// FlowEdge is an edge to create.
type FlowEdge struct {
	EdgeID string `json:"edge_id,omitempty" doc:"Id of the edge; generated if absent."`
	From   string `json:"from" required:"true" doc:"Name of the upstream member; in an extension also its id."`
	To     string `json:"to" required:"true" doc:"Name of the downstream member; in an extension also its id."`
	Kind   string `json:"kind,omitempty" enum:"success_only,failure_only,any_terminal" doc:"Outcomes of the upstream member that satisfy the edge; success_only if absent."`
	Pass   string `json:"pass,omitempty" maxLength:"64" doc:"Name under which the downstream member receives the result; absent: it does not."`
}

// OnSatisfied is what happens to members that a join no longer needs. "" is let_run.
type OnSatisfied string

// Values of OnSatisfied.
const (
	OnSatisfiedLetRun          OnSatisfied = letRun
	OnSatisfiedCancelRemaining OnSatisfied = cancelRemaining
)

// UnmarshalText reads a known value; others are invalid_argument.
func (o *OnSatisfied) UnmarshalText(text []byte) error {
	if word := OnSatisfied(text); slices.Contains([]OnSatisfied{"", OnSatisfiedLetRun, OnSatisfiedCancelRemaining}, word) {
		*o = word
		return nil
	}
	return jsonx.Invalid("unknown value", "use let_run or cancel_remaining")
}
