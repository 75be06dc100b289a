package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Waitpoints is what work waits at, and what people decide.
type Waitpoints interface {
	// List walks waitpoints in order of their ids; by default those that are open. Codes: execution_not_found, invalid_argument.
	List(ctx context.Context, q ...WaitpointQuery) iter.Seq2[Waitpoint, error]
	// Page gives one page of the list. Codes: execution_not_found, invalid_argument, invalid_cursor.
	Page(ctx context.Context, q ...WaitpointQuery) (Page[Waitpoint], error)
	// Get shows a waitpoint, without its token. Codes: waitpoint_not_found.
	Get(ctx context.Context, waitpointID string) (*Waitpoint, error)
	// Token shows an open waitpoint with its token and callback address, and tells the audit log so. Codes: execution_not_found,
	// waitpoint_not_found also for a closed one, signing_key_missing.
	Token(ctx context.Context, id ID, waitpointID string) (*Waitpoint, error)
	// Reissue kills every token and link of the waitpoint and shows the new token. Codes: waitpoint_not_found, signing_key_missing.
	Reissue(ctx context.Context, waitpointID string, o ...Action) (*Waitpoint, error)
	// Close closes a pending waitpoint: an operator, or the worker that has the lease. One that is closed is a success.
	//
	// Codes: waitpoint_not_found, waitpoint_active, and with a lease those of the fence.
	Close(ctx context.Context, waitpointID string, o ...CloseOptions) (CloseResult, error)

	// NewLink makes a link that lets somebody decide without an account. Codes: waitpoint_not_found, waitpoint_expired,
	// waitpoint_closed, invalid_argument, signing_key_missing, and with a lease those of the fence.
	NewLink(ctx context.Context, waitpointID string, l LinkOptions) (ApprovalLink, error)
	// Links lists the links of a waitpoint, without their addresses. Codes: waitpoint_not_found.
	Links(ctx context.Context, waitpointID string) ([]ApprovalLink, error)
	// LinkURL shows a link with its address, and tells the audit log so. Codes: link_not_found, signing_key_missing.
	LinkURL(ctx context.Context, linkID string) (ApprovalLink, error)
	// RevokeLink withdraws a link. Codes: link_not_found, link_already_decided, and with a lease those of the fence.
	RevokeLink(ctx context.Context, linkID string, o ...CloseOptions) error
	// OpenLink shows what a link asks, to whoever holds it; it changes nothing. Codes: link_not_found for every link or token that is
	// not good.
	OpenLink(ctx context.Context, linkID string, token Token) (*LinkPage, error)
	// Decide is the decision of whoever holds the link. The first one counts; a second one is told what it was.
	//
	// Codes: link_not_found, link_revoked, link_expired, waitpoint_closed, waitpoint_expired, invalid_decision,
	// signal_limit_exceeded.
	Decide(ctx context.Context, linkID string, token Token, d LinkDecision) (LinkOutcome, error)

	// Suspended walks what is suspended, oldest first. Codes: invalid_argument.
	Suspended(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error]
	// SuspendedPage gives one page of it. Codes: invalid_argument, invalid_cursor.
	SuspendedPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error)
	// Inbox walks what waits for people: for an approval, or for a budget. Its ReasonCode is not looked at.
	Inbox(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error]
	// InboxPage gives one page of it. Codes: invalid_argument, invalid_cursor.
	InboxPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error)

	sealed()
}

// CloseOptions say who closes a waitpoint or withdraws a link, and why.
type CloseOptions struct {
	Reason     string
	RequestKey string // minted by the client when empty
	Lease      *Lease // of the worker; nil: an operator does
}

// CloseResult is the answer to Waitpoints.Close.
type CloseResult = api.CloseResult

// waitpointReads are the reads of Waitpoints, behind any transport.
type waitpointReads struct{ via transport.Transport }

func (w waitpointReads) List(ctx context.Context, q ...WaitpointQuery) iter.Seq2[Waitpoint, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Waitpoint], error) {
		query.Cursor = cursor
		return w.Page(ctx, query)
	})
}

func (w waitpointReads) Page(ctx context.Context, q ...WaitpointQuery) (Page[Waitpoint], error) {
	query, err := single(q)
	if err != nil {
		return Page[Waitpoint]{}, err
	}
	request := &wire.ListWaitpointsRequest{
		PageFields: pageFields(query.Limit, query.Cursor), State: query.State, WaitpointKey: query.Key, ExecutionID: string(query.ExecutionID),
	}
	return value(transport.Call(ctx, w.via, wire.ListWaitpoints, request, transport.Options{}))
}

func (w waitpointReads) Get(ctx context.Context, waitpointID string) (*Waitpoint, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, w.via, wire.GetWaitpoint, &path, transport.Options{})
}

func (w waitpointReads) Links(ctx context.Context, waitpointID string) ([]ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	return collect(walk(err, "", func(cursor string) (Page[ApprovalLink], error) {
		request := &wire.ListLinksRequest{ByWaitpoint: path, PageFields: pageFields(fullPage, cursor)}
		return value(transport.Call(ctx, w.via, wire.ListLinks, request, transport.Options{}))
	}))
}

func (w waitpointReads) Suspended(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Suspended], error) {
		query.Cursor = cursor
		return w.SuspendedPage(ctx, query)
	})
}

func (w waitpointReads) SuspendedPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error) {
	query, err := single(q)
	if err != nil {
		return Page[Suspended]{}, err
	}
	request := &wire.ListSuspendedRequest{
		SuspendedFields: query.wire(), ReasonCode: query.ReasonCode, PageFields: pageFields(query.Limit, query.Cursor),
	}
	return value(transport.Call(ctx, w.via, wire.ListSuspended, request, transport.Options{}))
}

func (w waitpointReads) Inbox(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Suspended], error) {
		query.Cursor = cursor
		return w.InboxPage(ctx, query)
	})
}

func (w waitpointReads) InboxPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error) {
	query, err := single(q)
	if err != nil {
		return Page[Suspended]{}, err
	}
	request := &wire.ListApprovalsRequest{SuspendedFields: query.wire(), PageFields: pageFields(query.Limit, query.Cursor)}
	return value(transport.Call(ctx, w.via, wire.ListApprovals, request, transport.Options{}))
}

// byWaitpoint puts the id of a waitpoint into a path; invalid_id.
func byWaitpoint(waitpointID string) (wire.ByWaitpoint, error) {
	_, err := uuidGiven("waitpoint_id", waitpointID)
	return wire.ByWaitpoint{Waitpoint: waitpointID}, err
}

// wire is the selection as query parameters.
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
