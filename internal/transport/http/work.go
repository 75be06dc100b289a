package httptransport

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// leaveGrace is how long a claim continues after its caller has left.
const leaveGrace = 250 * time.Millisecond

// stay returns a context that ends a little after its parent. If a claim that is being served were cut off, it would lease work
// that no worker runs until the leases expire; so its answer is awaited. A claim that only waits is cancelled.
func (t *Transport) stay(ctx context.Context) (staying context.Context, leave func()) {
	staying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if backoff.Pause(staying, t.clock, leaveGrace) {
			cancel()
		}
	})
	return staying, func() {
		stop()
		cancel()
	}
}

// doWork sends commands through the batcher, which combines concurrent calls into one request. Overrides have a request key of
// their own, and so a request of their own.
func (t *Transport) doWork(ctx context.Context, items []api.WorkItem) []api.WorkAnswer {
	answers := make([]api.WorkAnswer, len(items))
	var group []*command[api.WorkAnswer]
	size, trace := 0, t.traceOf(ctx)
	for i := range items {
		item := &items[i]
		if item.Override {
			t.doAll(ctx, group) // earlier commands are sent before it
			group, size = nil, 0
			answers[i], answers[i].Err = t.override(ctx, item)
			continue
		}
		text, err := t.encode(item)
		if err != nil {
			answers[i].Err = err
			continue
		}
		if size += len(text); size > maxBatchBytes {
			t.doAll(ctx, group)
			group, size = nil, len(text)
		}
		group = append(group, &command[api.WorkAnswer]{text: text, answer: &answers[i], trace: trace})
	}
	t.doAll(ctx, group)
	for i := range answers {
		fillIn(&answers[i], &items[i])
	}
	return answers
}

// doAll sends commands until their outcomes are known. All of them are safe to repeat (L117).
func (t *Transport) doAll(ctx context.Context, group []*command[api.WorkAnswer]) {
	for try := 0; len(group) > 0; try++ {
		if !t.batch.do(ctx, newGroup(group...)) || try == t.maxRepeats() {
			return
		}
		var unknown []*command[api.WorkAnswer]
		for _, c := range group {
			if api.CodeOf(c.answer.Err) == string(base.CodeTimeout) {
				unknown = append(unknown, &command[api.WorkAnswer]{text: c.text, answer: c.answer, trace: c.trace})
			}
		}
		if group = unknown; len(group) == 0 || !backoff.Pause(ctx, t.clock, t.backoff(try)) {
			return
		}
	}
}

// fillIn adds what is known only on the sender's side: the continuation of a wait that is over, the execution of waitpoints that
// came without it, and that a repeat under a key that only this call has used was a further try of it.
func fillIn(a *api.WorkAnswer, item *api.WorkItem) {
	if a.Resume != nil && item.Suspension != nil {
		a.Resume.Continuation = item.Suspension.Continuation
	}
	if a.Usage != nil && item.Usage.DedupKey == "" {
		*a.Usage = a.Usage.First()
	}
	given, err := base.ParseID(string(item.ID))
	for i := range a.Waitpoints {
		if w := &a.Waitpoints[i]; err == nil && w.ExecutionID == "" {
			w.ExecutionID = api.ID(given.UUID.String())
		}
	}
}

// override is an operator's complete or fail (L37).
func (t *Transport) override(ctx context.Context, item *api.WorkItem) (api.WorkAnswer, error) {
	if _, err := api.ParseID(string(item.ID)); err != nil {
		return api.WorkAnswer{}, err
	}
	fenced, override := wire.FencedByID{ByID: wire.ByID{ID: string(item.ID)}}, wire.OverrideFields{Override: true, Reason: item.Reason}
	how := sending{key: item.RequestKey}
	switch item.Op {
	case api.OpComplete:
		if err := item.Result.Problem("result"); err != nil {
			return api.WorkAnswer{}, err
		}
		request := &wire.CompleteRequest{FencedByID: fenced}
		request.Body.OverrideFields = override
		request.Body.Result, request.Body.Usage = item.Result, item.Usage.Amounts
		answer, err := call(ctx, t, wire.CompleteExecution, request, how)
		if err != nil {
			return api.WorkAnswer{}, err
		}
		return api.WorkAnswer{Status: api.Status(answer.Status), Late: answer.Late}, nil
	case api.OpFail:
		request := &wire.FailRequest{FencedByID: fenced}
		request.Body.OverrideFields = override
		request.Body.FailFields = wire.FailFields{
			Class: item.Class, Category: item.Category, Message: item.Message,
			DetailField: wire.DetailField{Detail: item.Detail}, RetryAfterMS: wire.Span(item.RetryAfter),
		}
		request.Body.Usage = item.Usage.Amounts
		answer, err := call(ctx, t, wire.FailExecution, request, how)
		if err != nil {
			return api.WorkAnswer{}, err
		}
		return api.WorkAnswer{Outcome: answer.Outcome, RetryAt: answer.RetryAt.Time, Reason: answer.Reason, Late: answer.Late}, nil
	default:
		return api.WorkAnswer{}, refuse(base.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).At("override", "complete and fail can")
	}
}

// encode writes a command for a batch. A command whose repeat cannot be recognised by its fence gets a key before its first try.
func (t *Transport) encode(i *api.WorkItem) ([]byte, error) {
	if _, err := api.ParseID(string(i.ID)); err != nil {
		return nil, err
	}
	if err := i.Lease.Check(); err != nil {
		return nil, err
	}
	w := t.items.Get().(*wire.WorkItem)
	defer func() {
		*w = wire.WorkItem{}
		t.items.Put(w)
	}()
	if err := w.Set(i); err != nil {
		return nil, err
	}
	switch {
	case (i.Op == api.OpWaitpoint || i.Op == api.OpSuspend) && w.IdempotencyKey == "":
		w.IdempotencyKey = mint.Key(t.clock)
	case i.Op == api.OpUsage && w.DedupKey == "":
		w.DedupKey = mint.Key(t.clock)
	}
	text, err := wire.Marshal(w)
	return text, api.FaultsError(err)
}

// sendWork sends a batch of commands.
func (t *Transport) sendWork(batch []*command[api.WorkAnswer]) error {
	message, err := wire.Encode(wire.SendWork, &wire.SendWorkRequest{Encoding: wire.EncodingBytes})
	if err != nil {
		return api.FaultsError(err)
	}
	message.Body = batchBody(batch)
	message.Header.Set("Content-Type", wire.ContentJSON)
	ctx, links := t.batchContext(batch)
	answer, err := t.send(ctx, wire.SendWork.Operation, message, sending{links: links})
	if err != nil {
		return err
	}
	n, err := wire.ReadItems(answer.body, func(i int, item *wire.Item[api.WorkAnswerFields]) {
		if i < len(batch) {
			batch[i].read = item.Value.Answer()
			batch[i].read.Err = item.Error.Refusal()
		}
	})
	t.release(answer)
	if err != nil || n != len(batch) || answer.status != http.StatusOK {
		return transport.Garbled(fmt.Errorf("not the answers to %d commands: %w", len(batch), err))
	}
	return nil
}
