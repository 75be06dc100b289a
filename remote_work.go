package flowfabric

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// leaveGrace is how long a claim goes on whose caller has left.
const leaveGrace = 250 * time.Millisecond

// stay is a context that ends a little after its parent. A claim that is being served then would lease work to nobody, until the
// leases lapse; so it is heard out. One that only waits is given up.
func (r *remote) stay(ctx context.Context) (staying context.Context, leave func()) {
	staying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if backoff.Pause(staying, r.clock, leaveGrace) {
			cancel()
		}
	})
	return staying, func() {
		stop()
		cancel()
	}
}

// doWork sends commands through the batcher, which puts what many callers send at a time into one request. Overrides have a request key of
// their own, and so a request of their own.
func (r *remote) doWork(ctx context.Context, items []WorkItem) []WorkAnswer {
	answers := make([]WorkAnswer, len(items))
	var group []*command[WorkAnswer]
	size, trace := 0, r.traceOf(ctx)
	for i := range items {
		item := &items[i]
		if item.Override {
			r.doAll(ctx, group) // those before it come before it
			group, size = nil, 0
			answers[i], answers[i].Err = r.override(ctx, item)
			continue
		}
		text, err := r.encode(item)
		if err != nil {
			answers[i].Err = err
			continue
		}
		if size += len(text); size > maxBatchBytes {
			r.doAll(ctx, group)
			group, size = nil, len(text)
		}
		group = append(group, &command[WorkAnswer]{text: text, answer: &answers[i], trace: trace})
	}
	r.doAll(ctx, group)
	for i := range answers {
		fillIn(&answers[i], &items[i])
	}
	return answers
}

// doAll sends commands until their outcomes are known. All of them recognise their repeats (L117).
func (r *remote) doAll(ctx context.Context, group []*command[WorkAnswer]) {
	for try := 0; len(group) > 0; try++ {
		if !r.batch.do(ctx, newGroup(group...)) || try == r.maxRepeats() {
			return
		}
		var unknown []*command[WorkAnswer]
		for _, c := range group {
			if CodeOf(c.answer.Err) == string(base.CodeTimeout) {
				unknown = append(unknown, &command[WorkAnswer]{text: c.text, answer: c.answer, trace: c.trace})
			}
		}
		if group = unknown; len(group) == 0 || !backoff.Pause(ctx, r.clock, r.backoff(try)) {
			return
		}
	}
}

// fillIn adds what the sender of a command knows itself: the continuation of a wait that is passed, the execution of waitpoints that came
// without it, and that a repeat under a key that only this call had was a further try of it.
func fillIn(a *WorkAnswer, item *WorkItem) {
	if a.Resume != nil && item.Suspension != nil {
		a.Resume.Continuation = item.Suspension.Continuation
	}
	if a.Usage != nil && item.Usage.DedupKey == "" {
		*a.Usage = a.Usage.First()
	}
	given, err := parseID(item.ID)
	for i := range a.Waitpoints {
		if w := &a.Waitpoints[i]; err == nil && w.ExecutionID == "" {
			w.ExecutionID = ID(given.UUID.String())
		}
	}
}

// override is an operator's complete or fail (L37).
func (r *remote) override(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
	path, err := byID(item.ID)
	if err != nil {
		return WorkAnswer{}, err
	}
	fenced, override := wire.FencedByID{ByID: path}, wire.OverrideFields{Override: true, Reason: item.Reason}
	how := sending{key: item.RequestKey}
	switch item.Op {
	case OpComplete:
		if err := item.Result.Problem("result"); err != nil {
			return WorkAnswer{}, err
		}
		request := &wire.CompleteRequest{FencedByID: fenced}
		request.Body.OverrideFields = override
		request.Body.Result, request.Body.Usage = item.Result, item.Usage.Amounts
		answer, err := call(ctx, r, wire.CompleteExecution, request, how)
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Status: Status(answer.Status), Late: answer.Late}, nil
	case OpFail:
		request := &wire.FailRequest{FencedByID: fenced}
		request.Body.OverrideFields = override
		request.Body.FailFields = wire.FailFields{
			Class: item.Class, Category: item.Category, Message: item.Message,
			DetailField: wire.DetailField{Detail: item.Detail}, RetryAfterMS: wire.Span(item.RetryAfter),
		}
		request.Body.Usage = item.Usage.Amounts
		answer, err := call(ctx, r, wire.FailExecution, request, how)
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Outcome: answer.Outcome, RetryAt: answer.RetryAt.Time, Reason: answer.Reason, Late: answer.Late}, nil
	default:
		return WorkAnswer{}, newError(base.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).At("override", "complete and fail can")
	}
}

// encode writes a command for a batch. One whose repeat could not be told by its fence gets a key before its first try.
func (r *remote) encode(i *WorkItem) ([]byte, error) {
	if _, err := parseID(i.ID); err != nil {
		return nil, err
	}
	if _, err := fenceOf(i.Lease); err != nil {
		return nil, err
	}
	w := r.items.Get().(*wire.WorkItem)
	defer func() {
		*w = wire.WorkItem{}
		r.items.Put(w)
	}()
	if err := w.Set(i); err != nil {
		return nil, err
	}
	switch {
	case (i.Op == OpWaitpoint || i.Op == OpSuspend) && w.IdempotencyKey == "":
		w.IdempotencyKey = mintUUID(r.clock).String()
	case i.Op == OpUsage && w.DedupKey == "":
		w.DedupKey = mintUUID(r.clock).String()
	}
	text, err := wire.Marshal(w)
	return text, api.FaultsError(err)
}

// sendWork sends a batch of commands.
func (r *remote) sendWork(batch []*command[WorkAnswer]) error {
	message, err := wire.Encode(wire.SendWork, &wire.SendWorkRequest{Encoding: wire.EncodingBytes})
	if err != nil {
		return api.FaultsError(err)
	}
	message.Body = batchBody(batch)
	message.Header.Set("Content-Type", wire.ContentJSON)
	ctx, links := r.batchContext(batch)
	answer, err := r.send(ctx, wire.SendWork.Operation, message, sending{links: links})
	if err != nil {
		return err
	}
	n, err := wire.ReadItems(answer.body, func(i int, item *wire.Item[api.WorkAnswerFields]) {
		if i < len(batch) {
			batch[i].read = item.Value.Answer()
			batch[i].read.Err = item.Error.Refusal()
		}
	})
	r.release(answer)
	if err != nil || n != len(batch) || answer.status != http.StatusOK {
		return garbled(fmt.Errorf("not the answers to %d commands: %w", len(batch), err))
	}
	return nil
}
