package flowfabric

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Flows are graphs of executions: members, and edges that make one member wait for the end of another. A flow is submitted whole,
// or created empty and extended. Every call takes the id of the flow; an unknown id is flow_not_found.
type Flows struct {
	via   transport.Transport
	clock clock.Clock // generates ids and measures how long a cancel has waited
}

// Submit submits a whole graph, all or nothing. When it returns without an error the graph is durable, and members that wait for
// no other member may start. With the idempotency key or id of an existing flow, it returns that flow.
//
// Codes, with the path of the invalid field: invalid_flow, flow_limit_exceeded, nesting_limit_exceeded, those of Client.Submit
// for a node, duplicate_name, unknown_name, self_referencing_edge, dependency_already_exists, cycle_detected with the cycle,
// join_without_edges, invalid_join, quorum_exceeds_edges, partition_mismatch, idempotency_conflict, flow_already_exists.
func (f Flows) Submit(ctx context.Context, flow Flow) (*FlowRun, error) {
	return f.make(ctx, flow, false)
}

// make makes a flow under an id that is generated before the first try.
func (f Flows) make(ctx context.Context, flow Flow, empty bool) (*FlowRun, error) {
	minted := flow.ID == ""
	if minted {
		flow.ID = mint.ID(f.clock)
	}
	request, err := flow.request()
	if err != nil {
		return nil, err
	}
	request.Empty = empty
	run, err := transport.Call(ctx, f.via, wire.SubmitFlow, request, transport.Options{})
	if err != nil {
		return nil, err
	}
	if minted && sameID(run.ID, flow.ID) {
		run.Created = true // no other caller can have used the id: an earlier try, whose answer was lost, created the flow
	}
	return run, nil
}

// Check validates a flow as Submit does but writes nothing, and returns the names of the members, each after those that it waits
// for.
//
// Codes: those of Submit.
func (f Flows) Check(ctx context.Context, flow Flow) (order []string, err error) {
	if flow.ID == "" {
		flow.ID = mint.ID(f.clock)
	}
	request, err := flow.request()
	if err != nil {
		return nil, err
	}
	request.Body.DryRun = true
	checked, err := transport.Call(ctx, f.via, wire.CheckFlow, request, transport.Options{})
	if err != nil {
		return nil, err
	}
	return checked.Order, nil
}

// Create creates an empty flow, which is not sealed. Only ID, Kind and Tags may be set; anything else is invalid_argument.
//
// Codes: invalid_flow, flow_already_exists for a different flow with the id.
func (f Flows) Create(ctx context.Context, flow Flow) (*FlowRun, error) {
	return f.make(ctx, flow, true)
}

// Extend adds members and edges, all or nothing. Add a node in the same call as the edges that lead to it: it cannot start before
// they are satisfied. Members and edges that exist already are left unchanged.
//
// Codes: those of Submit, flow_not_found, flow_already_terminal, flow_sealed, stale_graph_revision with the current one,
// execution_not_found, execution_already_in_flow, name_taken, execution_not_in_flow, edge_id_taken, join_already_decided,
// downstream_already_started.
func (f Flows) Extend(ctx context.Context, id ID, x FlowExtension) (*FlowRun, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	body, err := x.wire()
	if err != nil {
		return nil, err
	}
	request := &wire.ExtendFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(x.Revision), Body: body}
	return transport.Call(ctx, f.via, wire.ExtendFlow, request, transport.Options{Key: x.RequestKey})
}

// Seal declares a flow complete: nothing can be added, and it ends once all its members have ended. Sealing twice is not an
// error.
//
// Codes: flow_not_found, flow_already_terminal, stale_graph_revision.
func (f Flows) Seal(ctx context.Context, id ID, o ...SealOptions) (*FlowRun, error) {
	options, path, err := ofFlow(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.SealFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(options.Revision)}
	return transport.Call(ctx, f.via, wire.SealFlow, request, transport.Options{Key: options.RequestKey})
}

// Get returns a flow and the number of its members in each state, all read at one moment. Codes: flow_not_found.
func (f Flows) Get(ctx context.Context, id ID) (*FlowView, error) {
	return f.get(ctx, id, 0)
}

// get returns a flow; if wait is not 0, once it has ended or the wait is over.
func (f Flows) get(ctx context.Context, id ID, wait time.Duration) (*FlowView, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, f.via, wire.GetFlow, &wire.GetFlowRequest{ByFlow: path, WaitFields: wire.WaitUpTo(wait)}, transport.Options{Wait: wait})
}

// Wait returns the flow once it has ended, with any outcome. It waits as long as ctx allows. Codes: flow_not_found.
func (f Flows) Wait(ctx context.Context, id ID) (*FlowView, error) {
	var idle backoff.Idle
	for {
		began := f.clock.Now()
		flow, err := f.get(ctx, id, calls.LongPoll)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("flowfabric: waiting for %s: %w", id, context.Cause(ctx))
		case err != nil || flow.State.Terminal():
			return flow, err
		}
		idle.Pause(ctx, f.clock, began, calls.LongPoll)
	}
}

// Graph returns all members and edges. Codes: flow_not_found.
func (f Flows) Graph(ctx context.Context, id ID) (*api.FlowGraph, error) {
	whole, err := f.GraphPage(ctx, id)
	if err != nil {
		return nil, err
	}
	for whole.NextCursor != "" {
		next, err := f.GraphPage(ctx, id, PageOptions{Cursor: whole.NextCursor})
		if err != nil {
			return nil, err
		}
		whole.Members, whole.Edges = append(whole.Members, next.Members...), append(whole.Edges, next.Edges...)
		whole.NextCursor = next.NextCursor
	}
	return whole, nil
}

// GraphPage returns a part of the graph: members by name, and the edges that lead from them. Codes: flow_not_found,
// invalid_cursor.
func (f Flows) GraphPage(ctx context.Context, id ID, o ...PageOptions) (*api.FlowGraph, error) {
	options, path, err := ofFlow(id, o)
	if err != nil {
		return nil, err
	}
	part := calls.PageFields(options.Limit, options.Cursor)
	request := &wire.GetGraphRequest{ByFlow: path, Limit: part.Limit, Cursor: part.Cursor}
	return transport.Call(ctx, f.via, wire.GetGraph, request, transport.Options{})
}

// List iterates over the flows, newest first, without counts. Codes: invalid_argument, invalid_cursor.
func (f Flows) List(ctx context.Context, q ...FlowQuery) iter.Seq2[*FlowView, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (Page[*FlowView], error) {
		query.Cursor = cursor
		return f.Page(ctx, query)
	})
}

// Page returns one page of them. Codes: invalid_argument, invalid_cursor.
func (f Flows) Page(ctx context.Context, q ...FlowQuery) (Page[*FlowView], error) {
	query, err := transport.Single(q)
	if err != nil {
		return Page[*FlowView]{}, err
	}
	request := &wire.ListFlowsRequest{
		PageFields: calls.PageFields(query.Limit, query.Cursor), Kind: query.Kind, State: string(query.State), Creator: query.Creator,
		CreatedFrom: calls.Time(query.CreatedFrom), CreatedTo: calls.Time(query.CreatedTo), Tags: make(map[string]*string, len(query.Tags)),
	}
	for key, value := range query.Tags {
		request.Tags[key] = &value
	}
	return calls.Value(transport.Call(ctx, f.via, wire.ListFlows, request, transport.Options{}))
}

// Members iterates over the members by name. Codes: flow_not_found, invalid_argument.
func (f Flows) Members(ctx context.Context, id ID, q ...MemberQuery) iter.Seq2[api.FlowMember, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (Page[api.FlowMember], error) {
		query.Cursor = cursor
		return f.MembersPage(ctx, id, query)
	})
}

// MembersPage returns one page of them. Codes: flow_not_found, invalid_argument, invalid_cursor.
func (f Flows) MembersPage(ctx context.Context, id ID, q ...MemberQuery) (Page[api.FlowMember], error) {
	query, path, err := ofFlow(id, q)
	if err != nil {
		return Page[api.FlowMember]{}, err
	}
	request := &wire.ListMembersRequest{ByFlow: path, PageFields: calls.PageFields(query.Limit, query.Cursor), State: query.State}
	return calls.Value(transport.Call(ctx, f.via, wire.ListFlowMembers, request, transport.Options{}))
}

// Edges iterates over the edges of a flow, or of one member. Codes: flow_not_found, execution_not_in_flow.
func (f Flows) Edges(ctx context.Context, id ID, q ...EdgeQuery) iter.Seq2[api.EdgeView, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (Page[api.EdgeView], error) {
		query.Cursor = cursor
		return f.EdgesPage(ctx, id, query)
	})
}

// EdgesPage returns one page of them. Codes: flow_not_found, execution_not_in_flow, invalid_cursor.
func (f Flows) EdgesPage(ctx context.Context, id ID, q ...EdgeQuery) (Page[api.EdgeView], error) {
	query, path, err := ofFlow(id, q)
	if err != nil {
		return Page[api.EdgeView]{}, err
	}
	request := &wire.ListEdgesRequest{ByFlow: path, PageFields: calls.PageFields(query.Limit, query.Cursor), From: query.From, To: query.To}
	return calls.Value(transport.Call(ctx, f.via, wire.ListFlowEdges, request, transport.Options{}))
}

// Edge returns one edge. Codes: flow_not_found, edge_not_found, invalid_id.
func (f Flows) Edge(ctx context.Context, id ID, edge string) (*api.EdgeView, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	if _, ok := base.ParseUUID(edge); !ok { // it would not form a single path segment
		return nil, calls.Refuse(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(edge)).At("edge", "name the edge by its id")
	}
	return transport.Call(ctx, f.via, wire.GetFlowEdge, &wire.GetEdgeRequest{ByFlow: path, Edge: edge}, transport.Options{})
}

// SetJoin sets how many of its inbound edges a member needs, before it has any. Repeating it changes nothing.
//
// Codes: flow_not_found, execution_not_in_flow, invalid_join, join_already_fixed, flow_already_terminal.
func (f Flows) SetJoin(ctx context.Context, id ID, member string, j Join) (*api.JoinView, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	request := &wire.SetJoinRequest{ByMember: wire.ByMember{ByFlow: path, Name: member}}
	spec := joinWire(j)
	request.Body.Policy, request.Body.K, request.Body.OnSatisfied = cmp.Or(spec.Policy, string(JoinAll)), spec.K, spec.OnSatisfied
	return transport.Call(ctx, f.via, wire.SetJoin, request, transport.Options{})
}

// Join returns the state of a member's join: its numbers, and the members that have not ended. Codes: flow_not_found,
// execution_not_in_flow.
func (f Flows) Join(ctx context.Context, id ID, member string) (*api.JoinView, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, f.via, wire.GetJoin, &wire.ByMember{ByFlow: path, Name: member}, transport.Options{})
}

// Cancel ends a flow and, according to its policy, its members. Members that have ended keep their outcome. A stronger policy
// replaces a weaker one; otherwise a repeat reports the progress. A flow that has completed or failed is left unchanged, which is
// not an error.
//
// Codes: flow_not_found, invalid_argument for an unknown policy.
func (f Flows) Cancel(ctx context.Context, id ID, c FlowCancel) (api.FlowCancelProgress, error) {
	path, err := byFlow(id)
	if err != nil {
		return api.FlowCancelProgress{}, err
	}
	if c.Wait < 0 || c.Wait > longestCancel {
		return api.FlowCancelProgress{}, calls.Refuse(base.CodeInvalidArgument, "a wait of %s", c.Wait).At("wait_ms", "give 0 to 5 minutes")
	}
	until := f.clock.Now().Add(c.Wait)
	var idle backoff.Idle
	for key := c.RequestKey; ; key = "" { // the later calls are separate ones: they report the progress (F52)
		began := f.clock.Now()
		left := max(until.Sub(began), 0)
		piece := left
		if c.Progress != nil {
			piece = min(left, cancelLook)
		}
		progress, err := f.cancel(ctx, path, c, transport.Options{Key: key, Wait: piece})
		if err != nil || progress.Remaining == 0 || left <= piece {
			return progress, err
		}
		c.Progress(progress)
		if !idle.Pause(ctx, f.clock, began, piece) {
			return progress, fmt.Errorf("flowfabric: cancelling %s: %w", id, context.Cause(ctx))
		}
	}
}

// Bounds of a cancel that waits (F53).
const (
	longestCancel = 300 * time.Second
	cancelLook    = time.Second // interval at which a cancel with Progress asks
)

func (f Flows) cancel(ctx context.Context, path wire.ByFlow, c FlowCancel, how transport.Options) (api.FlowCancelProgress, error) {
	request := &wire.CancelFlowRequest{ByFlow: path}
	request.Body.Policy, request.Body.Reason = string(c.Policy), c.Reason
	if how.Wait > 0 {
		ms := calls.Millis(how.Wait)
		request.WaitMS = &ms
	}
	return calls.Value(transport.Call(ctx, f.via, wire.CancelFlow, request, how))
}

// Delete removes a flow that has ended, with its members, their sub-flows and children, and all their data. They become invisible
// at once; their rows are deleted soon after.
//
// Codes: flow_not_found, stale_graph_revision, flow_not_terminal while a member works, retained with the cause: a member is
// retained (retain), children of a member have not ended (children), the flow belongs to an execution (parent), or the end of the
// flow is still being propagated to its members (follow_up).
func (f Flows) Delete(ctx context.Context, id ID, o ...FlowDeletion) error {
	options, path, err := ofFlow(id, o)
	if err != nil {
		return err
	}
	request := &wire.DeleteFlowRequest{ByFlow: path, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.Reason = options.Reason
	_, err = transport.Call(ctx, f.via, wire.DeleteFlow, request, transport.Options{Key: options.RequestKey})
	return err
}

// Usage returns the total usage of the members, by dimension. Codes: flow_not_found.
func (f Flows) Usage(ctx context.Context, id ID) (map[string]int64, error) {
	path, err := byFlow(id)
	if err != nil {
		return nil, err
	}
	answer, err := transport.Call(ctx, f.via, wire.GetFlowUsage, &path, transport.Options{})
	if err != nil {
		return nil, err
	}
	return amounts(answer.Usage), nil
}

// SetTags sets the given keys and deletes those whose value is nil, all or nothing, and returns all tags.
//
// Codes: flow_not_found, invalid_tag_key, invalid_argument, idempotency_conflict.
func (f Flows) SetTags(ctx context.Context, id ID, changes map[string]*string, o ...FlowAction) (map[string]string, error) {
	options, path, err := ofFlow(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.PatchFlowTagsRequest{ByFlow: path, Body: changes}
	answer, err := calls.Value(transport.Call(ctx, f.via, wire.PatchFlowTags, request, transport.Options{Key: options.RequestKey}))
	return answer.Tags, err
}

// ReplaceTags replaces all tags of the flow. Codes: those of SetTags.
func (f Flows) ReplaceTags(ctx context.Context, id ID, tags map[string]string, o ...FlowAction) (map[string]string, error) {
	options, path, err := ofFlow(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.PutFlowTagsRequest{ByFlow: path, Body: tags}
	answer, err := calls.Value(transport.Call(ctx, f.via, wire.PutFlowTags, request, transport.Options{Key: options.RequestKey}))
	return answer.Tags, err
}

// byFlow formats the id of a flow for a path; invalid_id.
func byFlow(id ID) (wire.ByFlow, error) {
	if _, err := calls.ParseID(id); err != nil {
		return wire.ByFlow{}, err
	}
	return wire.ByFlow{ID: string(id)}, nil
}

// ofFlow returns the options of a call on a flow, with the id of the flow in the form of paths.
func ofFlow[O any](id ID, o []O) (options O, path wire.ByFlow, err error) {
	if options, err = transport.Single(o); err == nil {
		path, err = byFlow(id)
	}
	return options, path, err
}

// Flow is a graph to submit.
type Flow struct {
	ID             ID     // generated by the client when empty, so that a repeat finds the same flow
	Kind           string // 1..128 bytes of 0x21..0x7e
	IdempotencyKey string // unique in the namespace for one day
	// Defaults apply to nodes that leave a field out: kind, input, lane, priority, times, tags, policy.
	Defaults Node
	Nodes    []Node // at most 5000
	Edges    []Edge // in addition to those of the nodes; at most 50 000 in total
	Output   string // name of the node whose result becomes the result of the flow; "": none
	Unsealed bool   // the flow may be extended: it does not end before Seal
	Tags     map[string]string
	Budgets  []api.BudgetDefinition // created with the flow, covering its members; up to 4
}

// FlowExtension holds the additions to a flow.
type FlowExtension struct {
	Revision *int64 // refuse with stale_graph_revision if the graph has another revision; nil: do not compare
	Defaults Node
	Nodes    []Node           // at most 5000
	Members  []api.Membership // existing executions
	Edges    []Edge           // between members by name or id; at most 50 000
	Seal     bool             // seal the flow after this
	// RequestKey makes the call repeatable for 24 hours; minted by the client when empty.
	RequestKey string
}

// SealOptions are the options of Seal.
type SealOptions struct {
	Revision   *int64 // refuse with stale_graph_revision if the graph has another revision; nil: do not compare
	RequestKey string // generated by the client when empty
}

// FlowDeletion holds the options of Flows.Delete.
type FlowDeletion struct {
	Reason     string // recorded in the event and the audit log
	Revision   *int64 // refuse with stale_graph_revision if the graph has another revision; nil: do not compare
	RequestKey string // generated by the client when empty
}

// FlowAction holds the options of a change of a flow.
type FlowAction struct {
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
}

// FlowRun is a flow after the call that made or changed it, without counts.
type FlowRun = api.FlowRun

// FlowState is the state of a flow.
type FlowState = api.FlowState

// The states of a flow. Completed, failed and cancelled are terminal.
const (
	FlowOpen       = api.FlowOpen
	FlowCancelling = api.FlowCancelling // its members are being cancelled
	FlowCompleted  = api.FlowCompleted
	FlowFailed     = api.FlowFailed
	FlowCancelled  = api.FlowCancelled
)

// FlowView is a flow as readers see it.
type FlowView = api.FlowView

// CancelPolicy says which members the cancellation of a flow affects.
type CancelPolicy = api.CancelPolicy

// The policies of a cancellation, each stronger than the one before.
const (
	CancelFlowOnly = api.CancelFlowOnly // none: they continue, and so do their edges
	CancelPending  = api.CancelPending  // those that no worker has claimed yet
	CancelAll      = api.CancelAll      // all that have not ended
)

// FlowCancel holds the options of Flows.Cancel.
type FlowCancel struct {
	Policy CancelPolicy  // "": CancelAll
	Reason string        // at most 1024 bytes
	Wait   time.Duration // return once nothing remains to be cancelled, or after this long, at most 5 minutes; 0: at once
	// Progress is called while the call waits, whenever there is progress; may be nil.
	Progress   func(api.FlowCancelProgress)
	RequestKey string // makes the call repeatable for 24 hours; minted by the client when empty
}

// FlowQuery selects flows. All given parts must hold; the zero value selects all.
type FlowQuery struct {
	Kind        string
	State       FlowState
	Tags        map[string]string
	CreatedFrom time.Time // included
	CreatedTo   time.Time // excluded
	Creator     string    // principal that created the flow
	PageOptions
}

// MemberQuery selects members of a flow.
type MemberQuery struct {
	State string // public state; "": all
	PageOptions
}

// EdgeQuery selects edges of a flow: all of them, or those that lead from or to a member, given by name or id.
type EdgeQuery struct {
	From string
	To   string
	PageOptions
}
