package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/service"
)

func (e *embedded) Signal(ctx context.Context, s Signal) (SignalReceipt, error) {
	cmd, err := s.core()
	if err != nil {
		return SignalReceipt{}, err
	}
	var id *core.GivenID
	if s.ExecutionID != "" {
		given, _ := parseID(s.ExecutionID) // what is no id is that of no execution, and no token opens it (W33)
		id = &given
	}
	minted := cmd.SignalID.IsZero() && cmd.IdempotencyKey == "" && !e.keyedRequest(ctx)
	if minted {
		cmd.SignalID = mintUUID(e.clock) // so that a second try is known
	}
	tries := 0
	answer, err := untilKnown(ctx, e.clock, func() (core.SignalAnswer, error) {
		tries++
		return e.engine.Signal(ctx, e.asClient(ctx), id, s.Token.Token, cmd)
	})
	if err != nil {
		return SignalReceipt{}, err
	}
	if minted && tries > 1 {
		answer.Duplicate, answer.SameRequest = false, false // a try whose answer was lost was accepted
	}
	return service.ReceiptOf(answer), nil
}

// keyedRequest reports whether the call belongs to a request with a key, by which the engine knows its repeats (U13).
func (e *embedded) keyedRequest(ctx context.Context) bool {
	p, ok := principal.From(ctx)
	return ok && p.RequestKey != ""
}

// core is the command; its token goes beside it.
func (s *Signal) core() (core.SignalCommand, error) {
	cmd := core.SignalCommand{
		Name: s.Name, Category: s.Category, SourceType: s.SourceType, SourceIdentity: s.SourceIdentity, CorrelationID: s.CorrelationID,
		IdempotencyKey: s.IdempotencyKey, SentAt: core.TimeOf(s.SentAt), Payload: service.CorePayload(s.Payload),
	}
	var err error
	cmd.WaitpointID, _ = core.ParseUUID(s.WaitpointID)
	if cmd.SignalID, err = uuidOf("signal_id", s.SignalID); err != nil {
		return cmd, err
	}
	return cmd, s.Payload.Problem("payload")
}

func (e embeddedOperate) Resume(ctx context.Context, id ID, o ...ResumeOptions) (*Execution, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	expected, err := uuidOf("expected_suspension_id", options.ExpectedSuspensionID)
	if err != nil {
		return nil, err
	}
	cmd := core.ResumeCommand{DelayMS: millis(options.Delay), Reason: options.Reason, ExpectedSuspensionID: expected}
	return e.act(ctx, id, options.Action, func(given core.GivenID, op engine.Operator) (engine.View, error) {
		view, _, err := e.client.engine.Resume(ctx, e.client.asOperator(ctx), given, cmd, op)
		return view, err
	})
}

// The names of the signals with which people decide.
const (
	signalApproved = "approved"
	signalRejected = "rejected"
)

// command is what the engine is told of an operator's signal.
func (a *Approve) command() (core.ApproveCommand, error) {
	waitpoint, err := uuidOf("waitpoint_id", a.WaitpointID)
	if err != nil {
		return core.ApproveCommand{}, err
	}
	if err := a.Payload.Problem("payload"); err != nil {
		return core.ApproveCommand{}, err
	}
	cmd := core.ApproveCommand{WaitpointID: waitpoint, Name: a.Name, Suffix: a.Suffix, Lane: a.Lane, Comment: a.Comment}
	if cmd.Name == "" {
		cmd.Name = signalApproved
	}
	if !a.Payload.IsNothing() {
		payload := service.CorePayload(a.Payload)
		cmd.Payload = &payload
	}
	return cmd, nil
}

func (e embeddedOperate) Approve(ctx context.Context, id ID, a Approve) (SignalReceipt, error) {
	cmd, err := a.command()
	if err != nil {
		return SignalReceipt{}, err
	}
	given, op, err := e.client.operation(ctx, id, a.Action)
	if err != nil {
		return SignalReceipt{}, err
	}
	answer, err := untilKnown(ctx, e.client.clock, func() (core.SignalAnswer, error) {
		return e.client.engine.Approve(ctx, e.client.asOperator(ctx), given, cmd, op)
	})
	if err != nil {
		return SignalReceipt{}, err
	}
	return service.ReceiptOf(answer), nil
}
