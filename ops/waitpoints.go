package ops

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Waitpoints is the group of calls on waitpoints and on the links with which people decide.
type Waitpoints struct{ via transport.Transport }

// List iterates over waitpoints in order of their ids; by default over the open ones. Codes: execution_not_found,
// invalid_argument.
func (w Waitpoints) List(ctx context.Context, q ...WaitpointQuery) iter.Seq2[api.Waitpoint, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[api.Waitpoint], error) {
		query.Cursor = cursor
		return w.Page(ctx, query)
	})
}

// Page returns one page of the list. Codes: execution_not_found, invalid_argument, invalid_cursor.
func (w Waitpoints) Page(ctx context.Context, q ...WaitpointQuery) (api.Page[api.Waitpoint], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[api.Waitpoint]{}, err
	}
	request := &wire.ListWaitpointsRequest{
		PageFields: calls.PageFields(query.Limit, query.Cursor), State: query.State, WaitpointKey: query.Key, ExecutionID: string(query.ExecutionID),
	}
	return calls.Value(transport.Call(ctx, w.via, wire.ListWaitpoints, request, transport.Options{}))
}

// Get returns a waitpoint, without its token. Codes: waitpoint_not_found.
func (w Waitpoints) Get(ctx context.Context, waitpointID string) (*api.Waitpoint, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, w.via, wire.GetWaitpoint, &path, transport.Options{})
}

// Token returns an open waitpoint with its token and callback address, which is recorded in the audit log. Codes:
// execution_not_found, waitpoint_not_found also for a closed one, signing_key_missing.
func (w Waitpoints) Token(ctx context.Context, id api.ID, waitpointID string) (*api.Waitpoint, error) {
	execution, err := calls.ByID(id)
	if err != nil {
		return nil, err
	}
	waitpoint, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	request := &wire.WaitpointTokenRequest{ByID: execution, ByWaitpoint: waitpoint}
	return concealed(transport.Call(ctx, w.via, wire.ReadWaitpointToken, request, transport.Options{}))
}

// Reissue invalidates every token and link of the waitpoint and returns the new token. Codes: waitpoint_not_found,
// signing_key_missing.
func (w Waitpoints) Reissue(ctx context.Context, waitpointID string, o ...Action) (*api.Waitpoint, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	request := &wire.ReissueRequest{ByWaitpoint: path}
	request.Body.ActionFields = options.wire()
	return concealed(transport.Call(ctx, w.via, wire.ReissueToken, request, transport.Options{Key: options.RequestKey}))
}

// concealed returns the waitpoint of an answer that contains its token.
func concealed(issued *api.IssuedWaitpoint, err error) (*api.Waitpoint, error) {
	if err != nil {
		return nil, err
	}
	waitpoint := issued.Concealed()
	return &waitpoint, nil
}

// Close closes a pending waitpoint, on behalf of an operator or of the worker that has the lease. Closing a closed waitpoint
// succeeds.
//
// Codes: waitpoint_not_found, waitpoint_active, and with a lease those of the fence.
func (w Waitpoints) Close(ctx context.Context, waitpointID string, o ...CloseOptions) (api.CloseResult, error) {
	options, err := transport.Single(o)
	if err != nil {
		return api.CloseResult{}, err
	}
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return api.CloseResult{}, err
	}
	fields, err := options.wire()
	if err != nil {
		return api.CloseResult{}, err
	}
	request := &wire.CloseWaitpointRequest{ByWaitpoint: path, Body: fields}
	return calls.Value(transport.Call(ctx, w.via, wire.CloseWaitpoint, request, transport.Options{Key: options.RequestKey}))
}

// Suspended iterates over suspended executions, oldest first. Codes: invalid_argument.
func (w Waitpoints) Suspended(ctx context.Context, q ...SuspendedQuery) iter.Seq2[api.Suspended, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[api.Suspended], error) {
		query.Cursor = cursor
		return w.SuspendedPage(ctx, query)
	})
}

// SuspendedPage returns one page of them. Codes: invalid_argument, invalid_cursor.
func (w Waitpoints) SuspendedPage(ctx context.Context, q ...SuspendedQuery) (api.Page[api.Suspended], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[api.Suspended]{}, err
	}
	request := &wire.ListSuspendedRequest{
		SuspendedFields: query.wire(), ReasonCode: query.ReasonCode, PageFields: calls.PageFields(query.Limit, query.Cursor),
	}
	return calls.Value(transport.Call(ctx, w.via, wire.ListSuspended, request, transport.Options{}))
}

// Inbox iterates over executions that wait for people: for an approval, or for a budget. ReasonCode of the query is ignored.
func (w Waitpoints) Inbox(ctx context.Context, q ...SuspendedQuery) iter.Seq2[api.Suspended, error] {
	query, err := transport.Single(q)
	return calls.Walk(err, query.Cursor, func(cursor string) (api.Page[api.Suspended], error) {
		query.Cursor = cursor
		return w.InboxPage(ctx, query)
	})
}

// InboxPage returns one page of them. Codes: invalid_argument, invalid_cursor.
func (w Waitpoints) InboxPage(ctx context.Context, q ...SuspendedQuery) (api.Page[api.Suspended], error) {
	query, err := transport.Single(q)
	if err != nil {
		return api.Page[api.Suspended]{}, err
	}
	request := &wire.ListApprovalsRequest{SuspendedFields: query.wire(), PageFields: calls.PageFields(query.Limit, query.Cursor)}
	return calls.Value(transport.Call(ctx, w.via, wire.ListApprovals, request, transport.Options{}))
}

// CloseOptions are the options of Close and RevokeLink.
type CloseOptions struct {
	Reason     string
	RequestKey string     // generated by the client when empty
	Lease      *api.Lease // of the worker; nil: on behalf of an operator
}

// byWaitpoint formats the id of a waitpoint for a path; invalid_id.
func byWaitpoint(waitpointID string) (wire.ByWaitpoint, error) {
	_, err := calls.UUID("waitpoint_id", waitpointID)
	return wire.ByWaitpoint{Waitpoint: waitpointID}, err
}

// byLink formats the id of a link for a path; invalid_id.
func byLink(linkID string) (wire.ByLink, error) {
	_, err := calls.UUID("link_id", linkID)
	return wire.ByLink{Link: linkID}, err
}

func (o *CloseOptions) wire() (wire.HolderFields, error) {
	lease, err := holderLease(o.Lease)
	return wire.HolderFields{LeaseField: lease, Reason: o.Reason}, err
}

// holderLease converts the lease of a worker to the form of requests; zero for an operator.
func holderLease(lease *api.Lease) (wire.LeaseField, error) {
	if lease == nil {
		return wire.LeaseField{}, nil
	}
	err := lease.Check()
	if err == nil && lease.ID == "" && lease.AttemptID == "" && lease.Epoch == 0 {
		err = calls.Refuse(base.CodeFenceRequired, "the lease is empty").At("lease", "give the lease of the task, or none as an operator")
	}
	return wire.LeaseField{Lease: wire.LeaseRef{LeaseID: lease.ID, Epoch: lease.Epoch, AttemptID: lease.AttemptID}}, err
}

// wire converts the query to query parameters.
func (q SuspendedQuery) wire() wire.SuspendedFields {
	fields := wire.SuspendedFields{Lane: q.Lane, FlowID: string(q.FlowID), Approver: q.Approver}
	for key, value := range q.Tags {
		if fields.Tags == nil {
			fields.Tags = map[string]*string{}
		}
		fields.Tags[key] = &value
	}
	return fields
}
