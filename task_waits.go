package flowfabric

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Resumed returns how the last wait ended, with its signals, in the call of the handler that follows the wait. It returns false
// if the handler was called for another reason.
func (t *Task) Resumed() (Resume, bool) {
	if t.claimed.Resume == nil {
		return Resume{}, false
	}
	return *t.claimed.Resume, true
}

// NewWaitpoint makes a waitpoint at which the work waits later: earlier signals are kept for it. Give its token or its callback
// address to the sender of the signal. A handler that runs again gets the existing waitpoint; using a key again in one call of
// the handler makes a second waitpoint, which is identified by its order.
//
// Codes: invalid_waitpoint, reserved_name, invalid_argument, waitpoint_already_exists, waitpoint_limit_exceeded,
// idempotency_conflict if a later call uses the key with other options, signing_key_missing, stale_lease, lease_revoked,
// execution_not_active.
func (t *Task) NewWaitpoint(ctx context.Context, key string, o ...WaitpointOptions) (*Waitpoint, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	w := api.NewWaitpoint{Key: key, ExpiresIn: options.ExpiresIn, ID: options.ID, IdempotencyKey: options.IdempotencyKey}
	switch {
	case options.Another && w.IdempotencyKey != "":
		return nil, calls.Refuse(base.CodeInvalidArgument, "another waitpoint each time, and the same under a key").At("Another", "set one of the two")
	case options.Another:
		w.IdempotencyKey = mint.Key(t.runner.clock) // all tries of this call make one waitpoint
	case w.IdempotencyKey == "":
		w.IdempotencyKey = t.made.next(key)
	}
	return t.newWaitpoint(ctx, w)
}

func (t *Task) newWaitpoint(ctx context.Context, w api.NewWaitpoint) (*Waitpoint, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := t.keepUntilAnswered(ctx, api.WorkItem{Op: api.OpWaitpoint, Waitpoint: &w})
	if err != nil {
		return nil, err
	}
	return &answer.Waitpoints[0], nil
}

// NewLink makes a link with which a person can decide, once and without an account, at an open waitpoint. Give its URL to that
// person only. Each call makes another link; Ask makes them automatically.
//
// Codes: invalid_argument, reserved_name, waitpoint_not_found, waitpoint_expired, waitpoint_closed, signing_key_missing,
// stale_lease, lease_revoked, execution_not_active.
func (t *Task) NewLink(ctx context.Context, w *Waitpoint, l ops.LinkOptions) (ApprovalLink, error) {
	if l.RequestKey == "" {
		l.RequestKey = mint.Key(t.runner.clock)
	}
	lease := t.claimed.Lease
	l.Lease = &lease
	for try := 0; ; try++ {
		if err := t.goneBy(); err != nil {
			return ApprovalLink{}, err
		}
		link, err := t.runner.client.Waitpoints().NewLink(ctx, w.ID, l)
		t.heed(t.runner.meter.called(ctx, err))
		if !t.runner.awaitAgain(ctx, t, try, "links", err) {
			return link, err
		}
	}
}

// Suspend hands the work back until the condition is satisfied, and returns ErrParked, which the handler returns. The handler is
// then called again from its start, in the same attempt. If the wait is over already, in an earlier call of the handler or by
// signals that came first, it returns ErrAlreadySatisfied; TrySuspend returns the signals.
//
// A wait is identified by its Key in all attempts of a run. A key that is used again in one call of the handler gets "#2", "#3"
// and so on, in order of use.
//
// Codes: invalid_suspend, reserved_name, payload_too_large, idempotency_conflict if a later call uses the key with other options,
// waitpoint_not_found, waitpoint_expired, waitpoint_not_pending, waitpoint_already_exists, waitpoint_limit_exceeded,
// suspension_already_exists, signing_key_missing, stale_lease, lease_revoked, execution_not_active.
func (t *Task) Suspend(ctx context.Context, s Suspension) error {
	resume, err := t.TrySuspend(ctx, s)
	if err != nil {
		return err
	}
	passed := calls.Refuse(base.CodeAlreadySatisfied, "the wait %q is passed", s.Key).At("Key", "use TrySuspend to go on with what arrived")
	passed.Current = map[string]any{"suspension_id": resume.SuspensionID, "cause": resume.Cause}
	return passed
}

// TrySuspend is Suspend, except that it returns the signals if the wait is over. So a handler that runs again from its start gets
// past every wait that is over.
func (t *Task) TrySuspend(ctx context.Context, s Suspension) (Resume, error) {
	if s.Key == "" {
		return Resume{}, calls.Refuse(base.CodeInvalidArgument, "the wait has no key").At("Key", "name it, so that it is known when the handler runs again")
	}
	s.Key = t.waits.next(s.Key)
	return t.suspend(ctx, s)
}

// suspend waits under the key without counting its uses.
func (t *Task) suspend(ctx context.Context, s Suspension) (Resume, error) {
	answer, err := t.leave(ctx, api.WorkItem{Op: api.OpSuspend, Suspension: &s})
	if err != nil {
		return Resume{}, err
	}
	resume := Resume{SuspensionID: answer.SuspensionID}
	if answer.Resume != nil {
		resume = *answer.Resume
	}
	resume.Continuation = s.Continuation
	return resume, nil
}

// Sleep hands the work back for d, and returns ErrParked, which the handler returns. In the next call of the handler it returns
// nil, and so in every later one of the run. An operator can end it early by resuming the work. It is a wait like any other: the
// name is its key, and d is at most a year. If d is not positive it returns at once.
//
// The first d counts: a Sleep that is over returns nil even if a later call of the handler passes another d, such as the time
// left until a fixed moment.
//
// Codes: those of Suspend; idempotency_conflict if another kind of wait has the name.
func (t *Task) Sleep(ctx context.Context, name string, d time.Duration) error {
	key := t.waits.next(name)
	if d <= 0 {
		return nil
	}
	if name == "" {
		return calls.Refuse(base.CodeInvalidArgument, "the wait has no name").At("name", "name it, so that it is known when the handler runs again")
	}
	_, err := t.suspend(ctx, Suspension{Key: key, Until: TimeoutOnly(), Timeout: d, OnTimeout: ResumeOnTimeout})
	if CodeOf(err) == string(base.CodeIdempotencyConflict) && t.slept(ctx, err) {
		return nil
	}
	return err
}

// slept reports whether the wait that a Sleep is in conflict with is a Sleep that is over: it had another duration, and nothing
// else can differ. If that cannot be determined the conflict is kept.
func (t *Task) slept(ctx context.Context, conflict error) bool {
	var known *Error
	if !errors.As(conflict, &known) {
		return false
	}
	for wait, err := range t.runner.client.Executions().Suspensions(ctx, t.claimed.ID) {
		if err != nil {
			return false
		}
		if wait.ID == known.Current["suspension_id"] {
			return wait.Until.Type == conditionTimeoutOnly && wait.OnTimeout == ResumeOnTimeout && wait.Cause != "" && len(wait.Waitpoints) == 0
		}
	}
	return false
}

// AwaitSignal hands the work back until the waitpoint of that key receives a signal, and returns its payload as a T. Parking
// returns ErrParked, which the handler returns; when the handler is called again, AwaitSignal returns the payload. A signal that
// came first counts: the call may return without parking. The key also names the wait, see Task.Suspend.
//
// Without WaitOptions the waitpoint accepts a signal from anyone who has obtained its token. WaitOptions.Notify receives the
// waitpoint so that it can pass the token on.
//
// If the wait ended otherwise it returns ErrNoSignal: at a timeout with ResumeOnTimeout, or because an operator resumed the work.
//
// Codes: those of Task.Suspend and of Task.NewWaitpoint, invalid_json if the payload cannot be decoded into T.
func AwaitSignal[T any](ctx context.Context, t *Task, key string, o ...WaitOptions) (T, error) {
	var none T
	options, err := transport.Single(o)
	if err != nil {
		return none, err
	}
	resume, err := t.awaitSignal(ctx, key, options)
	if err != nil {
		return none, err
	}
	for i := range resume.Signals {
		if signal := &resume.Signals[i]; signal.Matched {
			if err := t.fetchOmitted(ctx, &resume, func(s *SignalRecord) bool { return s == signal }); err != nil {
				return none, err
			}
			return decode[T](signal.Payload)
		}
	}
	return none, endedWithout(key, resume)
}

// endedWithout returns the error for a wait that ended without a signal.
func endedWithout(key string, r Resume) error {
	return fmt.Errorf("flowfabric: %q was ended by %s: %w", key, r.Cause, ErrNoSignal)
}

func (t *Task) awaitSignal(ctx context.Context, key string, o WaitOptions) (Resume, error) {
	if key == "" {
		return Resume{}, calls.Refuse(base.CodeInvalidArgument, "the wait has no key").At("key", "name it, so that it is known when the handler runs again")
	}
	wait := t.waits.next(key)
	binding, at, err := t.addressed(ctx, key, wait, o)
	if err != nil {
		return Resume{}, err
	}
	return t.suspend(ctx, Suspension{
		Key: wait, Waitpoints: []Binding{binding}, Until: OnSignal(at, o.Name), ReasonCode: o.ReasonCode,
		Timeout: o.Timeout, TimeoutAt: o.TimeoutAt, OnTimeout: o.OnTimeout,
	})
}

// addressed returns the binding of AwaitSignal and the key of its waitpoint: the given one, one that it makes and passes to
// Notify, or one that is made with the suspension.
func (t *Task) addressed(ctx context.Context, key, wait string, o WaitOptions) (Binding, string, error) {
	w := o.Waitpoint
	if w == nil && o.Notify == nil {
		return NewWaitpoint(key), key, nil
	}
	if w == nil {
		var err error
		if w, err = t.newWaitpoint(ctx, api.NewWaitpoint{Key: key, ExpiresIn: waitpointLife, IdempotencyKey: "wait:" + wait}); err != nil {
			return Binding{}, "", err
		}
	}
	if o.Notify != nil {
		_, err := Step(ctx, t, t.ofThisRun(wait, "notify"), func(ctx context.Context) (None, error) { return None{}, o.Notify(ctx, *w) })
		if err != nil {
			return Binding{}, "", err
		}
	}
	return ExistingWaitpoint(w), w.Key, nil
}

// ofThisRun returns the name of a step that belongs to the waitpoint of a wait. A replay may keep the steps of the previous run,
// but has waitpoints of its own.
func (t *Task) ofThisRun(wait, what string) string {
	return wait + "/" + what + "/" + strconv.Itoa(t.claimed.RunIndex)
}

// waitpointLife is how long a waitpoint that the work soon waits at may be pending: the maximum, so that it does not expire while
// a handler is retried before it comes to wait.
const waitpointLife = time.Duration(base.MaxWaitpointExpiry) * time.Millisecond
