package server

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// serveWaits are the waits of an execution (U42, U49, U52, U71, U72).
func (s *Server) serveWaits() {
	handle(s, wire.ListExecutionSignals, s.listSignals)
	handle(s, wire.GetSuspension, s.getSuspension)
	passShown(s, wire.ResumeExecution)
	handle(s, wire.SuspendExecution, s.suspend)
	handle(s, wire.CreateWaitpoint, s.createWaitpoint)
}

// inlineSignals is how many signals a page with all their payloads has: no more than 8 MiB of them.
const inlineSignals = pageBytes / signalSize

// listSignals lists the signals of an execution (U42).
func (s *Server) listSignals(ctx context.Context, x *exchange, r *wire.ListSignalsRequest) (answer, error) {
	if r.Inline && (r.Limit == nil || *r.Limit > inlineSignals) {
		limit := inlineSignals
		r.Limit = &limit
	}
	page, err := ask(ctx, s, x.by, wire.ListExecutionSignals, r)
	if err != nil {
		return answer{}, err
	}
	page.Items = signalsShown(page.Items, r.Inline, r.Encoding)
	return shows(page), nil
}

// signalsShown are signals of which large payloads are left out unless all is asked for (U10, W85).
func signalsShown(all []api.SignalRecord, inline bool, encoding wire.Encoding) []api.SignalRecord {
	shown := slices.Clone(all)
	for i := range shown {
		p := &shown[i].Payload
		switch {
		case !inline && len(p.Data) > inlineResult:
			*p = api.Unloaded(p.ContentType, p.Size())
		case encoding == wire.EncodingBytes:
			*p = p.AsBytes()
		}
	}
	return shown
}

// suspensionSignals are the signals of a wait.
type suspensionSignals struct {
	Signals []api.SignalRecord `json:"signals,omitempty"`
}

// getSuspension returns the wait that is open or ended last; if there is none the answer is an empty object (U42).
func (s *Server) getSuspension(ctx context.Context, x *exchange, r *wire.GetSuspensionRequest) (answer, error) {
	found, err := ask(ctx, s, x.by, wire.GetSuspension, r)
	if err != nil {
		return answer{}, err
	}
	if found.ID == "" {
		return shows(wire.NoSuspension{}), nil
	}
	head := *found
	head.Signals = nil
	if r.Encoding == wire.EncodingBytes {
		head.Continuation = head.Continuation.AsBytes()
	}
	return shows(flat{head, suspensionSignals{signalsShown(found.Signals, r.Inline, r.Encoding)}}), nil
}

// suspend gives the work back until signals have come (U71).
func (s *Server) suspend(ctx context.Context, x *exchange, r *wire.SuspendRequest) (answer, error) {
	a, err := ask(ctx, s, x.by, wire.SuspendExecution, r)
	if err != nil {
		return answer{}, err
	}
	for i := range a.Waitpoints {
		a.Waitpoints[i].CallbackURL = s.absolute(x, a.Waitpoints[i].CallbackURL)
	}
	if r.Encoding == wire.EncodingBytes {
		a.Signals = signalsShown(a.Signals, true, r.Encoding)
	}
	return shows(a), nil
}

// createWaitpoint makes a waitpoint before anything waits at it (U72).
func (s *Server) createWaitpoint(ctx context.Context, x *exchange, r *wire.CreateWaitpointRequest) (answer, error) {
	made, err := ask(ctx, s, x.by, wire.CreateWaitpoint, r)
	if err != nil {
		return answer{}, asSent(err, "idempotency_key", r.Body.IdempotencyKey)
	}
	made.CallbackURL = s.absolute(x, made.CallbackURL)
	return shows(made).with("Location", "/v1/waitpoints/"+made.ID), nil
}

// workShown is the answer to one command of a batch, with the tokens of its waitpoints.
type workShown struct {
	api.WorkAnswer
	tokens any // nil: it has none
}

// MarshalJSON writes the fields of the command's own answer (U77).
func (a workShown) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (a workShown) AppendJSON(text []byte) ([]byte, error) {
	if a.tokens == nil {
		return a.WorkAnswer.AppendJSON(text)
	}
	return wire.Append(text, flat{a.WorkAnswer, a.tokens})
}

// madeWaitpoint is the waitpoint that a command of a batch made.
type madeWaitpoint struct {
	Waitpoint api.IssuedWaitpoint `json:"waitpoint"`
}

// workShown is the answer to a command of a batch.
func (s *Server) workShown(x *exchange, a api.WorkAnswer, encoding wire.Encoding) workShown {
	if a.Step != nil && encoding == wire.EncodingBytes {
		a.Step.Result = a.Step.Result.AsBytes()
	}
	shown := workShown{WorkAnswer: withoutWaitpoints(a, encoding)}
	switch {
	case a.SuspensionID != "":
		shown.tokens = s.suspendWaitpoints(x, a.Waitpoints)
	case len(a.Waitpoints) > 0:
		shown.tokens = madeWaitpoint{s.issued(x, &a.Waitpoints[0])}
	}
	return shown
}

// suspendWaitpoints are the waitpoints of an answer to a suspend.
type suspendWaitpoints struct {
	Waitpoints []api.SuspendWaitpoint `json:"waitpoints"`
}

// suspendWaitpoints returns the waitpoints of a wait, with tokens and addresses (U71).
func (s *Server) suspendWaitpoints(x *exchange, all []api.Waitpoint) suspendWaitpoints {
	shown := suspendWaitpoints{make([]api.SuspendWaitpoint, len(all))}
	for i := range all {
		shown.Waitpoints[i] = all[i].Handed()
		shown.Waitpoints[i].CallbackURL = s.absolute(x, all[i].CallbackURL)
	}
	return shown
}

// withoutWaitpoints is the rest of such an answer.
func withoutWaitpoints(a api.WorkAnswer, encoding wire.Encoding) api.WorkAnswer {
	a.Waitpoints = nil
	if a.Resume != nil && encoding == wire.EncodingBytes {
		a.Resume = resumeAsBytes(a.Resume)
	}
	return a
}

// resumeAsBytes encodes the payloads of a wait as base64 (U9).
func resumeAsBytes(r *api.Resume) *api.Resume {
	if r == nil {
		return nil
	}
	exact := *r
	exact.Continuation = r.Continuation.AsBytes()
	exact.Signals = make([]api.SignalRecord, len(r.Signals))
	for i, signal := range r.Signals {
		signal.Payload = signal.Payload.AsBytes()
		exact.Signals[i] = signal
	}
	return &exact
}
