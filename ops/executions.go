package ops

import (
	"context"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Executions reads executions.
type Executions struct{ via transport.Transport }

// List iterates over the executions that match and fetches pages as needed. An execution that exists throughout the iteration and
// keeps its place in the order is returned exactly once. An error ends the iteration.
//
// Codes: invalid_filter, invalid_cursor.
func (e Executions) List(ctx context.Context, o ...ListOptions) iter.Seq2[*api.Execution, error] {
	options, err := transport.Single(o)
	return calls.Walk(err, options.Cursor, func(cursor string) (api.Page[*api.Execution], error) {
		options.Cursor = cursor
		return e.Page(ctx, options)
	})
}

// Page returns one page of the list. Codes: invalid_filter, invalid_cursor.
func (e Executions) Page(ctx context.Context, o ...ListOptions) (api.Page[*api.Execution], error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Page[*api.Execution]{}, err
	}
	request := &wire.ListExecutionsRequest{
		FilterFields: options.Filter.wire().Fields(), PageFields: calls.PageFields(options.Limit, options.Cursor), Order: string(options.Order),
	}
	return calls.Value(transport.Call(ctx, e.via, wire.ListExecutions, request, transport.Options{}))
}

// Count counts the executions that match: exactly up to 10 000, and on request also by value. Codes: invalid_filter,
// invalid_argument for an unknown By.
func (e Executions) Count(ctx context.Context, f Filter, o ...CountOptions) (api.Count, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.Count{}, err
	}
	request := &wire.CountRequest{FilterFields: f.wire().Fields(), By: options.By}
	return calls.Value(transport.Call(ctx, e.via, wire.CountExecutions, request, transport.Options{}))
}

// Input returns the input, unchanged. Codes: execution_not_found.
func (e Executions) Input(ctx context.Context, id api.ID) (api.Payload, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return api.Payload{}, err
	}
	return payloadVia(ctx, e.via, wire.GetExecutionInput, &path)
}

// Result returns the result, unchanged; the zero Payload if the execution succeeded without one.
//
// Codes: execution_not_found, execution_not_terminal, execution_not_succeeded.
func (e Executions) Result(ctx context.Context, id api.ID) (api.Payload, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return api.Payload{}, err
	}
	return payloadVia(ctx, e.via, wire.GetExecutionResult, &wire.GetResultRequest{ByID: path})
}

// NamedInput returns what a member of a flow received from another, unchanged; the zero Payload if that one left no result.
// Codes: execution_not_found, input_not_found.
func (e Executions) NamedInput(ctx context.Context, id api.ID, name string) (api.Payload, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return api.Payload{}, err
	}
	return payloadVia(ctx, e.via, wire.ReadInput, &wire.ReadInputRequest{ByID: path, Name: name})
}

// payloadVia makes a call whose answer is a payload.
func payloadVia[Req any](ctx context.Context, via transport.Transport, call wire.Call[Req, wire.Raw], request *Req) (api.Payload, error) {
	raw, err := transport.Call(ctx, via, call, request, transport.Options{})
	if err != nil {
		return api.Payload{}, err
	}
	return api.Payload{Data: raw.Data, ContentType: raw.ContentType}, nil
}

// Attempts returns all attempts by index. Codes: execution_not_found.
func (e Executions) Attempts(ctx context.Context, id api.ID) ([]api.Attempt, error) {
	path, err := calls.ByID(id)
	return calls.Collect(calls.Walk(err, "", func(cursor string) (api.Page[api.Attempt], error) {
		request := &wire.ListAttemptsRequest{PageByID: wire.PageByID{ByID: path, PageFields: calls.PageFields(calls.FullPage, cursor)}}
		return calls.Value(transport.Call(ctx, e.via, wire.ListAttempts, request, transport.Options{}))
	}))
}

// Attempt returns the attempt with an index, or LatestAttempt. Codes: execution_not_found, attempt_not_found.
func (e Executions) Attempt(ctx context.Context, id api.ID, index int) (*api.Attempt, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	n, err := attemptNamed(index)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, e.via, wire.GetAttempt, &wire.GetAttemptRequest{ByID: path, N: n}, transport.Options{})
}

// Explain reports why an execution is not running: every cause with its numbers, its place in the queue, and the workers that
// could claim it. It changes nothing. Codes: execution_not_found, invalid_argument for a negative wait.
func (e Executions) Explain(ctx context.Context, id api.ID, o ...ExplainOptions) (*api.Explanation, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	wait := calls.Millis(options.Wait)
	request := &wire.ExplainRequest{ByID: path, WaitFields: wire.WaitFields{WaitMS: &wait}}
	return transport.Call(ctx, e.via, wire.ExplainExecution, request, transport.Options{Wait: options.Wait})
}

// leasePage is the page size for a lease history.
const leasePage = 200

// Leases iterates over the lease history by epoch; the newest 1000 are kept. Codes: execution_not_found.
func (e Executions) Leases(ctx context.Context, id api.ID) iter.Seq2[api.LeaseRecord, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[api.LeaseRecord], error) {
		return e.LeasesPage(ctx, id, api.PageOptions{Limit: leasePage, Cursor: cursor})
	})
}

// LeasesPage returns one page of the lease history. Codes: execution_not_found, invalid_cursor.
func (e Executions) LeasesPage(ctx context.Context, id api.ID, o ...api.PageOptions) (api.Page[api.LeaseRecord], error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.Page[api.LeaseRecord]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, e.via, wire.ListLeases, request, transport.Options{}))
}

// Steps returns the steps remembered by the current run, in the order of writing. Codes: execution_not_found.
func (e Executions) Steps(ctx context.Context, id api.ID, o ...StepsOptions) ([]api.StepRecord, error) {
	options, path, err := calls.Target(id, o)
	return calls.Collect(calls.Walk(err, "", func(cursor string) (api.Page[api.StepRecord], error) {
		request := &wire.ListStepsRequest{
			PageByID: wire.PageByID{ByID: path, PageFields: calls.PageFields(calls.FullPage, cursor)}, Run: options.Run, Inline: true,
		}
		return calls.Value(transport.Call(ctx, e.via, wire.ListSteps, request, transport.Options{}))
	}))
}

// Suspension returns the open wait, or else the one of this run that ended last; nil if there was none. Reading it consumes
// nothing. Codes: execution_not_found.
func (e Executions) Suspension(ctx context.Context, id api.ID) (*api.SuspensionRecord, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	answer, err := transport.Call(ctx, e.via, wire.GetSuspension, &wire.GetSuspensionRequest{ByID: path, Inline: true}, transport.Options{})
	if err != nil || answer.ID == "" {
		return nil, err
	}
	return answer, nil
}

// Suspensions iterates over all waits, oldest first, without payloads. Codes: execution_not_found.
func (e Executions) Suspensions(ctx context.Context, id api.ID) iter.Seq2[api.SuspensionRecord, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[api.SuspensionRecord], error) {
		return e.SuspensionsPage(ctx, id, api.PageOptions{Cursor: cursor})
	})
}

// SuspensionsPage returns one page of them. Codes: execution_not_found, invalid_cursor.
func (e Executions) SuspensionsPage(ctx context.Context, id api.ID, o ...api.PageOptions) (api.Page[api.SuspensionRecord], error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.Page[api.SuspensionRecord]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, e.via, wire.ListSuspensions, request, transport.Options{}))
}

// Signals iterates over the accepted signals, in their order. Codes: execution_not_found.
func (e Executions) Signals(ctx context.Context, id api.ID, q ...SignalQuery) iter.Seq2[api.SignalRecord, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[api.SignalRecord], error) {
		query.Cursor = cursor
		return e.SignalsPage(ctx, id, query)
	})
}

// SignalsPage returns one page of them. Codes: execution_not_found, invalid_cursor.
func (e Executions) SignalsPage(ctx context.Context, id api.ID, q ...SignalQuery) (api.Page[api.SignalRecord], error) {
	query, path, err := calls.Target(id, q)
	if err != nil {
		return api.Page[api.SignalRecord]{}, err
	}
	request := &wire.ListSignalsRequest{
		PageByID: wire.PageByID{ByID: path, PageFields: calls.PageFields(query.Limit, query.Cursor)}, Suspension: query.SuspensionID, Inline: true,
	}
	return calls.Value(transport.Call(ctx, e.via, wire.ListExecutionSignals, request, transport.Options{}))
}

// Usage returns what was used, by dimension, with or without budgets: by all attempts, or by one. Codes: execution_not_found,
// attempt_not_found.
func (e Executions) Usage(ctx context.Context, id api.ID, o ...UsageOptions) (api.ExecutionUsage, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.ExecutionUsage{}, err
	}
	return calls.Value(transport.Call(ctx, e.via, wire.GetUsage, &wire.GetUsageRequest{ByID: path, Attempt: options.Attempt}, transport.Options{}))
}

// Budgets returns the budgets that decide whether the execution may start, and whether they would admit it now. Codes:
// execution_not_found.
func (e Executions) Budgets(ctx context.Context, id api.ID) (api.ApplicableBudgets, error) {
	path, err := calls.ByID(id)
	if err != nil {
		return api.ApplicableBudgets{}, err
	}
	return calls.Value(transport.Call(ctx, e.via, wire.ListExecutionBudgets, &path, transport.Options{}))
}

// Children iterates over the children that the current run spawned, by name: the members of its children flow. To find those of
// earlier runs use List with ParentID. Codes: execution_not_found.
func (e Executions) Children(ctx context.Context, id api.ID) iter.Seq2[api.FlowMember, error] {
	return calls.Walk(nil, "", func(cursor string) (api.Page[api.FlowMember], error) {
		return e.ChildrenPage(ctx, id, api.PageOptions{Cursor: cursor})
	})
}

// ChildrenPage returns one page of them. Codes: execution_not_found, invalid_cursor.
func (e Executions) ChildrenPage(ctx context.Context, id api.ID, o ...api.PageOptions) (api.Page[api.FlowMember], error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return api.Page[api.FlowMember]{}, err
	}
	request := &wire.PageByID{ByID: path, PageFields: calls.PageFields(options.Limit, options.Cursor)}
	return calls.Value(transport.Call(ctx, e.via, wire.ListChildren, request, transport.Options{}))
}

// SetTags sets the given keys and deletes those whose value is nil, all or nothing, and returns all tags.
//
// Codes: execution_not_found, invalid_tag_key, invalid_argument, precondition_failed, idempotency_conflict.
func (e Executions) SetTags(ctx context.Context, id api.ID, changes map[string]*string, o ...Action) (map[string]string, error) {
	options, path, err := calls.Target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.PatchTagsRequest{
		ByID: path, Reason: options.Reason, ExpectStatus: string(options.Expect.Status), ExpectLeaseEpoch: options.Expect.LeaseEpoch,
		ExpectLeaseID: options.Expect.LeaseID, Body: changes,
	}
	answer, err := transport.Call(ctx, e.via, wire.PatchTags, request, transport.Options{Key: options.RequestKey})
	if err != nil {
		return nil, err
	}
	return answer.Tags, nil
}

// ListOptions are the options of a list. The zero value: everything, newest first, in pages of 100.
type ListOptions struct {
	Filter
	Order  Order
	Limit  int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor string // NextCursor of the page before, with the same filter and order
}

// Order is the order of a list. Ties go by id.
type Order string

// The orders of a list; "" is CreatedDesc.
const (
	CreatedDesc   Order = "created_desc"
	CreatedAsc    Order = "created_asc"
	CompletedDesc Order = "completed_desc" // finished ones only
	IDAsc         Order = "id_asc"
)

// Filter selects executions: all given parts must hold; of several values of a part, any. The zero Filter selects everything.
type Filter struct {
	Status         []api.Status
	PublicState    []string
	Reason         []string
	Next           []string // what the next acquisition does: initial, retry, reclaim, replay, resume
	Kind           []string
	Lane           []string
	InstanceID     []string // of the worker that holds the lease or held the last one
	FlowID         []api.ID
	ParentID       []api.ID
	Creator        []string
	IdempotencyKey []string
	Tags           map[string]string // these keys with these values
	HasTags        []string          // these keys with any value
	CreatedFrom    time.Time         // ranges include their start and exclude their end
	CreatedTo      time.Time
	CompletedFrom  time.Time
	CompletedTo    time.Time
	UpdatedFrom    time.Time
	UpdatedTo      time.Time
	PriorityMin    *int
	PriorityMax    *int
	Query          string // prefix of an id, an idempotency key, or words of kind, tags and failure message
}

// wire converts the filter to the form used in bodies and, through Fields, in queries.
func (f Filter) wire() wire.Filter {
	w := wire.Filter{
		Status: texts(f.Status), PublicState: f.PublicState, Reason: f.Reason, Next: f.Next, Kind: f.Kind, Lane: f.Lane,
		WorkerInstanceID: f.InstanceID, FlowID: texts(f.FlowID), ParentID: texts(f.ParentID), Creator: f.Creator, IdempotencyKey: f.IdempotencyKey,
		CreatedFrom: calls.Time(f.CreatedFrom), CreatedTo: calls.Time(f.CreatedTo), CompletedFrom: calls.Time(f.CompletedFrom),
		CompletedTo: calls.Time(f.CompletedTo), UpdatedFrom: calls.Time(f.UpdatedFrom), UpdatedTo: calls.Time(f.UpdatedTo),
		PriorityMin: f.PriorityMin, PriorityMax: f.PriorityMax, Query: f.Query,
	}
	if len(f.Tags)+len(f.HasTags) > 0 {
		w.Tags = make(map[string]*string, len(f.Tags)+len(f.HasTags))
	}
	for _, key := range f.HasTags {
		w.Tags[key] = nil
	}
	for key, value := range f.Tags {
		w.Tags[key] = &value
	}
	return w
}

func texts[T ~string](values []T) []string {
	if values == nil {
		return nil
	}
	plain := make([]string, len(values))
	for i, v := range values {
		plain[i] = string(v)
	}
	return plain
}

// LatestAttempt is the index that selects the last attempt.
const LatestAttempt = -1

// CountOptions select by what to count.
type CountOptions struct {
	By string // "status", "public_state", "kind", "lane" or "tag.<key>"; "": the total alone
}

// StepsOptions choose the run whose steps are listed.
type StepsOptions struct {
	Run *int // nil: the present one
}

// UsageOptions select the usage to return.
type UsageOptions struct {
	Attempt *int // its index; nil: all attempts
}

// ExplainOptions are the options of Explain.
type ExplainOptions struct {
	// Wait makes the call wait up to this long for a change of status, reason or causes; 0: it returns at once; more than a
	// minute counts as one minute.
	Wait time.Duration
}
