package flowfabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// releaseReason is recorded in the event of work that a stopping worker hands back.
const releaseReason = "shutdown"

// hand gives a task to an idle goroutine of the pool, or a new one if none is idle: a worker has as many goroutines as it has had
// concurrent tasks, not as many as its concurrency permits.
func (r *runner) hand(ctx context.Context, t *Task) {
	for {
		idle := r.idle.Load()
		switch {
		case idle == 0:
			r.pool.Go(func() { r.serve(ctx, t) })
			return
		case r.idle.CompareAndSwap(idle, idle-1):
			r.tasks <- t
			return
		}
	}
}

// serve runs tasks, one after the other, until there are no more.
func (r *runner) serve(ctx context.Context, t *Task) {
	for more := true; more; t, more = <-r.tasks {
		r.runTask(ctx, t)
		r.idle.Add(1)
	}
}

// runTask calls the handler and ends the task. A handler that ends its goroutine ends this one of the pool.
func (r *runner) runTask(ctx context.Context, t *Task) {
	traced, span := r.startHandler(ctx, t)
	handling, cancel := t.begin(traced)
	returned := false
	defer func() {
		if !returned {
			r.finish(traced, t, span, Payload{}, errors.New("the handler ended its goroutine"))
		}
		cancel(nil)
		t.stopStream()
		r.vacate(t)
	}()
	result, err := r.call(handling, t)
	returned = true
	r.passOn(t)
	r.finish(traced, t, span, result, err)
}

// call calls the handler. A panic is converted to an error, and its stack is logged.
func (r *runner) call(ctx context.Context, t *Task) (result Payload, err error) {
	t.began = r.now()
	t.fetch = func(name string) (Payload, error) { return r.client.Executions().NamedInput(ctx, t.claimed.ID, name) }
	if timeout := t.handler.cfg.Timeout; timeout > 0 {
		at := t.began + int64(timeout)
		t.callDeadline.Store(at)
		r.lookBy(at)
	}
	defer func() {
		if what := recover(); what != nil {
			stack := debug.Stack()
			t.Logger().Error("flowfabric: a handler panicked", "panic", what, "stack", string(stack))
			t.streamPanic(ctx, what, stack)
			err = Category(categoryPanic, fmt.Errorf("panic: %v", what))
		}
	}()
	return t.handler.call(ctx, t)
}

// finish ends the task according to the outcome of the handler (U144), unless it was parked or lost.
func (r *runner) finish(ctx context.Context, t *Task, span activity, result Payload, err error) {
	took := r.now() - t.began
	if !t.state.CompareAndSwap(taskRuns, taskEnding) {
		t.handled(took, outcomeWithout(t.gone()))
		span.end(lostCode(t.gone()))
		return
	}
	if t.left.Load() != nil {
		r.confirm(ctx, t, span, took, err)
		return
	}
	ending := t.ending(result, err)
	if ending.Op == api.OpFail {
		ending.Default = t.handler.byDefault
	}
	t.handled(took, outcomeOf(ending.Op))
	item, answer := r.endWith(ctx, t, ending)
	t.logFailure(item, answer)
	endHandler(span, item, answer)
}

// ending returns the command that ends the task.
func (t *Task) ending(result Payload, err error) api.WorkItem {
	switch {
	case err == nil:
		return api.WorkItem{Op: api.OpComplete, Result: result}
	case t.stoppedBy(ErrShuttingDown):
		return api.WorkItem{Op: api.OpRelease, Reason: releaseReason}
	case t.stoppedBy(context.DeadlineExceeded):
		return api.WorkItem{Op: api.OpFail, Class: classTimeout, Category: categoryTimeout, Message: err.Error()}
	default:
		return failureOf(err)
	}
}

// maxLoggedError is the longest text of an error in a log line.
const maxLoggedError = 1024

// logFailure logs a failed attempt once the store has recorded it: the only line about it in this process.
func (t *Task) logFailure(item api.WorkItem, answer api.WorkAnswer) {
	if item.Op != api.OpFail || answer.Err != nil {
		return
	}
	log := t.Logger().With("class", cmp.Or(item.Class, api.ClassTransient), "category", item.Category)
	if answer.RetryAt.IsZero() {
		log = log.With("reason", answer.Reason)
	} else {
		log = log.With("retry_at", answer.RetryAt)
	}
	log.Warn("flowfabric: attempt failed", "error", base.CutText(item.Message, maxLoggedError))
}

// endWith sends the ending until it is answered or the lease is lost. An ending that validation refuses is replaced by one that
// it accepts, so that the execution need not wait until the lease expires. It returns the command that was sent last.
func (r *runner) endWith(ctx context.Context, t *Task, item api.WorkItem) (api.WorkItem, api.WorkAnswer) {
	item.ID, item.Lease = t.claimed.ID, t.claimed.Lease
	answer := r.sendAfterStream(ctx, t, item)
	if errors.Is(answer.Err, ErrInvalid) {
		item = refused(item, answer.Err)
		answer = r.sendUntilAnswered(ctx, t, item)
	}
	if cause := causeOf(answer.Err); t.state.CompareAndSwap(taskEnding, taskEnded) && cause != nil {
		r.meter.leaseLost(cause)
	}
	if answer.Err != nil {
		t.Logger().Warn("flowfabric: the ending was not accepted", "op", string(item.Op), "error", answer.Err)
	}
	return item, answer
}

// refused returns the failure that replaces an ending which validation refused.
func refused(item api.WorkItem, why error) api.WorkItem {
	failure := api.WorkItem{Op: api.OpFail, ID: item.ID, Lease: item.Lease, Class: classPermanent, Category: categoryHandler, Message: why.Error()}
	switch {
	case CodeOf(why) == string(base.CodePayloadTooLarge):
		failure.Category = categoryTooLarge
	case item.Op == api.OpFail:
		failure.Class, failure.Message = item.Class, item.Message+" ("+why.Error()+")"
	}
	return failure
}

// send sends one command.
func (r *runner) send(ctx context.Context, item api.WorkItem) api.WorkAnswer {
	answers, err := r.work.Do(ctx, item)
	if err != nil {
		return api.WorkAnswer{Err: r.meter.called(ctx, err)}
	}
	_ = r.meter.called(ctx, answers[0].Err)
	return answers[0]
}

// sendUntilAnswered repeats a command until it is answered, the lease is lost, or everything is to be handed back at once.
func (r *runner) sendUntilAnswered(ctx context.Context, t *Task, item api.WorkItem) api.WorkAnswer {
	for try := 0; ; try++ {
		answer := r.send(ctx, item)
		if !r.awaitAgain(ctx, t, try, string(item.Op), answer.Err) {
			return answer
		}
	}
}

// sendAfterStream is sendUntilAnswered for a command that ends the lease: it comes after what the handler has written to the stream.
// If it is not known whether that is stored, a command that tells of what the handler has done is not sent.
func (r *runner) sendAfterStream(ctx context.Context, t *Task, item api.WorkItem) api.WorkAnswer {
	if err := t.settleStream(ctx); err != nil && item.Op != api.OpRelease && item.Op != api.OpFail {
		return api.WorkAnswer{Err: err}
	}
	return r.sendUntilAnswered(ctx, t, item)
}

// awaitAgain waits before the next try of a call that was not answered. It returns false if there is none: the call was answered,
// possibly with an error that persists until the configuration changes, the lease is lost, or everything is to be handed back at
// once.
func (r *runner) awaitAgain(ctx context.Context, t *Task, try int, what string, err error) bool {
	if !errors.Is(err, ErrUnavailable) || !Retryable(err) || t.state.Load() == taskLost || ctx.Err() != nil {
		return false
	}
	r.complain(what, err)
	timer := r.clock.NewTimer(max(backoff.Delay(try), RetryDelay(err)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-r.handingBack:
		return false
	}
	return true
}
