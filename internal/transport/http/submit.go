package httptransport

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// maxSubmitBytes bounds a batch of submits. It is a size that intermediaries accept with their default settings.
const maxSubmitBytes = 1 << 20

// submitOne sends a submission at once while few are in flight; submissions that arrive meanwhile are sent together.
func (t *Transport) submitOne(ctx context.Context, request *wire.SubmitRequest, result *api.SubmitResult, how transport.Options) (err error) {
	text, err := wire.Marshal(&request.Body)
	if err != nil {
		return api.FaultsError(err)
	}
	switch alone := t.cfg.Tracer != nil; { // every call has a span of its own, which its request carries
	case alone || how.Again:
		*result, err = t.submitAlone(ctx, text, sending{key: how.Key, repeat: how.Again})
	case t.submit.takeOff():
		defer t.submit.land()
		*result, err = t.submitAlone(ctx, text, sending{key: how.Key})
	default:
		*result, err = t.submitTogether(ctx, text)
	}
	return err
}

// submitAlone sends a submission in a request of its own.
func (t *Transport) submitAlone(ctx context.Context, text []byte, how sending) (api.SubmitResult, error) {
	answer, err := t.send(ctx, wire.SubmitExecution.Operation, jsonMessage(wire.SubmitExecution.Operation, text), how)
	if err != nil {
		return api.SubmitResult{}, err
	}
	defer t.release(answer)
	var result api.SubmitResult
	if err := wire.DecodeAnswer(answer.body, &result); err != nil { // the rest of the execution is not needed
		return api.SubmitResult{}, transport.Garbled(err)
	}
	return result, nil
}

// submitTogether sends a submission in a batch with others. If the server could not serve it, or its outcome is unknown, it is
// repeated, as a request of its own would be.
func (t *Transport) submitTogether(ctx context.Context, text []byte) (api.SubmitResult, error) {
	began, unknown := t.clock.Now(), false
	for try := 0; ; try++ {
		if err := t.enter(); err != nil {
			return api.SubmitResult{}, err
		}
		result, trace := api.SubmitResult{}, transport.TraceAt(ctx, nil)
		g := newGroup(&command[api.SubmitResult]{text: text, answer: &result, trace: trace})
		g.head, g.gone = trace, t.calls.Done
		answered := t.submit.do(ctx, g)
		err := result.Err
		if err == nil {
			return result, nil
		}
		unknown = unknown || api.CodeOf(err) == string(base.CodeTimeout)
		if ctx.Err() == nil && !repeatable(err) {
			return api.SubmitResult{}, err
		}
		wait := max(t.backoff(try), api.RetryDelay(err))
		if answered && ctx.Err() == nil && try < t.maxRepeats() && t.inTime(began, wait) && backoff.Pause(ctx, t.clock, wait) {
			continue
		}
		return api.SubmitResult{}, t.givenUp(ctx, wire.SubmitExecution.Operation, err, unknown)
	}
}

// jsonMessage is a request whose JSON is written already.
func jsonMessage(o *wire.Operation, body []byte) wire.Message {
	return wire.Message{Method: o.Method, Path: o.Path, Header: map[string][]string{"Content-Type": {wire.ContentJSON}}, Body: body}
}

// sendSubmits sends submissions that were queued together. A single one is sent as a plain submit, so that a refusal names its
// own fields.
func (t *Transport) sendSubmits(batch []*command[api.SubmitResult]) error {
	ctx := context.Background()                           // it belongs to no single caller
	if of := batch[0].trace; of != (api.TraceContext{}) { // the same for all of them
		ctx = transport.WithTrace(ctx, of)
	}
	if len(batch) == 1 {
		result, err := t.submitAlone(ctx, batch[0].text, sending{entered: true})
		batch[0].read = result
		return err
	}
	o := wire.SubmitExecutions.Operation
	answer, err := t.send(ctx, o, jsonMessage(o, batchBody(batch)), sending{entered: true})
	if err != nil {
		return err
	}
	defer t.release(answer)
	var results wire.SubmitResults
	if err := wire.DecodeAnswer(answer.body, &results); err != nil || len(results) != len(batch) {
		return transport.Garbled(fmt.Errorf("not the answers to %d submissions: %w", len(batch), err))
	}
	for i, result := range results {
		batch[i].read = result
	}
	return nil
}
