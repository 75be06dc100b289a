package service

import (
	"cmp"
	"context"
	"net/url"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The addresses that are given to people and to outside services. Each contains a token and is as secret as that. Without a
// public URL they are paths, which begin with a slash, for the caller to complete.
const (
	callbackPath = "/v1/callbacks/" // W64
	linkPath     = "/approve/"      // W69
)

// address returns where the holder of a token signals or decides; "" without a token.
func (s *Service) address(path, id string, t keyring.Token) string {
	text := t.Reveal()
	if text == "" {
		return ""
	}
	return s.cfg.PublicURL + path + id + "/" + url.PathEscape(text)
}

// uuidOrNobody returns the id of what a token opens. A malformed id becomes one that does not exist, so that the answer is the
// same as for an unknown id, in its text and its cost (W33, W69).
func uuidOrNobody(text string) base.UUID {
	id, ok := base.ParseUUID(text)
	if !ok {
		for i := range id {
			id[i] = 0xff
		}
	}
	return id
}

// sendSignal delivers a signal to a waitpoint (U81).
func (s *Service) sendSignal(ctx context.Context, c Caller, r *wire.SendSignalRequest) (api.SignalReceipt, error) {
	return s.signal(ctx, &c, nil, r.Waitpoint, cmp.Or(r.Token, r.Body.Token), &r.Body.Signal)
}

// sendExecutionSignal delivers a signal to a waitpoint that must be one of the execution (U81).
func (s *Service) sendExecutionSignal(ctx context.Context, c Caller, r *wire.SendExecutionSignalRequest) (api.SignalReceipt, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		id = base.GivenID{UUID: uuidOrNobody("")}
	}
	return s.signal(ctx, &c, &id, r.Body.WaitpointID, cmp.Or(r.Token, r.Body.Token), &r.Body.Signal)
}

// signal delivers a signal. A signal without an identifier of its own gets an id derived from the key of the command.
func (s *Service) signal(ctx context.Context, c *Caller, id *base.GivenID, waitpoint, token string, f *api.Signal) (api.SignalReceipt, error) {
	signalID, err := givenUUID("signal_id", f.SignalID)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	cmd := core.SignalCommand{
		WaitpointID: uuidOrNobody(waitpoint), SignalID: signalID, Name: f.Name, Category: f.Category, SourceType: f.SourceType,
		SourceIdentity: f.SourceIdentity, CorrelationID: f.CorrelationID, IdempotencyKey: f.IdempotencyKey, SentAt: base.TimeOf(f.SentAt),
		Payload: CorePayload(f.Payload),
	}
	minted := cmd.SignalID.IsZero() && cmd.IdempotencyKey == "" && c.RequestKey == ""
	if minted {
		cmd.SignalID, _ = base.ParseUUID(c.Key) // the keys that transports generate are ids
	}
	answer, err := s.engine.Signal(ctx, c.client(), id, keyring.TokenOf(token), cmd)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	if minted && !c.first() {
		answer.Duplicate, answer.SameRequest = false, false // a try whose answer was lost was accepted
	}
	return receiptOf(answer), nil
}

// openLink returns the page of a link to its holder (W70).
func (s *Service) openLink(ctx context.Context, c Caller, r *wire.OpenLinkRequest) (api.LinkPage, error) {
	p, err := s.engine.OpenLink(ctx, c.client(), uuidOrNobody(r.Link), keyring.TokenOf(r.Token))
	if err != nil {
		return api.LinkPage{}, err
	}
	return api.LinkPage{
		ApprovalLink: linkViewOf(p.LinkView), Kind: p.Kind, Tags: p.Tags, Asker: p.Asker, Needed: p.Needed, Counted: p.Counted, Progress: p.Progress,
		TimeoutAt: p.TimeoutAt.Std(), Now: p.Now.Std(), Refused: api.AsError(p.Undecided),
	}, nil
}

// The outcomes of a decision.
const (
	outcomeDecided        = "decided"
	outcomeAlreadyDecided = "already_decided"
)

// decideLink takes the decision of the holder of a link (W71).
func (s *Service) decideLink(ctx context.Context, c Caller, r *wire.DecideLinkRequest) (api.LinkOutcome, error) {
	d := r.Body.LinkDecision
	cmd := core.DecideCommand{LinkID: uuidOrNobody(r.Link), Decision: d.Decision, Comment: d.Comment}
	answer, err := s.engine.Decide(ctx, c.client(), keyring.TokenOf(r.Token), cmd)
	if err != nil {
		return api.LinkOutcome{}, err
	}
	outcome := api.LinkOutcome{
		Outcome: outcomeDecided, Decision: answer.End.Decision, DecidedAt: answer.End.At.Std(), Effect: string(answer.Signal.Effect),
	}
	ours := !c.first() && answer.End.Decision == d.Decision && answer.End.Comment == d.Comment // a try whose answer was lost decided it
	if answer.Already && !ours {
		outcome.Outcome = outcomeAlreadyDecided
	}
	return outcome, nil
}
