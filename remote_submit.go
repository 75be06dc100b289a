package flowfabric

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// maxSubmitBytes bounds a batch of submits. It is what servers in between let pass that were told nothing else.
const maxSubmitBytes = 1 << 20

// submitOne sends a submission at once while few are under way; those that come meanwhile travel together.
func (r *remote) submitOne(ctx context.Context, request *wire.SubmitRequest, result *SubmitResult, how transport.Options) (err error) {
	text, err := wire.Marshal(&request.Body)
	if err != nil {
		return api.FaultsError(err)
	}
	switch alone := r.cfg.Tracer != nil; { // every call has a span of its own, which its request names
	case alone || how.Again:
		*result, err = r.submitAlone(ctx, text, sending{key: how.Key, repeat: how.Again})
	case r.submit.takeOff():
		defer r.submit.land()
		*result, err = r.submitAlone(ctx, text, sending{key: how.Key})
	default:
		*result, err = r.submitTogether(ctx, text)
	}
	return err
}

// submitAlone sends a submission in a request of its own.
func (r *remote) submitAlone(ctx context.Context, text []byte, how sending) (SubmitResult, error) {
	answer, err := r.send(ctx, wire.SubmitExecution.Operation, jsonMessage(wire.SubmitExecution.Operation, text), how)
	if err != nil {
		return SubmitResult{}, err
	}
	defer r.release(answer)
	var result SubmitResult
	if err := wire.DecodeAnswer(answer.body, &result); err != nil { // the rest of the execution is not needed
		return SubmitResult{}, garbled(err)
	}
	return result, nil
}

// submitTogether sends a submission with those of others. What the server could not do, or does not know the outcome of, is sent
// again, as a request of its own would be.
func (r *remote) submitTogether(ctx context.Context, text []byte) (SubmitResult, error) {
	began, unknown := r.clock.Now(), false
	for try := 0; ; try++ {
		if err := r.enter(); err != nil {
			return SubmitResult{}, err
		}
		result, trace := SubmitResult{}, traceAt(ctx, nil)
		g := newGroup(&command[SubmitResult]{text: text, answer: &result, trace: trace})
		g.head, g.gone = trace, r.calls.Done
		answered := r.submit.do(ctx, g)
		err := result.Err
		if err == nil {
			return result, nil
		}
		unknown = unknown || CodeOf(err) == string(base.CodeTimeout)
		if ctx.Err() == nil && !repeatable(err) {
			return SubmitResult{}, err
		}
		wait := max(r.backoff(try), RetryDelay(err))
		if answered && ctx.Err() == nil && try < r.maxRepeats() && r.inTime(began, wait) && backoff.Pause(ctx, r.clock, wait) {
			continue
		}
		return SubmitResult{}, r.givenUp(ctx, wire.SubmitExecution.Operation, err, unknown)
	}
}

// jsonMessage is a request whose JSON is written already.
func jsonMessage(o *wire.Operation, body []byte) wire.Message {
	return wire.Message{Method: o.Method, Path: o.Path, Header: map[string][]string{"Content-Type": {wire.ContentJSON}}, Body: body}
}

// sendSubmits sends submissions that queued together. One that is left alone goes as such: its refusal then names its own fields.
func (r *remote) sendSubmits(batch []*command[SubmitResult]) error {
	ctx := context.Background()                     // it belongs to no single caller
	if t := batch[0].trace; t != (TraceContext{}) { // that of all
		ctx = principal.WithTrace(ctx, principal.Trace{Parent: t.Traceparent, State: t.Tracestate, Baggage: t.Baggage})
	}
	if len(batch) == 1 {
		result, err := r.submitAlone(ctx, batch[0].text, sending{entered: true})
		batch[0].read = result
		return err
	}
	o := wire.SubmitExecutions.Operation
	answer, err := r.send(ctx, o, jsonMessage(o, batchBody(batch)), sending{entered: true})
	if err != nil {
		return err
	}
	defer r.release(answer)
	var results wire.SubmitResults
	if err := wire.DecodeAnswer(answer.body, &results); err != nil || len(results) != len(batch) {
		return garbled(fmt.Errorf("not the answers to %d submissions: %w", len(batch), err))
	}
	for i, result := range results {
		batch[i].read = result
	}
	return nil
}
