package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// sendSignal delivers a signal to a waitpoint (U81).
func (s *Server) sendSignal(ctx context.Context, x *exchange) (answer, error) {
	r, fault := readWhat(x, wire.SendSignal)
	return s.takeSignal(ctx, x, r.Token, flowfabric.Signal{WaitpointID: uuidOrNobody(r.Waitpoint)}, r.Body, fault)
}

// sendExecutionSignal delivers a signal to a waitpoint that must be one of the execution (U81).
func (s *Server) sendExecutionSignal(ctx context.Context, x *exchange) (answer, error) {
	r, fault := readWhat(x, wire.SendExecutionSignal)
	to := flowfabric.Signal{WaitpointID: uuidOrNobody(r.Body.WaitpointID), ExecutionID: flowfabric.ID(r.ID)}
	if _, err := flowfabric.ParseID(r.ID); err != nil {
		to.ExecutionID = nobody
	}
	return s.takeSignal(ctx, x, r.Token, to, r.Body.SignalFields, fault)
}

// takeSignal delivers what the fields say. A token in the header goes before one in the body.
func (s *Server) takeSignal(ctx context.Context, x *exchange, token string, to flowfabric.Signal, f wire.SignalFields, fault error) (answer, error) {
	switch {
	case token == "":
		token = f.Token
	case f.Token != "" && f.Token != token && fault == nil:
		fault = refuse("invalid_argument", "header and body have different tokens").at("/token").hint("send the token once")
	}
	if fault == nil {
		x.caller.RequestKey, fault = requestKey(x.r)
	}
	if fault == nil && f.SignalID != "" && !isUUID(f.SignalID) {
		fault = refuse("invalid_signal", "must be a UUID").at("/signal_id").hint("leave it out: one is minted")
	}
	payload := f.PayloadFields.Payload()
	to.Token, to.Name, to.Payload = flowfabric.TokenOf(token), f.Name, flowfabric.Payload{Data: payload.Data, ContentType: payload.ContentType}
	to.Category, to.SourceType, to.SourceIdentity, to.CorrelationID = f.Category, f.SourceType, f.SourceIdentity, f.CorrelationID
	to.IdempotencyKey, to.SignalID, to.SentAt = f.IdempotencyKey, f.SignalID, f.SentAt.Time
	return s.deliver(ctx, x, to, fault)
}

// deliver sends a signal on. The token is verified before anything else is judged (W33): what has a fault goes on without a name, which
// the rules refuse right after the token.
func (s *Server) deliver(ctx context.Context, x *exchange, signal flowfabric.Signal, fault error) (answer, error) {
	if fault != nil {
		x.caller.RequestKey = ""
		signal = flowfabric.Signal{WaitpointID: signal.WaitpointID, ExecutionID: signal.ExecutionID, Token: signal.Token}
	}
	var receipt flowfabric.SignalReceipt
	err := s.tryToken(ctx, x, func() (err error) {
		receipt, err = s.client.Signal(x.acting(ctx), signal)
		return err
	})
	if fault != nil && flowfabric.CodeOf(err) == "invalid_signal" {
		err = fault
	}
	return shows(receipt), err
}

// callbackName is what a callback is called that has no name.
const callbackName = "callback"

// deliverCallback delivers a callback: its body is the payload, whatever it is (U82, W64).
func (s *Server) deliverCallback(ctx context.Context, x *exchange) (answer, error) {
	body, fault := wholeBody(x)
	r := new(wire.DeliverCallbackRequest)
	err := wire.DecodeHead(incoming(x), r)
	if fault == nil {
		fault = err
	}
	signal := flowfabric.Signal{
		WaitpointID: uuidOrNobody(r.Waitpoint), Token: flowfabric.TokenOf(r.Token), Name: callbackName, IdempotencyKey: r.WebhookID,
		Payload: flowfabric.Payload{Data: body, ContentType: x.r.Header.Get("Content-Type")},
	}
	if r.Name != nil {
		signal.Name = *r.Name
	}
	if key := x.r.Header.Get(wire.HeaderIdempotencyKey); key != "" {
		signal.IdempotencyKey = key
	}
	return s.deliver(ctx, x, signal, fault)
}
