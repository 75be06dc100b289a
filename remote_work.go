package flowfabric

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

type remoteWork struct{ client *remote }

// leaseRef is the fence in the form of requests; ids that are none are invalid_id.
func leaseRef(l Lease, id ID) (wire.LeaseRef, error) {
	if _, err := parseID(id); err != nil {
		return wire.LeaseRef{}, err
	}
	if _, err := fenceOf(l); err != nil {
		return wire.LeaseRef{}, err
	}
	return refOf(l), nil
}

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

// Do sends the commands through the batcher, which puts what many callers send at a time into one request. Overrides have a request
// key of their own, and so a request of their own.
func (r remoteWork) Do(ctx context.Context, items ...WorkItem) ([]WorkAnswer, error) {
	if len(items) > maxWorkItems {
		return nil, newError(core.CodeBatchTooLarge, "%d items, at most %d", len(items), maxWorkItems).At("items", "send them in several calls")
	}
	answers := make([]WorkAnswer, len(items))
	var group []*command[WorkAnswer]
	size, trace := 0, r.client.traceOf(ctx)
	for i := range items {
		item := &items[i]
		if item.Override {
			r.doAll(ctx, group) // those before it come before it
			group, size = nil, 0
			answers[i], answers[i].Err = r.override(ctx, item)
			continue
		}
		text, err := r.client.encode(item.keyed(r.client.clock))
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
		if passed := answers[i].Resume; passed != nil && items[i].Suspension != nil {
			passed.Continuation = items[i].Suspension.Continuation
		}
		answers[i].belongTo(items[i].ID)
		answers[i].forget(&items[i])
	}
	return answers, nil
}

// doAll sends commands until their outcomes are known. All of them recognise their repeats (L117).
func (r remoteWork) doAll(ctx context.Context, group []*command[WorkAnswer]) {
	for try := 0; len(group) > 0; try++ {
		if !r.client.batch.do(ctx, newGroup(group...)) || try == r.client.maxRepeats() {
			return
		}
		var unknown []*command[WorkAnswer]
		for _, c := range group {
			if CodeOf(c.answer.Err) == string(core.CodeTimeout) {
				unknown = append(unknown, &command[WorkAnswer]{text: c.text, answer: c.answer, trace: c.trace})
			}
		}
		if group = unknown; len(group) == 0 || !backoff.Pause(ctx, r.client.clock, r.client.backoff(try)) {
			return
		}
	}
}

// override is an operator's complete or fail (L37).
func (r remoteWork) override(ctx context.Context, item *WorkItem) (WorkAnswer, error) {
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
		request.Body.Result = item.Result
		answer, err := call(ctx, r.client, wire.CompleteExecution, request, how)
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Status: Status(answer.Status), Late: answer.Late}, nil
	case OpFail:
		request := &wire.FailRequest{FencedByID: fenced}
		request.Body.OverrideFields = override
		request.Body.FailFields = wire.FailFields{
			Class: item.Class, Category: item.Category, Message: item.Message,
			DetailField: wire.DetailField{Detail: item.Detail}, RetryAfterMS: item.retryAfter(),
		}
		answer, err := call(ctx, r.client, wire.FailExecution, request, how)
		if err != nil {
			return WorkAnswer{}, err
		}
		return WorkAnswer{Outcome: answer.Outcome, RetryAt: answer.RetryAt.Time, Reason: answer.Reason, Late: answer.Late}, nil
	default:
		return WorkAnswer{}, newError(core.CodeInvalidArgument, "%q cannot be done without a lease", item.Op).At("override", "complete and fail can")
	}
}

func (i *WorkItem) retryAfter() *int64 {
	if i.RetryAfter == nil {
		return nil
	}
	after := millis(*i.RetryAfter)
	return &after
}

// encode writes the command for a batch. What the server would refuse as no command at all is refused here: it would take the
// whole batch with it.
func (r *remote) encode(i *WorkItem) ([]byte, error) {
	lease, err := leaseRef(i.Lease, i.ID)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(i.Result.Problem("result"), i.Detail.Problem("detail")); err != nil {
		return nil, err
	}
	w := r.items.Get().(*wire.WorkItem)
	defer func() {
		*w = wire.WorkItem{}
		r.items.Put(w)
	}()
	w.Op, w.ExecutionID, w.Lease = string(i.Op), string(i.ID), lease
	switch i.Op {
	case OpRenew:
		w.TTLMS = millis(i.TTL)
	case OpProgress:
		w.Percent, w.Message = i.Percent, given(i.Message)
	case OpComplete:
		w.Result, w.Usage = i.Result, i.Usage.Amounts
	case OpFail:
		w.Usage = i.Usage.Amounts
		w.Class, w.Category, w.Message, w.RetryAfterMS = i.Class, i.Category, &i.Message, i.retryAfter()
		w.Detail = i.Detail
	case OpRelease, OpCancel:
		w.Reason = i.Reason
	case OpDelay:
		w.Usage = i.Usage.Amounts
		w.DelayFields, err = i.delay()
	case OpUsage:
		w.Usage, w.DedupKey, w.AlreadySpent = amounts(i.Usage.Amounts), i.Usage.DedupKey, i.Usage.AlreadySpent
	case OpStep:
		if w.Name = i.Step; i.Step == "" {
			err = newError(core.CodeInvalidArgument, "the step has no name").At("name", "give it one")
		}
		w.Result = i.Result
	case OpSuspend:
		w.Usage = i.Usage.Amounts
		err = i.Suspension.into(w)
	case OpWaitpoint:
		err = i.Waitpoint.into(w)
	case OpSpawn:
		err = i.spawnInto(w)
	case OpWaitChildren:
		err = i.childrenInto(w)
	default:
		err = newError(core.CodeInvalidArgument, "%q is not a command", i.Op).At("op", "use one of the Op constants")
	}
	if err != nil {
		return nil, err
	}
	text, err := wire.Marshal(w)
	return text, api.FaultsError(err)
}

// delay is one of two ways to say until when.
func (i *WorkItem) delay() (wire.DelayFields, error) {
	switch {
	case i.Until.IsZero():
		ms := millis(i.Delay)
		return wire.DelayFields{DelayMS: &ms}, nil
	case i.Delay == 0:
		return wire.DelayFields{Until: wireTime(i.Until)}, nil
	default:
		return wire.DelayFields{}, newError(core.CodeInvalidArgument, "give a moment or a delay, not both").At("delay_ms", "leave one of them out")
	}
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
	n, err := wire.ReadItems(answer.body, func(i int, item *wire.Item[wire.WorkAnswer]) {
		if i < len(batch) {
			batch[i].read = workAnswerFrom(&item.Value)
			batch[i].read.Err = refusalFrom(item.Error)
		}
	})
	r.release(answer)
	if err != nil || n != len(batch) || answer.status != http.StatusOK {
		return garbled(fmt.Errorf("not the answers to %d commands: %w", len(batch), err))
	}
	return nil
}
