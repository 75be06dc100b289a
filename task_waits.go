package flowfabric

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Resumed tells how the last wait ended, in the call of the handler that goes on after it: its cause and the signals. It is false when
// the work goes on after something else.
func (t *Task) Resumed() (Resume, bool) {
	if t.claimed.Resume == nil {
		return Resume{}, false
	}
	return *t.claimed.Resume, true
}

// NewWaitpoint makes a waitpoint for the work to wait at later: signals that come before are kept for it. Its token and its callback
// address are for whoever is to signal. A handler that runs again gets the one it has; a key that is used again in one call of the
// handler makes a second one, which is known by its place.
//
// Codes: invalid_waitpoint, reserved_name, invalid_argument, waitpoint_already_exists, waitpoint_limit_exceeded, idempotency_conflict
// when a later call asks for something else under the key, signing_key_missing, stale_lease, lease_revoked, execution_not_active.
func (t *Task) NewWaitpoint(ctx context.Context, key string, o ...WaitpointOptions) (*Waitpoint, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	w := NewWaitpoint{Key: key, ExpiresIn: options.ExpiresIn, ID: options.ID, IdempotencyKey: options.IdempotencyKey}
	switch {
	case options.Another && w.IdempotencyKey != "":
		return nil, newError(base.CodeInvalidArgument, "another waitpoint each time, and the same under a key").At("Another", "set one of the two")
	case options.Another:
		w.IdempotencyKey = mint.Key(t.runner.clock) // the tries of this call are one
	case w.IdempotencyKey == "":
		w.IdempotencyKey = t.made.next(key)
	}
	return t.newWaitpoint(ctx, w)
}

func (t *Task) newWaitpoint(ctx context.Context, w NewWaitpoint) (*Waitpoint, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := t.keepUntilAnswered(ctx, WorkItem{Op: OpWaitpoint, Waitpoint: &w})
	if err != nil {
		return nil, err
	}
	return &answer.Waitpoints[0], nil
}

// NewLink makes a link that lets somebody decide, once and without an account, at a waitpoint that is open. Its URL is for that
// person alone. Each call makes another; Ask makes them for you.
//
// Codes: invalid_argument, reserved_name, waitpoint_not_found, waitpoint_expired, waitpoint_closed, signing_key_missing, stale_lease,
// lease_revoked, execution_not_active.
func (t *Task) NewLink(ctx context.Context, w *Waitpoint, l LinkOptions) (ApprovalLink, error) {
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

// Suspend hands the work back until the condition is met, and returns ErrParked, which the handler returns. The handler is then
// called again from its start, in the same attempt. A wait that is passed already, be it in an earlier call of the handler or by
// signals that came first, is ErrAlreadySatisfied; TrySuspend tells what arrived.
//
// A wait is known by its Key in all attempts of a run. A key that is used again in one call of the handler gets "#2", "#3" and so on,
// in order of use.
//
// Codes: invalid_suspend, reserved_name, payload_too_large, idempotency_conflict when a later call asks for something else under the
// key, waitpoint_not_found, waitpoint_expired, waitpoint_not_pending, waitpoint_already_exists, waitpoint_limit_exceeded,
// suspension_already_exists, signing_key_missing, stale_lease, lease_revoked, execution_not_active.
func (t *Task) Suspend(ctx context.Context, s Suspension) error {
	resume, err := t.TrySuspend(ctx, s)
	if err != nil {
		return err
	}
	passed := newError(base.CodeAlreadySatisfied, "the wait %q is passed", s.Key).At("Key", "use TrySuspend to go on with what arrived")
	passed.Current = map[string]any{"suspension_id": resume.SuspensionID, "cause": resume.Cause}
	return passed
}

// TrySuspend is Suspend that returns what arrived when the wait is passed, and hands the work back otherwise. So a handler that runs
// again from its start gets through every wait that it has passed.
func (t *Task) TrySuspend(ctx context.Context, s Suspension) (Resume, error) {
	if s.Key == "" {
		return Resume{}, newError(base.CodeInvalidArgument, "the wait has no key").At("Key", "name it, so that it is known when the handler runs again")
	}
	s.Key = t.waits.next(s.Key)
	return t.suspend(ctx, s)
}

// suspend waits under the key as it is.
func (t *Task) suspend(ctx context.Context, s Suspension) (Resume, error) {
	answer, err := t.leave(ctx, WorkItem{Op: OpSuspend, Suspension: &s})
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

// Sleep hands the work back for d, and returns ErrParked, which the handler returns. In the call of the handler that comes then it
// returns nil, and so in every later one of the run. An operator who resumes the work ends it early. It is a wait like any other:
// the name is its key, and d at most a year. A d that is not positive is no wait.
//
// The first d counts: a Sleep that is over is passed whatever d a later call of the handler gives, be it what is left until a moment.
//
// Codes: those of Suspend; idempotency_conflict when the name is that of a wait of another kind.
func (t *Task) Sleep(ctx context.Context, name string, d time.Duration) error {
	key := t.waits.next(name)
	if d <= 0 {
		return nil
	}
	if name == "" {
		return newError(base.CodeInvalidArgument, "the wait has no name").At("name", "name it, so that it is known when the handler runs again")
	}
	_, err := t.suspend(ctx, Suspension{Key: key, Until: TimeoutOnly(), Timeout: d, OnTimeout: ResumeOnTimeout})
	if CodeOf(err) == string(base.CodeIdempotencyConflict) && t.slept(ctx, err) {
		return nil
	}
	return err
}

// slept reports whether the wait that a Sleep is in conflict with is a Sleep that is over: it had another duration, and nothing else that
// could differ. Whatever hinders the look leaves the conflict standing.
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

// AwaitSignal hands the work back until a signal comes to the waitpoint of that key, and returns its payload as a T. Parking returns
// ErrParked, which the handler returns; when the handler is called again, AwaitSignal returns what came. A signal that came first
// counts: the call may return without parking. The key also names the wait, see Task.Suspend.
//
// Without WaitOptions anybody who asks for the token of the waitpoint may signal. Notify gets it to hand it out.
//
// A wait that ended otherwise is ErrNoSignal: at a timeout with ResumeOnTimeout, and when an operator resumed the work.
//
// Codes: those of Task.Suspend and of Task.NewWaitpoint, invalid_json when the payload is not a T.
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

// endedWithout says how a wait ended that nothing came to.
func endedWithout(key string, r Resume) error {
	return fmt.Errorf("flowfabric: %q was ended by %s: %w", key, r.Cause, ErrNoSignal)
}

func (t *Task) awaitSignal(ctx context.Context, key string, o WaitOptions) (Resume, error) {
	if key == "" {
		return Resume{}, newError(base.CodeInvalidArgument, "the wait has no key").At("key", "name it, so that it is known when the handler runs again")
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

// addressed is where AwaitSignal waits, and the key of that waitpoint: the one that it is given, one that it makes and tells of, or one
// that comes with the suspension.
func (t *Task) addressed(ctx context.Context, key, wait string, o WaitOptions) (Binding, string, error) {
	w := o.Waitpoint
	if w == nil && o.Notify == nil {
		return Fresh(key), key, nil
	}
	if w == nil {
		var err error
		if w, err = t.newWaitpoint(ctx, NewWaitpoint{Key: key, ExpiresIn: waitpointLife, IdempotencyKey: "wait:" + wait}); err != nil {
			return Binding{}, "", err
		}
	}
	if o.Notify != nil {
		_, err := Step(ctx, t, t.ofThisRun(wait, "notify"), func(ctx context.Context) (None, error) { return None{}, o.Notify(ctx, *w) })
		if err != nil {
			return Binding{}, "", err
		}
	}
	return Pending(w), w.Key, nil
}

// ofThisRun names a step that belongs to the waitpoint of a wait. A replay may keep the steps of the run before, and has waitpoints of
// its own.
func (t *Task) ofThisRun(wait, what string) string {
	return wait + "/" + what + "/" + strconv.Itoa(t.claimed.RunIndex)
}

// waitpointLife is how long a waitpoint that is waited at soon may be pending: as long as there is, so that it cannot expire under a
// handler that is tried again and again before it comes to wait.
const waitpointLife = time.Duration(core.MaxWaitpointExpiry) * time.Millisecond
