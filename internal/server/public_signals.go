package server

import (
	"cmp"
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// sendSignal delivers a signal to a waitpoint (U81).
func (s *Server) sendSignal(ctx context.Context, x *exchange) (answer, error) {
	r, fault := readWhat(x, wire.SendSignal)
	r.Token, fault = s.checkSignal(x, r.Token, &r.Body, fault)
	return sendOn(ctx, s, x, wire.SendSignal, r, &r.Body.Signal, fault)
}

// sendExecutionSignal delivers a signal to a waitpoint that must be one of the execution (U81).
func (s *Server) sendExecutionSignal(ctx context.Context, x *exchange) (answer, error) {
	r, fault := readWhat(x, wire.SendExecutionSignal)
	r.Token, fault = s.checkSignal(x, r.Token, &r.Body.SignalFields, fault)
	return sendOn(ctx, s, x, wire.SendExecutionSignal, r, &r.Body.Signal, fault)
}

// checkSignal returns the token of a signal and the error of the rest. A token in the header takes precedence over one in the
// body.
func (s *Server) checkSignal(x *exchange, token string, f *wire.SignalFields, fault error) (string, error) {
	if token != "" && f.Token != "" && f.Token != token && fault == nil {
		fault = refuse("invalid_argument", "header and body have different tokens").at("/token").hint("send the token once")
	}
	if fault == nil {
		x.caller.RequestKey, fault = requestKey(x.r)
	}
	if fault == nil && f.SignalID != "" && !isUUID(f.SignalID) {
		fault = refuse("invalid_signal", "must be a UUID").at("/signal_id").hint("leave it out: one is minted")
	}
	return cmp.Or(token, f.Token), fault
}

// sendOn passes a signal on. The token is verified before anything else (W33): an invalid signal is passed on without a name,
// which the engine refuses right after the token.
func sendOn[Req any](
	ctx context.Context, s *Server, x *exchange, call wire.Call[Req, api.SignalReceipt], r *Req, signal *api.Signal, fault error,
) (answer, error) {
	if fault != nil {
		x.caller.RequestKey, *signal = "", api.Signal{}
	}
	var receipt *api.SignalReceipt
	err := s.tryToken(ctx, x, func() (err error) {
		receipt, err = ask(ctx, s, x.acting(), call, r)
		return err
	})
	if fault != nil && api.CodeOf(err) == "invalid_signal" {
		err = fault
	}
	return shows(receipt), err
}

// callbackName is what a callback is called that has no name.
const callbackName = "callback"

// deliverCallback delivers a callback: its body is the payload, whatever it is (U82, W64).
func (s *Server) deliverCallback(ctx context.Context, x *exchange) (answer, error) {
	body, fault := wholeBody(x)
	head := new(wire.DeliverCallbackRequest)
	err := wire.DecodeHead(incoming(x), head)
	if fault == nil {
		fault = err
	}
	r := &wire.SendSignalRequest{Waitpoint: head.Waitpoint, Token: head.Token}
	r.Body.Signal = api.Signal{
		Name: callbackName, IdempotencyKey: cmp.Or(x.r.Header.Get(wire.HeaderIdempotencyKey), head.WebhookID),
		Payload: api.Payload{Data: body, ContentType: x.r.Header.Get("Content-Type")},
	}
	if head.Name != nil {
		r.Body.Name = *head.Name
	}
	return sendOn(ctx, s, x, wire.SendSignal, r, &r.Body.Signal, fault)
}
