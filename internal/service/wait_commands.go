package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) waitCommands() {
	on(s, wire.ResumeExecution, s.resume)
	on(s, wire.ApproveExecution, s.approve)
	on(s, wire.ReadWaitpointToken, s.readToken)
	on(s, wire.ReissueToken, s.reissueToken)
	on(s, wire.CloseWaitpoint, s.closeWaitpoint)
	on(s, wire.CreateLink, s.createLink)
	on(s, wire.ReadLinkURL, s.readLinkURL)
	on(s, wire.RevokeLink, s.revokeLink)
	on(s, wire.SendSignal, s.sendSignal)
	on(s, wire.SendExecutionSignal, s.sendExecutionSignal)
	on(s, wire.OpenLink, s.openLink)
	on(s, wire.DecideLink, s.decideLink)
}

// resume ends a wait on behalf of an operator (U49).
func (s *Service) resume(ctx context.Context, c Caller, r *wire.ResumeRequest) (api.Execution, error) {
	b := &r.Body
	expected, err := givenUUID("expected_suspension_id", b.ExpectedSuspensionID)
	if err != nil {
		return api.Execution{}, err
	}
	cmd := core.ResumeCommand{DelayMS: b.DelayMS, Reason: b.Reason, ExpectedSuspensionID: expected}
	return act(&c, r.ID, b.ActionFields, func(id base.GivenID, op engine.Operator) (engine.View, error) {
		view, _, err := s.engine.Resume(ctx, c.operator(), id, cmd, op)
		return view, err
	})
}

// approve is an operator's signal (U52).
func (s *Service) approve(ctx context.Context, c Caller, r *wire.ApproveRequest) (api.SignalReceipt, error) {
	b := &r.Body
	if b.Name == "" {
		return api.SignalReceipt{}, base.Errorf(base.CodeInvalidSignal, "the signal has no name").WithField("name").
			WithHint("say approved, rejected or another word")
	}
	waitpoint, err := givenUUID("waitpoint_id", b.WaitpointID)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	given, op, err := c.command(r.ID, b.ActionFields)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	cmd := core.ApproveCommand{
		WaitpointID: waitpoint, Name: b.Name, Suffix: b.Suffix, Lane: b.Lane, Comment: b.Comment, Payload: payloadGiven(b.Payload),
	}
	answer, err := s.engine.Approve(ctx, c.operator(), given, cmd, op)
	if err != nil {
		return api.SignalReceipt{}, err
	}
	return receiptOf(answer), nil
}

// readToken returns the token of a waitpoint (U80).
func (s *Service) readToken(ctx context.Context, c Caller, r *wire.WaitpointTokenRequest) (api.IssuedWaitpoint, error) {
	given, err := base.ParseID(r.ID)
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	waitpoint, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	return s.shownToken(s.engine.ReadToken(ctx, c.operator(), given, waitpoint))
}

// reissueToken invalidates the tokens of a waitpoint and returns the new one (U80).
func (s *Service) reissueToken(ctx context.Context, c Caller, r *wire.ReissueRequest) (api.IssuedWaitpoint, error) {
	waitpoint, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	op, err := c.operation(r.Body.Reason, r.Body.Expect)
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	return s.shownToken(s.engine.ReissueToken(ctx, c.operator(), waitpoint, op))
}

// shownToken returns a waitpoint with its token.
func (s *Service) shownToken(i engine.Issued, err error) (api.IssuedWaitpoint, error) {
	if err != nil {
		return api.IssuedWaitpoint{}, err
	}
	return s.issuedWaitpointOf(&i.Waitpoint, i.Standing, i.Token).Issued(), nil
}

// The outcomes of a close.
const (
	outcomeClosed        = "closed"
	outcomeAlreadyClosed = "already_closed"
)

// closeWaitpoint closes a waitpoint at which no work waits (U83).
func (s *Service) closeWaitpoint(ctx context.Context, c Caller, r *wire.CloseWaitpointRequest) (api.CloseResult, error) {
	caller, fence, err := c.holder(r.Body.LeaseField, r.LeaseHeaderField)
	if err != nil {
		return api.CloseResult{}, err
	}
	waitpoint, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.CloseResult{}, err
	}
	op, err := c.operation(r.Body.Reason, nil)
	if err != nil {
		return api.CloseResult{}, err
	}
	already, err := s.engine.CloseWaitpoint(ctx, caller, waitpoint, fence, op)
	switch {
	case err != nil:
		return api.CloseResult{}, err
	case already:
		return api.CloseResult{Outcome: outcomeAlreadyClosed}, nil
	default:
		return api.CloseResult{Outcome: outcomeClosed}, nil
	}
}

// createLink makes a link (U84).
func (s *Service) createLink(ctx context.Context, c Caller, r *wire.CreateLinkRequest) (api.IssuedLink, error) {
	caller, fence, err := c.holder(r.Body.LeaseField, r.LeaseHeaderField)
	if err != nil {
		return api.IssuedLink{}, err
	}
	waitpoint, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.IssuedLink{}, err
	}
	op, err := c.operation("", nil)
	if err != nil {
		return api.IssuedLink{}, err
	}
	cmd := linkCommandOf(waitpoint, &r.Body.LinkFields)
	cmd.Fence = fence
	return s.shownLink(s.engine.CreateLink(ctx, caller, cmd, op))
}

func linkCommandOf(waitpoint base.UUID, f *wire.LinkFields) core.CreateLinkCommand {
	return core.CreateLinkCommand{
		WaitpointID: waitpoint, Approver: f.Approver, ExpiresInMS: f.ExpiresInMS, Title: f.Title, Message: f.Message, CommentRequired: f.CommentRequired,
		Decisions: some(f.Decisions, func(choice api.LinkChoice) core.Decision { return core.Decision(choice) }),
	}
}

// readLinkURL returns the address of a link (U84).
func (s *Service) readLinkURL(ctx context.Context, c Caller, r *wire.ByLink) (api.IssuedLink, error) {
	link, err := uuidOf("link_id", r.Link)
	if err != nil {
		return api.IssuedLink{}, err
	}
	return s.shownLink(s.engine.ReadLink(ctx, c.operator(), link))
}

// shownLink returns a link with its address.
func (s *Service) shownLink(l engine.IssuedLink, err error) (api.IssuedLink, error) {
	if err != nil {
		return api.IssuedLink{}, err
	}
	return s.issuedLinkOf(l).Issued(), nil
}

// revokeLink withdraws a link (U84).
func (s *Service) revokeLink(ctx context.Context, c Caller, r *wire.RevokeLinkRequest) (wire.None, error) {
	caller, fence, err := c.holder(r.Body.LeaseField, r.LeaseHeaderField)
	if err != nil {
		return wire.None{}, err
	}
	link, err := uuidOf("link_id", r.Link)
	if err != nil {
		return wire.None{}, err
	}
	op, err := c.operation(r.Body.Reason, nil)
	if err != nil {
		return wire.None{}, err
	}
	return wire.None{}, s.engine.RevokeLink(ctx, caller, link, fence, op)
}
