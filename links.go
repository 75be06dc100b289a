package flowfabric

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// NewLink creates a link with which a person can decide without an account. Codes: waitpoint_not_found, waitpoint_expired,
// waitpoint_closed, invalid_argument, signing_key_missing, and with a lease those of the fence.
func (w Waitpoints) NewLink(ctx context.Context, waitpointID string, l LinkOptions) (ApprovalLink, error) {
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
	return concealedLink(transport.Call(ctx, w.via, wire.CreateLink, request, transport.Options{Key: l.RequestKey}))
}

// Links returns the links of a waitpoint, without their addresses. Codes: waitpoint_not_found.
func (w Waitpoints) Links(ctx context.Context, waitpointID string) ([]ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	return collect(walk(err, "", func(cursor string) (Page[ApprovalLink], error) {
		request := &wire.ListLinksRequest{ByWaitpoint: path, PageFields: pageFields(fullPage, cursor)}
		return value(transport.Call(ctx, w.via, wire.ListLinks, request, transport.Options{}))
	}))
}

// LinkURL returns a link with its address, which is recorded in the audit log. Codes: link_not_found, signing_key_missing.
func (w Waitpoints) LinkURL(ctx context.Context, linkID string) (ApprovalLink, error) {
	path, err := byLink(linkID)
	if err != nil {
		return ApprovalLink{}, err
	}
	return concealedLink(transport.Call(ctx, w.via, wire.ReadLinkURL, &path, transport.Options{}))
}

// concealedLink returns the link of an answer that contains its address.
func concealedLink(issued *api.IssuedLink, err error) (ApprovalLink, error) {
	if err != nil {
		return ApprovalLink{}, err
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
func (w Waitpoints) OpenLink(ctx context.Context, linkID string, token Token) (*api.LinkPage, error) {
	request := &wire.OpenLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	page, err := transport.Call(ctx, w.via, wire.OpenLink, request, transport.Options{})
	if err != nil {
		return closedPage(err)
	}
	return page, nil
}

// closedPage returns the page of a link that can no longer be decided, which a server sends with the reason.
func closedPage(err error) (*api.LinkPage, error) {
	var told *Error
	if !errors.As(err, &told) || told.Current[wire.FactLink] == nil {
		return nil, err
	}
	text, wrong := wire.Marshal(told.Current[wire.FactLink])
	if wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	page := new(api.LinkPage)
	if wrong := wire.DecodeAnswer(text, page); wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	delete(told.Current, wire.FactLink)
	page.Refused = told
	return page, nil
}

// Decide submits the decision of the holder of a link. The first decision counts; the answer to a later one contains the first.
//
// Codes: link_not_found, link_revoked, link_expired, waitpoint_closed, waitpoint_expired, invalid_decision,
// signal_limit_exceeded.
func (w Waitpoints) Decide(ctx context.Context, linkID string, token Token, d api.LinkDecision) (api.LinkOutcome, error) {
	request := &wire.DecideLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	request.Body.LinkDecision = d
	return value(transport.Call(ctx, w.via, wire.DecideLink, request, transport.Options{}))
}

// noID replaces an empty text in a path; it is not a valid id or token.
const noID = "none"

// orNone returns the text as a path segment, or noID for an empty one.
func orNone(text string) string {
	if text == "" {
		return noID
	}
	return text
}

// malformedToken replaces a text that a header cannot carry: it is refused as an invalid token.
const malformedToken = "malformed"

// signalVia is Client.Signal over a transport. The token is sent in a header. A signal without an identifier of its own is
// identified by the key of the call.
func signalVia(ctx context.Context, via transport.Transport, s Signal) (api.SignalReceipt, error) {
	if err := s.Payload.Problem("payload"); err != nil {
		return api.SignalReceipt{}, err
	}
	token := s.Token.Reveal()
	if !wire.HeaderText(token) {
		token = malformedToken
	}
	if s.ExecutionID == "" {
		request := &wire.SendSignalRequest{Waitpoint: orNone(s.WaitpointID), Token: token, Body: wire.SignalFields{Signal: s}}
		return value(transport.Call(ctx, via, wire.SendSignal, request, transport.Options{}))
	}
	request := &wire.SendExecutionSignalRequest{ID: string(s.ExecutionID), Token: token}
	request.Body.WaitpointID, request.Body.Signal = s.WaitpointID, s
	return value(transport.Call(ctx, via, wire.SendExecutionSignal, request, transport.Options{}))
}
