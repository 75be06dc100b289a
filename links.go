package flowfabric

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// NewLink makes a link that lets somebody decide without an account. Codes: waitpoint_not_found, waitpoint_expired,
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

// Links lists the links of a waitpoint, without their addresses. Codes: waitpoint_not_found.
func (w Waitpoints) Links(ctx context.Context, waitpointID string) ([]ApprovalLink, error) {
	path, err := byWaitpoint(waitpointID)
	return collect(walk(err, "", func(cursor string) (Page[ApprovalLink], error) {
		request := &wire.ListLinksRequest{ByWaitpoint: path, PageFields: pageFields(fullPage, cursor)}
		return value(transport.Call(ctx, w.via, wire.ListLinks, request, transport.Options{}))
	}))
}

// LinkURL shows a link with its address, and tells the audit log so. Codes: link_not_found, signing_key_missing.
func (w Waitpoints) LinkURL(ctx context.Context, linkID string) (ApprovalLink, error) {
	path, err := byLink(linkID)
	if err != nil {
		return ApprovalLink{}, err
	}
	return concealedLink(transport.Call(ctx, w.via, wire.ReadLinkURL, &path, transport.Options{}))
}

// concealedLink is the link of an answer that shows its address.
func concealedLink(issued *IssuedLink, err error) (ApprovalLink, error) {
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

// OpenLink shows what a link asks, to whoever holds it; it changes nothing. Codes: link_not_found for every link or token that is
// not good.
func (w Waitpoints) OpenLink(ctx context.Context, linkID string, token Token) (*LinkPage, error) {
	request := &wire.OpenLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	page, err := transport.Call(ctx, w.via, wire.OpenLink, request, transport.Options{})
	if err != nil {
		return closedPage(err)
	}
	return page, nil
}

// closedPage is the page of a link that cannot be decided any more, which a server sends with why it cannot.
func closedPage(err error) (*LinkPage, error) {
	var told *Error
	if !errors.As(err, &told) || told.Current[wire.FactLink] == nil {
		return nil, err
	}
	text, wrong := wire.Marshal(told.Current[wire.FactLink])
	if wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	page := new(LinkPage)
	if wrong := wire.DecodeAnswer(text, page); wrong != nil {
		return nil, transport.Garbled(wrong)
	}
	delete(told.Current, wire.FactLink)
	page.Refused = told
	return page, nil
}

// Decide is the decision of whoever holds the link. The first one counts; a second one is told what it was.
//
// Codes: link_not_found, link_revoked, link_expired, waitpoint_closed, waitpoint_expired, invalid_decision,
// signal_limit_exceeded.
func (w Waitpoints) Decide(ctx context.Context, linkID string, token Token, d LinkDecision) (LinkOutcome, error) {
	request := &wire.DecideLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	request.Body.LinkDecision = d
	return value(transport.Call(ctx, w.via, wire.DecideLink, request, transport.Options{}))
}

// noID stands in a path for an empty text, which is the id of nothing and no token.
const noID = "none"

// orNone is a segment of a path.
func orNone(text string) string {
	if text == "" {
		return noID
	}
	return text
}

// malformedToken stands for a text that no header can carry: it is no token, and is refused as such.
const malformedToken = "malformed"

// signalVia is Client.Signal behind a transport. The token travels in a header. A signal that brings nothing to recognise it by is recognised
// by the key of the call.
func signalVia(ctx context.Context, via transport.Transport, s Signal) (SignalReceipt, error) {
	if err := s.Payload.Problem("payload"); err != nil {
		return SignalReceipt{}, err
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
