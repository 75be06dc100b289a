package ops

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// NewLink creates a link with which a person can decide without an account. Codes: waitpoint_not_found, waitpoint_expired,
// waitpoint_closed, invalid_argument, signing_key_missing, and with a lease those of the fence.
func (w Waitpoints) NewLink(ctx context.Context, waitpointID string, l LinkOptions) (api.ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	if err != nil {
		return api.ApprovalLink{}, err
	}
	lease, err := holderLease(l.Lease)
	if err != nil {
		return api.ApprovalLink{}, err
	}
	request := &wire.CreateLinkRequest{ByWaitpoint: path}
	request.Body.LeaseField = lease
	request.Body.LinkFields = wire.LinkFields{
		Approver: l.Approver, Decisions: l.Decisions, ExpiresInMS: calls.Span(l.ExpiresIn), Title: l.Title,
		Message: l.Message, CommentRequired: l.CommentRequired,
	}
	return concealedLink(transport.Call(ctx, w.via, wire.CreateLink, request, transport.Options{Key: l.RequestKey}))
}

// Links returns the links of a waitpoint, without their addresses. Codes: waitpoint_not_found.
func (w Waitpoints) Links(ctx context.Context, waitpointID string) ([]api.ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	return calls.Collect(calls.Walk(err, "", func(cursor string) (api.Page[api.ApprovalLink], error) {
		request := &wire.ListLinksRequest{ByWaitpoint: path, PageFields: calls.PageFields(calls.FullPage, cursor)}
		return calls.Value(transport.Call(ctx, w.via, wire.ListLinks, request, transport.Options{}))
	}))
}

// LinkURL returns a link with its address, which is recorded in the audit log. Codes: link_not_found, signing_key_missing.
func (w Waitpoints) LinkURL(ctx context.Context, linkID string) (api.ApprovalLink, error) {
	path, err := byLink(linkID)
	if err != nil {
		return api.ApprovalLink{}, err
	}
	return concealedLink(transport.Call(ctx, w.via, wire.ReadLinkURL, &path, transport.Options{}))
}

// concealedLink returns the link of an answer that contains its address.
func concealedLink(issued *api.IssuedLink, err error) (api.ApprovalLink, error) {
	if err != nil {
		return api.ApprovalLink{}, err
	}
	return issued.Concealed(), nil
}

// RevokeLink withdraws a link. Codes: link_not_found, link_already_decided, and with a lease those of the fence.
func (w Waitpoints) RevokeLink(ctx context.Context, linkID string, o ...CloseOptions) error {
	options, err := transport.Single(o)
	if err != nil {
		return err
	}
	path, err := byLink(linkID)
	if err != nil {
		return err
	}
	fields, err := options.wire()
	if err != nil {
		return err
	}
	request := &wire.RevokeLinkRequest{ByLink: path, Body: fields}
	_, err = transport.Call(ctx, w.via, wire.RevokeLink, request, transport.Options{Key: options.RequestKey})
	return err
}

// OpenLink returns the page of a link to its holder; it changes nothing. Codes: link_not_found for every invalid link or token.
func (w Waitpoints) OpenLink(ctx context.Context, linkID string, token api.Token) (*api.LinkPage, error) {
	request := &wire.OpenLinkRequest{Link: calls.Segment(linkID), Token: calls.Segment(token.Reveal())}
	page, err := transport.Call(ctx, w.via, wire.OpenLink, request, transport.Options{})
	if err != nil {
		return closedPage(err)
	}
	return page, nil
}

// closedPage returns the page of a link that can no longer be decided, which a server sends with the reason.
func closedPage(err error) (*api.LinkPage, error) {
	var refusal *api.Error
	if !errors.As(err, &refusal) || refusal.Current[wire.FactLink] == nil {
		return nil, err
	}
	text, wrong := wire.Marshal(refusal.Current[wire.FactLink])
	if wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	page := new(api.LinkPage)
	if wrong := wire.DecodeAnswer(text, page); wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	delete(refusal.Current, wire.FactLink)
	page.Refused = refusal
	return page, nil
}

// Decide submits the decision of the holder of a link. The first decision counts; the answer to a later one contains the first.
//
// Codes: link_not_found, link_revoked, link_expired, waitpoint_closed, waitpoint_expired, invalid_decision,
// signal_limit_exceeded.
func (w Waitpoints) Decide(ctx context.Context, linkID string, token api.Token, d api.LinkDecision) (api.LinkOutcome, error) {
	request := &wire.DecideLinkRequest{Link: calls.Segment(linkID), Token: calls.Segment(token.Reveal())}
	request.Body.LinkDecision = d
	return calls.Value(transport.Call(ctx, w.via, wire.DecideLink, request, transport.Options{}))
}
