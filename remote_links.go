package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteWaitpoints) NewLink(ctx context.Context, waitpointID string, l LinkOptions) (ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return ApprovalLink{}, err
	}
	lease, err := holderLease(l.Lease)
	if err != nil {
		return ApprovalLink{}, err
	}
	request := &wire.CreateLinkRequest{ByWaitpoint: path}
	request.Body.LeaseField = lease
	request.Body.LinkFields = wire.LinkFields{
		Approver: l.Approver, Decisions: l.Decisions, ExpiresInMS: span(l.ExpiresIn), Title: l.Title,
		Message: l.Message, CommentRequired: l.CommentRequired,
	}
	answer, err := call(ctx, r.client, wire.CreateLink, request, sending{key: l.RequestKey})
	if err != nil {
		return ApprovalLink{}, err
	}
	return answer.Concealed(), nil
}

func (r remoteWaitpoints) Links(ctx context.Context, waitpointID string) ([]ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	return collect(walk(err, "", func(cursor string) (Page[ApprovalLink], error) {
		request := &wire.ListLinksRequest{ByWaitpoint: path, PageFields: pageFields(fullPage, cursor)}
		return value(call(ctx, r.client, wire.ListLinks, request, sending{}))
	}))
}

func (r remoteWaitpoints) LinkURL(ctx context.Context, linkID string) (ApprovalLink, error) {
	path, err := byLink(linkID)
	if err != nil {
		return ApprovalLink{}, err
	}
	answer, err := call(ctx, r.client, wire.ReadLinkURL, &path, sending{})
	if err != nil {
		return ApprovalLink{}, err
	}
	return answer.Concealed(), nil
}

func (r remoteWaitpoints) RevokeLink(ctx context.Context, linkID string, o ...CloseOptions) error {
	options, err := single(o)
	if err != nil {
		return err
	}
	path, err := byLink(linkID)
	if err != nil {
		return err
	}
	lease, err := holderLease(options.Lease)
	if err != nil {
		return err
	}
	request := &wire.RevokeLinkRequest{ByLink: path, Body: wire.HolderFields{LeaseField: lease, Reason: options.Reason}}
	_, err = call(ctx, r.client, wire.RevokeLink, request, sending{key: options.RequestKey})
	return err
}

func (r remoteWaitpoints) Suspended(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Suspended], error) {
		query.Cursor = cursor
		return r.SuspendedPage(ctx, query)
	})
}

func (r remoteWaitpoints) SuspendedPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error) {
	query, err := single(q)
	if err != nil {
		return Page[Suspended]{}, err
	}
	request := &wire.ListSuspendedRequest{
		SuspendedFields: query.wire(), ReasonCode: query.ReasonCode, PageFields: pageFields(query.Limit, query.Cursor),
	}
	return value(call(ctx, r.client, wire.ListSuspended, request, sending{}))
}

func (r remoteWaitpoints) Inbox(ctx context.Context, q ...SuspendedQuery) iter.Seq2[Suspended, error] {
	query, err := single(q)
	return walk(err, query.Cursor, func(cursor string) (Page[Suspended], error) {
		query.Cursor = cursor
		return r.InboxPage(ctx, query)
	})
}

func (r remoteWaitpoints) InboxPage(ctx context.Context, q ...SuspendedQuery) (Page[Suspended], error) {
	query, err := single(q)
	if err != nil {
		return Page[Suspended]{}, err
	}
	request := &wire.ListApprovalsRequest{SuspendedFields: query.wire(), PageFields: pageFields(query.Limit, query.Cursor)}
	return value(call(ctx, r.client, wire.ListApprovals, request, sending{}))
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
