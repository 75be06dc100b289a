package api

import (
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// NodeFields are the fields of a submission that a member of a graph may have.
type NodeFields struct {
	Kind        string             `json:"kind,omitempty" maxLength:"128" doc:"Kind of work."`
	Lane        string             `json:"lane,omitempty" maxLength:"64" doc:"Queue to go through; default if absent."`
	Priority    *int               `json:"priority,omitempty" doc:"Larger starts earlier; clamped into 0..9000."`
	DelayMS     *int64             `json:"delay_ms,omitempty" oneof:"start" minimum:"0" maximum:"315360000000" doc:"Not started for so long."`
	DelayUntil  time.Time          `json:"delay_until,omitzero" oneof:"start" doc:"Not started before this moment."`
	DeadlineAt  time.Time          `json:"deadline_at,omitzero" doc:"Expires at this moment."`
	Tags        map[string]string  `json:"tags,omitzero" doc:"Tags by key."`
	Policy      *Policy            `json:"policy,omitempty" doc:"How it is run: retries, timeouts, routing, retention."`
	Requires    []string           `json:"requires,omitempty" doc:"Capabilities that a worker must have; short for the field of the policy."`
	FairnessKey string             `json:"fairness_key,omitempty" maxLength:"128" doc:"Shares a lane fairly among its keys; short for the field of the policy."`
	Quotas      []QuotaUse         `json:"quotas,omitempty" doc:"Quotas that limit it; short for the field of the policy."`
	BudgetIDs   []string           `json:"budget_ids,omitempty" doc:"Budgets that it uses, by id or name; short for the field of the policy."`
	Estimate    map[string]int64   `json:"estimate,omitempty" doc:"What it is expected to use, by dimension; short for the field of the policy."`
	Budgets     []BudgetDefinition `json:"budgets,omitempty" doc:"Budgets that are made with it and cover it alone, up to 4; short for the field of the policy."`
	Input       Payload            `json:"input,omitempty" spread:"sent" doc:"The input."`
}

// MarshalJSON writes the fields with the members of the input.
func (f NodeFields) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// FlowNode is a member of a graph to submit, or a child to spawn, as it travels. Package flowfabric has a builder for it: Node.
type FlowNode struct {
	Name        string    `json:"name" required:"true" maxLength:"64" doc:"Name in the flow, of letters, digits, dots, dashes and underscores."`
	ExecutionID string    `json:"execution_id,omitempty" doc:"Id of the execution that the caller brings; it must carry the number of the flow's."`
	Join        *JoinSpec `json:"join,omitempty" doc:"How many of the edges that lead to it it needs; all of them if absent."`
	MayFail     bool      `json:"may_fail,omitempty" doc:"Its failure is none of the flow's."`
	After       []string  `json:"after,omitempty" doc:"Names of members whose success it waits for, and whose results it gets under their names."`
	Flow        *SubFlow  `json:"flow,omitempty" doc:"A graph in place of work of its own."`
	NodeFields
}

// MarshalJSON writes the node with the members of its input.
func (n FlowNode) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&n) }

// SubFlow is a graph: one that stands in the place of a member, or the children of a spawn.
type SubFlow struct {
	Defaults *NodeFields `json:"defaults,omitempty" doc:"What nodes have that leave it out."`
	Nodes    []FlowNode  `json:"nodes" required:"true" doc:"The members."`
	Edges    []FlowEdge  `json:"edges,omitempty" most:"100000" doc:"Who waits for whom."`
	Output   string      `json:"output,omitempty" doc:"Name of the member whose result is that of the node."`
}

// JoinSpec says how many of its edges a member needs.
type JoinSpec struct {
	Policy      string      `json:"policy,omitempty" enum:"all_of,any_of,quorum" doc:"all_of if absent."`
	K           int         `json:"k,omitempty" minimum:"0" doc:"Of quorum: so many."`
	OnSatisfied OnSatisfied `json:"on_satisfied,omitempty" enum:"let_run,cancel_remaining" doc:"What becomes of members that are not needed any more; let_run if absent."`
}

// FlowEdge is an edge to make.
type FlowEdge struct {
	EdgeID string `json:"edge_id,omitempty" doc:"Id of the edge; minted if absent."`
	From   string `json:"from" required:"true" doc:"Name of the member that is waited for; in an extension also its id."`
	To     string `json:"to" required:"true" doc:"Name of the member that waits; in an extension also its id."`
	Kind   string `json:"kind,omitempty" enum:"success_only,failure_only,any_terminal" doc:"Which ends of the first let the second go on; success_only if absent."`
	Pass   string `json:"pass,omitempty" maxLength:"64" doc:"Name under which the second gets the result of the first; absent: it does not."`
}

// OnSatisfied says what becomes of members that a join does not need any more. "" is let_run.
type OnSatisfied string

// The words of OnSatisfied.
const (
	OnSatisfiedLetRun          OnSatisfied = letRun
	OnSatisfiedCancelRemaining OnSatisfied = cancelRemaining
)

// UnmarshalText reads a known word; else invalid_argument.
func (o *OnSatisfied) UnmarshalText(text []byte) error {
	if word := OnSatisfied(text); slices.Contains([]OnSatisfied{"", OnSatisfiedLetRun, OnSatisfiedCancelRemaining}, word) {
		*o = word
		return nil
	}
	return jsonx.Invalid("this word is not known here", "use let_run or cancel_remaining")
}
