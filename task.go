package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Task is an execution that a handler is called for. Its methods may be called concurrently while the handler runs.
type Task struct {
	claimed *api.Claimed
	handler *handler
	runner  *runner
	slot    *atomic.Pointer[Task]
	passed  bool // its place was passed on before its ending was acknowledged
	state   atomic.Int32
	cause   atomic.Pointer[error]                   // why the handler's context ended; nil while it has not
	cancel  atomic.Pointer[context.CancelCauseFunc] // ends the handler's context; nil until there is one

	// Moments of this host's monotonic clock, see runner.now.
	trusted         atomic.Int64 // the lease is trusted until then
	deadline        int64        // of the execution; never when there is none
	attemptDeadline int64
	callDeadline    atomic.Int64

	traceID atomic.Pointer[string] // nil: not part of a trace

	began int64 // when the handler was called
	steps stepBook
	waits useCounts // of waits, by their keys
	made  useCounts // of waitpoints that the handler made itself

	joined atomic.Bool            // a transaction of the handler may hold the execution: its lease is renewed apart from others
	left   atomic.Pointer[api.Op] // the ending that was left in a transaction; nil: none

	out atomic.Pointer[outbox] // what the handler writes to the stream; nil: it has written nothing

	leaving sync.RWMutex // held while a command that may give the lease back is being sent

	fetch func(name string) (Payload, error) // reads a named input that was not included in the claim, in the handler's context
}

// The states of a task. The goroutine that moves it out of taskRuns is the one that ends it.
const (
	taskRuns   = int32(iota) // the handler is running
	taskEnding               // an ending is being sent
	taskEnded                // ended or parked: nothing more is sent
	taskLost                 // the lease is gone: nothing more is sent
)

// ID returns the id of the execution.
func (t *Task) ID() ID { return t.claimed.ID }

// Partition returns N of the full form {fp:N}:<uuid> of the id.
func (t *Task) Partition() int { return t.claimed.Partition }

// Kind returns the kind of the execution.
func (t *Task) Kind() string { return t.claimed.Kind }

// Attempt returns the current attempt.
func (t *Task) Attempt() api.Attempt { return t.claimed.Attempt }

// Lease returns the lease as it was acquired.
func (t *Task) Lease() api.Lease { return t.claimed.Lease }

// Input returns the input, unchanged. Its bytes must not be modified.
func (t *Task) Input() Payload { return t.claimed.Input }

// Tags returns the tags of the execution as they were when it was claimed.
func (t *Task) Tags() map[string]string { return maps.Clone(t.claimed.Tags) }

// Trace returns the trace context of the submit; zero if there was none. Calls that a handler makes with its ctx belong to the
// trace already: this is for work that it starts elsewhere.
func (t *Task) Trace() TraceContext { return t.claimed.TraceContext }

// EffectKey returns an idempotency key for an outside effect: pass it to the service that performs the effect. It is the same in
// every attempt of a run, and differs between effects, executions and replays.
func (t *Task) EffectKey(effect string) string {
	return t.claimed.EffectKeyOf(effect)
}

// Logger returns the worker's logger with the attributes execution, kind and attempt, and trace_id if the work belongs to a
// trace.
func (t *Task) Logger() *slog.Logger {
	log := t.runner.log.With("execution_id", string(t.claimed.ID), "kind", t.claimed.Kind, "attempt", t.claimed.Attempt.Index)
	if id := t.traceID.Load(); id != nil {
		log = log.With("trace_id", *id)
	}
	return log
}

// Renew renews the lease now. The worker renews leases automatically; a handler needs it only to find out whether it still has
// the lease.
//
// Codes: stale_lease, lease_expired, lease_revoked, execution_not_active.
func (t *Task) Renew(ctx context.Context) error {
	began := t.runner.now()
	_, err := t.keep(ctx, api.WorkItem{Op: api.OpRenew})
	if err == nil {
		t.trusted.Store(began + t.runner.trust)
	}
	return err
}

// Progress reports the progress of the work: percent in 0..100, and a message; "" leaves the message unchanged.
//
// Codes: invalid_argument, stale_lease, lease_expired, lease_revoked, execution_not_active.
func (t *Task) Progress(ctx context.Context, percent int, message string) error {
	_, err := t.keep(ctx, api.WorkItem{Op: api.OpProgress, Percent: &percent, Message: message})
	return err
}

// Delay hands the work back until a moment and returns ErrParked, which the handler returns. The handler is then called again
// from its start, in the same attempt. If the moment is in the past that happens at once.
//
// Codes: invalid_argument for a moment more than ten years ahead, stale_lease, lease_revoked, execution_not_active.
func (t *Task) Delay(ctx context.Context, until time.Time) error {
	_, err := t.leave(ctx, api.WorkItem{Op: api.OpDelay, Until: until})
	return err
}

// HandBack gives the work back for any worker to take at once, in the same attempt, and returns ErrParked, which the handler
// returns.
//
// Codes: stale_lease, lease_revoked, execution_not_active.
func (t *Task) HandBack(ctx context.Context) error {
	_, err := t.leave(ctx, api.WorkItem{Op: api.OpRelease, Reason: "handed back"})
	return err
}

// keep sends a command that keeps the lease. A refusal by the fence ends the handler's context at once.
func (t *Task) keep(ctx context.Context, item api.WorkItem) (api.WorkAnswer, error) {
	if err := t.mayCall(ctx); err != nil {
		return api.WorkAnswer{}, err
	}
	item.ID, item.Lease = t.claimed.ID, t.claimed.Lease
	answer := t.runner.send(ctx, item)
	t.heed(answer.Err)
	return answer, answer.Err
}

// keepUntilAnswered is keep for a command whose outcome must be known: the same command is repeated while the lease is valid.
func (t *Task) keepUntilAnswered(ctx context.Context, item api.WorkItem) (api.WorkAnswer, error) {
	if err := t.mayCall(ctx); err != nil {
		return api.WorkAnswer{}, err
	}
	item.ID, item.Lease = t.claimed.ID, t.claimed.Lease
	answer := t.runner.sendUntilAnswered(context.WithoutCancel(ctx), t, item)
	t.heed(answer.Err)
	return answer, answer.Err
}

// heed ends the handler's context if a refusal means that the lease is gone.
func (t *Task) heed(err error) {
	if cause := causeOf(err); cause != nil {
		t.lose(cause)
	}
}

// leave sends a command that gives the lease back, and returns ErrParked. The command ends the task, unless it is refused for a
// reason other than the fence, or was a wait that is over already: then the task continues, and for such a wait the error is nil.
//
// Once it is sent its outcome must be known: only the loss of the lease, or a worker that must hand back at once, ends the tries.
func (t *Task) leave(ctx context.Context, item api.WorkItem) (api.WorkAnswer, error) {
	if ctx.Err() != nil {
		return api.WorkAnswer{}, context.Cause(ctx)
	}
	if err := checkOutsideTx(ctx); err != nil {
		return api.WorkAnswer{}, err
	}
	t.leaving.Lock()
	defer t.leaving.Unlock()
	if !t.state.CompareAndSwap(taskRuns, taskEnding) {
		return api.WorkAnswer{}, t.gone()
	}
	item.ID, item.Lease = t.claimed.ID, t.claimed.Lease
	answer := t.runner.sendAfterStream(context.WithoutCancel(ctx), t, item)
	switch cause := causeOf(answer.Err); {
	case answer.Err == nil && (answer.Outcome == api.WaitAlreadySatisfied || answer.Outcome == api.ChildrenReady):
		t.state.CompareAndSwap(taskEnding, taskRuns)
		return answer, nil
	case answer.Err == nil:
		t.state.CompareAndSwap(taskEnding, taskEnded)
		return answer, ErrParked
	case cause != nil:
		t.giveUp(cause)
	default:
		t.state.CompareAndSwap(taskEnding, taskRuns)
	}
	return answer, answer.Err
}

// goneBy is gone once the command in progress has finished: a wait that is over already leaves the lease as it was.
func (t *Task) goneBy() error {
	t.leaving.RLock()
	defer t.leaving.RUnlock()
	return t.gone()
}

// mayCall is goneBy for a call with this context.
func (t *Task) mayCall(ctx context.Context) error {
	if err := checkOutsideTx(ctx); err != nil {
		return err
	}
	return t.goneBy()
}

// gone returns why nothing can be sent any more; nil while the handler has the lease.
func (t *Task) gone() error {
	switch t.state.Load() {
	case taskRuns:
		return nil
	case taskLost:
		return *t.cause.Load()
	default:
		return ErrParked
	}
}

// lose ends the handler's context because the lease is gone. For a task whose ending is being sent, the answer to that reports
// the loss.
func (t *Task) lose(cause error) {
	t.moveTo(taskLost, cause, taskRuns)
}

// giveUp is lose also for a task whose ending is being sent: the ending is not sent again.
func (t *Task) giveUp(cause error) {
	t.moveTo(taskLost, cause, taskRuns, taskEnding)
}

// moveTo stops the handler and changes the state, if it is one of those given. The cause is stored before the state becomes
// visible.
func (t *Task) moveTo(state int32, cause error, from ...int32) {
	for _, old := range from {
		if t.state.Load() != old {
			continue
		}
		t.cause.CompareAndSwap(nil, &cause)
		if t.state.CompareAndSwap(old, state) {
			t.runner.meter.leaseLost(cause)
			t.stop(cause)
			return
		}
	}
}

// stop ends the handler's context; the first cause is kept. It may be called before there is a context.
func (t *Task) stop(cause error) {
	t.cause.CompareAndSwap(nil, &cause)
	if cancel := t.cancel.Load(); cancel != nil {
		(*cancel)(*t.cause.Load())
	}
}

// begin makes the handler's context, which has ended already if the task was stopped before.
func (t *Task) begin(parent context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	t.cancel.Store(&cancel)
	if cause := t.cause.Load(); cause != nil {
		cancel(*cause)
	}
	return ctx, cancel
}

// stoppedBy reports whether cause ended the handler's context.
func (t *Task) stoppedBy(cause error) bool {
	first := t.cause.Load()
	return first != nil && errors.Is(*first, cause)
}

// stepBook holds the steps of a task.
type stepBook struct {
	useCounts
	reading sync.Mutex
	stored  map[string]Payload // results of earlier calls; nil until loaded
}

// useCounts counts how often each name was used in this call of the handler.
type useCounts struct {
	mu   sync.Mutex
	uses map[string]int
}

// next returns the name that identifies this use of a name: the name itself, then with "#2", "#3" and so on. A name that itself
// ends like that gets "#1" at its first use, so uses of different names never have the same one.
func (b *useCounts) next(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.uses == nil {
		b.uses = map[string]int{}
	}
	b.uses[name]++
	if n := b.uses[name]; n > 1 || looksCounted(name) {
		return name + "#" + strconv.Itoa(n)
	}
	return name
}

// looksCounted reports whether a name ends like a result of next.
func looksCounted(name string) bool {
	base := strings.TrimRight(name, "0123456789")
	return base != name && strings.HasSuffix(base, "#")
}
