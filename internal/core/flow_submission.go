package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// FlowSubmission requests a whole graph (F8). It is checked by CheckShape, CheckNodes and CheckGraph, in this order (F12).
type FlowSubmission struct {
	ID             *base.GivenID // nil: the engine mints one
	Namespace      string        // "": default
	Kind           string
	Creator        string   // "": the engine fills in the principal and its key
	CreatorKey     string   `json:",omitempty"` // see Submitter; not part of the fingerprint
	IdempotencyKey string   // "": none
	Defaults       FlowNode // supplies what a node omits; it has no name, join, edges or flow of its own
	Nodes          []FlowNode
	Edges          []FlowEdge
	Output         string // name of a node; "": the flow has no result
	Unsealed       bool   // members and edges may still be added
	Tags           base.Tags
	Budgets        []byte      // JSON of the budgets whose scope is this flow, in the form of the field budgets of a policy; empty: none
	Trace          *base.Trace `json:",omitempty"` // not part of the fingerprint
}

// FlowNode is a member to be made (F9): the fields of a submission that the caller gave, and its place in the graph.
type FlowNode struct {
	ID         *base.GivenID // of the execution, with the N of the flow; nil: the engine mints one
	Name       string
	Lane       string // "": as the defaults say
	Kind       string
	Input      *Payload // nil: as the defaults say
	Priority   *int
	DelayUntil base.Time
	DelayMS    *base.Millis
	DeadlineAt base.Time
	PolicyJSON []byte    // empty: as the defaults say
	Tags       base.Tags // nil: as the defaults say
	Join       *JoinSpec // nil: all of its inbound edges
	MayFail    bool
	After      []string        // upstreams with a success_only edge to this node
	Flow       *FlowSubmission // a sub-flow in place of a handler (F46): its nodes, edges, output and defaults are used
	Trace      *base.Trace     `json:",omitempty"`
}

// FlowEdge is an edge to be made (F9). From and To are names of members, or in an extension also their ids.
type FlowEdge struct {
	ID   base.UUID // absent: the engine mints one
	From string
	To   string
	Kind EdgeKind // "": success_only
	Pass string   // "": passes nothing
}

// FlowMember is an existing execution that is to become a member (F14).
type FlowMember struct {
	ID   base.GivenID
	Name string
}

// FlowExtension requests additions to a graph (F14).
type FlowExtension struct {
	Flow     base.GivenID
	Expected *int64 // the graph revision that the caller knows; nil: any
	Defaults FlowNode
	Nodes    []FlowNode
	Members  []FlowMember
	Edges    []FlowEdge
	Seal     bool
	Trace    *base.Trace
}

// Limits of flows (section 12 of the flows).
const (
	MaxFlowRequestNodes = 5_000
	MaxFlowRequestEdges = 50_000
	MaxFlowMembers      = 100_000
	MaxFlowEdges        = 500_000
	MaxInboundEdges     = 10_000
	MaxSpawned          = 1_000
	MaxChildren         = 100_000
	MaxFlowDepth        = 32
)
