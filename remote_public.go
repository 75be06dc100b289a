package flowfabric

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// Signal sends the token in a header. Of a signal that brings nothing to know it by the key of the call tells repeats.
func (r *remote) Signal(ctx context.Context, s Signal) (SignalReceipt, error) {
	if err := s.Payload.Problem("payload"); err != nil {
		return SignalReceipt{}, err
	}
	token := s.Token.Reveal()
	if !headerText(token) {
		token = malformedToken
	}
	fields := s.wire()
	if s.ExecutionID != "" {
		request := &wire.SendExecutionSignalRequest{ID: string(s.ExecutionID), Token: token}
		request.Body.WaitpointID, request.Body.SignalFields = s.WaitpointID, fields
		return receive(ctx, r, wire.SendExecutionSignal, request)
	}
	return receive(ctx, r, wire.SendSignal, &wire.SendSignalRequest{Waitpoint: orNone(s.WaitpointID), Token: token, Body: fields})
}

func receive[Req any](ctx context.Context, r *remote, c wire.Call[Req, SignalReceipt], request *Req) (SignalReceipt, error) {
	answer, err := call(ctx, r, c, request, sending{})
	if err != nil {
		return SignalReceipt{}, err
	}
	return *answer, nil
}

const (
	// malformedToken stands for a text that no header can carry: it is no token, and is refused as such.
	malformedToken = "malformed"
	// noID stands in a path for an empty id, which is that of nothing.
	noID = "none"
)

// orNone is a segment of a path.
func orNone(id string) string {
	if id == "" {
		return noID
	}
	return id
}

// wire is the signal as a request has it, without where it goes.
func (s *Signal) wire() wire.SignalFields {
	return wire.SignalFields{
		Name: s.Name, PayloadFields: wire.PayloadOf(wirePayload(s.Payload)), Category: s.Category, SourceType: s.SourceType,
		SourceIdentity: s.SourceIdentity, CorrelationID: s.CorrelationID, IdempotencyKey: s.IdempotencyKey, SignalID: s.SignalID,
		SentAt: wireTime(s.SentAt),
	}
}

func (r remoteWaitpoints) OpenLink(ctx context.Context, linkID string, token Token) (*LinkPage, error) {
	request := &wire.OpenLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	answer, err := call(ctx, r.client, wire.OpenLink, request, sending{})
	if err == nil {
		return linkPageFrom(answer), nil
	}
	return closedPage(err)
}

// closedPage is the page of a link that cannot be decided any more, which comes with why it cannot.
func closedPage(err error) (*LinkPage, error) {
	var told *Error
	if !errors.As(err, &told) || told.Current[wire.FactLink] == nil {
		return nil, err
	}
	text, wrong := wire.Marshal(told.Current[wire.FactLink])
	if wrong != nil {
		return nil, garbled(wrong)
	}
	link, wrong := readAnswer[wire.LinkPage](text)
	if wrong != nil {
		return nil, garbled(wrong)
	}
	page := linkPageFrom(link)
	delete(told.Current, wire.FactLink)
	page.Refused = told
	return page, nil
}

func linkPageFrom(w *wire.LinkPage) *LinkPage {
	page := &LinkPage{
		Link: w.ApprovalLink, Kind: w.Kind, Tags: w.Tags, Asker: w.Asker, Needed: w.Needed, Counted: w.Counted,
		TimeoutAt: w.TimeoutAt.Time, Now: w.ServerTime.Time,
	}
	if w.Progress != nil {
		page.Progress = *w.Progress
	}
	return page
}

func (r remoteWaitpoints) Decide(ctx context.Context, linkID string, token Token, d LinkDecision) (LinkOutcome, error) {
	request := &wire.DecideLinkRequest{Link: orNone(linkID), Token: orNone(token.Reveal())}
	request.Body.Decision, request.Body.Comment = d.Decision, d.Comment
	answer, err := call(ctx, r.client, wire.DecideLink, request, sending{})
	if err != nil {
		return LinkOutcome{}, err
	}
	return LinkOutcome{Outcome: answer.Outcome, Decision: answer.Decision, DecidedAt: answer.DecidedAt.Time, Effect: answer.Effect}, nil
}
