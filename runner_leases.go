package flowfabric

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Parameters for maintaining leases.
const (
	leaseMargin  = 5 * time.Second // how long before its possible expiry a lease is given up; at most a sixth of its time
	minLiveness  = time.Second     // bounds of how long an instance counts as alive without a heartbeat (S49)
	maxLiveness  = time.Hour
	maxRenewals  = 1000 // leases a heartbeat
	feedPiece    = 30 * time.Second
	feedPageSize = 1000
)

// beatLoop sends a heartbeat and renews all leases at every third of a lease's time.
func (r *runner) beatLoop(ctx context.Context) {
	defer r.beats.Wait()
	for wait, try := r.beat, 0; r.pauseOrAsked(ctx, wait); {
		err := r.heartbeat(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait, try = r.beat, 0
		default:
			r.complain("heartbeat", err)
			wait = min(backoff.Delay(try), r.beat)
			try++
		}
	}
}

// pauseOrAsked waits, less if a heartbeat is asked for, and reports whether ctx has not ended.
func (r *runner) pauseOrAsked(ctx context.Context, wait time.Duration) bool {
	timer := r.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.asks:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// heartbeat renews every lease in batches. It returns an error if some may not have been renewed.
func (r *runner) heartbeat(ctx context.Context) error {
	var tasks, joined []*Task
	var leases []api.Lease
	r.eachTask(func(t *Task) {
		switch {
		case t.state.Load() != taskRuns && t.state.Load() != taskEnding:
		case t.joined.Load():
			joined = append(joined, t)
		default:
			tasks, leases = append(tasks, t), append(leases, t.claimed.Lease)
		}
	})
	r.renewApart(ctx, joined)
	for {
		n := min(len(tasks), maxRenewals)
		if err := r.renew(ctx, tasks[:n], leases[:n]); err != nil {
			return err
		}
		if tasks, leases = tasks[n:], leases[n:]; len(tasks) == 0 {
			return nil
		}
	}
}

func (r *runner) renew(ctx context.Context, tasks []*Task, leases []api.Lease) error {
	began := r.now()
	call, cancel := r.within(ctx, r.beat)
	defer cancel()
	answer, err := r.work.Heartbeat(call, r.cfg.Instance, leases)
	if r.meter.called(ctx, err) != nil {
		return err
	}
	r.noteDrain(answer.Drain, answer.DrainedBy)
	var unsure error
	for i, renewal := range answer.Leases {
		task := tasks[i] //nolint:gosec // G602: Heartbeat refuses an answer with another number of leases
		switch cause := causeOf(renewal.Err); {
		case renewal.Err == nil:
			task.trusted.Store(began + r.trust)
			task.joined.Store(false) // no transaction holds it
		case heldByTx(renewal.Err): // as long as one does, the lease cannot be taken over
			task.trusted.Store(began + r.trust)
			task.joined.Store(true)
		case task.left.Load() != nil && errors.Is(cause, ErrLeaseLost): // the handler has ended it, and may take its time to return
			task.trusted.Store(never)
			r.lookBy(0)
		case cause != nil:
			task.lose(task.sharpen(cause, r.now()))
		default:
			unsure = renewal.Err
		}
	}
	if !answer.Registered {
		return errors.Join(unsure, r.registerAgain(ctx))
	}
	return unsure
}

// renewApart renews leases that transactions of handlers may hold: such a renewal is answered late, and the others must not wait for it. One that
// is not answered before the next heartbeat is left alone.
func (r *runner) renewApart(ctx context.Context, tasks []*Task) {
	if len(tasks) == 0 || !r.apart.CompareAndSwap(false, true) {
		return
	}
	r.beats.Go(func() {
		defer r.apart.Store(false)
		for _, t := range tasks {
			if err := r.renew(ctx, []*Task{t}, []api.Lease{t.claimed.Lease}); err != nil && ctx.Err() == nil {
				r.complain("heartbeat", err)
			}
		}
	})
}

// heldByTx reports whether a lease was not renewed because a transaction holds the execution.
func heldByTx(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Current[base.DetailHeld] == true
}

// watchLoop gives up leases by the host's clock and ends tasks past their deadline. One timer serves all tasks.
func (r *runner) watchLoop(ctx context.Context) {
	for {
		r.look.Store(never) // from here on placing a task wakes the watch
		next := r.lookAtTasks()
		r.look.Store(next)
		var due <-chan time.Time
		stop := func() bool { return false }
		if next != never {
			timer := r.clock.NewTimer(time.Duration(next - r.now()))
			due, stop = timer.C, timer.Stop
		}
		select {
		case <-due:
		case <-r.looked:
		case <-ctx.Done():
			stop()
			return
		}
		stop()
	}
}

// lookAtTasks ends the tasks that are due and returns when the next one is due.
func (r *runner) lookAtTasks() int64 {
	now, next := r.now(), int64(never)
	r.eachTask(func(t *Task) {
		for {
			at, cause := t.due()
			switch {
			case at > now:
				next = min(next, at)
				return
			case errors.Is(cause, context.DeadlineExceeded):
				t.callDeadline.Store(never)
				t.stop(cause) // the lease is valid: the handler's error fails the attempt
			default:
				t.giveUp(cause)
				return
			}
		}
	})
	return next
}

// lookBy makes the watch check no later than at a given time.
func (r *runner) lookBy(at int64) {
	if at < r.look.Load() {
		wake(r.looked)
	}
}

// due returns the earliest time at which the task must be ended, and why.
func (t *Task) due() (int64, error) {
	state := t.state.Load()
	if state == taskEnded || state == taskLost {
		return never, nil
	}
	at, cause := t.trusted.Load(), ErrLeaseLost
	if t.deadline < at {
		at, cause = t.deadline, ErrDeadline
	}
	if t.attemptDeadline < at {
		at, cause = t.attemptDeadline, ErrAttemptTimeout
	}
	if call := t.callDeadline.Load(); call < at {
		at, cause = call, context.DeadlineExceeded
	}
	return at, cause
}

// sharpen replaces the cause of a lost lease by a deadline of the task if the refusal does not give a cause.
func (t *Task) sharpen(cause error, now int64) error {
	switch {
	case !errors.Is(cause, ErrLeaseLost):
		return cause
	case t.deadline <= now:
		return ErrDeadline
	case t.attemptDeadline <= now:
		return ErrAttemptTimeout
	default:
		return cause
	}
}

// causeOf returns what a refusal implies for the lease; nil if nothing.
func causeOf(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return nil
	}
	switch base.Code(e.Code) {
	case base.CodeLeaseRevoked:
		return ErrLeaseRevoked
	case base.CodeStaleLease, base.CodeLeaseExpired, base.CodeExecutionNotFound, base.CodeInvalidHandle:
		return ErrLeaseLost
	case base.CodeExecutionNotActive:
		status, _ := e.Current["status"].(string)
		reason, _ := e.Current["reason"].(string)
		return causeOfEnd(Status(status), reason)
	default:
		return nil
	}
}

// causeOfEnd returns what the end of an execution, or of its attempt, implies for the lease.
func causeOfEnd(status Status, reason string) error {
	switch {
	case reason == base.ReasonBudgetExceeded || reason == base.ReasonCodeBudget:
		return ErrBudgetExceeded
	case status == StatusCancelled:
		return ErrCancelled
	case status == StatusExpired:
		return ErrDeadline
	case reason == base.ReasonAttemptTimeout:
		return ErrAttemptTimeout
	default:
		return ErrLeaseLost
	}
}

// feeds selects the events that others cause to the leases of this instance; they are followed so that handlers are stopped at
// once. Events of its own commands, by far the most, are excluded.
func (r *runner) feeds() []ops.EventFilter {
	var feeds []ops.EventFilter
	for _, actor := range []string{"operator", "client", "engine"} {
		feeds = append(feeds, ops.EventFilter{InstanceID: r.cfg.Instance, ActorType: actor})
	}
	return feeds
}

// feedStart returns the current end of the log, and whether the feed can be followed. It does not delay the work: a worker does
// without a feed that is refused, and if the log cannot be read for the time between two heartbeats, the feed is followed from
// its end at that time.
func (r *runner) feedStart(ctx context.Context) (after string, followed bool) {
	limit, cancel := r.within(ctx, r.beat)
	defer cancel()
	for try := 0; limit.Err() == nil; try++ {
		page, err := r.client.Events().Read(limit, ops.ReadOptions{EventFilter: r.feeds()[0], After: api.FromEnd})
		switch {
		case r.meter.called(limit, err) == nil:
			return page.Next, true
		case r.withoutFeed(err):
			return "", false
		case limit.Err() != nil:
		default:
			r.complain("events", err)
			backoff.Pause(limit, r.clock, backoff.Delay(try))
		}
	}
	return api.FromEnd, true
}

// withoutFeed reports whether the feed is refused permanently, and logs that once. The answers to renewals then report the ends
// of leases.
func (r *runner) withoutFeed(err error) bool {
	if !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnauthenticated) {
		return false
	}
	r.unheard.Do(func() {
		r.log.Warn("flowfabric: the worker may not read the events of its instance: it notices lost leases when it renews them", "error", err)
	})
	return true
}

// follow processes the events of one feed from a position on.
func (r *runner) follow(ctx context.Context, filter ops.EventFilter, after string) {
	var idle backoff.Idle
	for try := 0; ctx.Err() == nil; {
		began := r.clock.Now()
		page, err := r.client.Events().Read(ctx, ops.ReadOptions{EventFilter: filter, After: after, Limit: feedPageSize, Wait: feedPiece})
		_ = r.meter.called(ctx, err)
		switch {
		case ctx.Err() != nil || r.withoutFeed(err):
			return
		case errors.Is(err, ErrGone) || errors.Is(err, ErrInvalid):
			after = api.FromEnd // the log was replaced or has expired; renewals report what was missed
			fallthrough
		case err != nil:
			r.complain("events", err)
			backoff.Pause(ctx, r.clock, backoff.Delay(try))
			try++
			continue
		}
		try, after = 0, page.Next
		for i := range page.Events {
			r.hear(&page.Events[i])
		}
		if len(page.Events) == 0 && page.AtEnd {
			idle.Pause(ctx, r.clock, began, feedPiece)
		} else {
			idle.News()
		}
	}
}

// hear ends the task whose lease was ended by an event.
func (r *runner) hear(event *Event) {
	r.eachTask(func(t *Task) {
		if t.claimed.ID != event.ExecutionID {
			return
		}
		var data struct {
			Epoch  int64  `json:"lease_epoch"`
			Status string `json:"status"`
			Reason string `json:"reason"`
			Class  string `json:"class"`
			Code   string `json:"reason_code"`
		}
		if err := json.Unmarshal(event.Data, &data); err != nil || data.Epoch != t.claimed.Lease.Epoch {
			return
		}
		switch event.Kind {
		case "lease.revoked":
			t.lose(ErrLeaseRevoked)
		case "lease.expired":
			t.lose(ErrLeaseLost)
		case "attempt.ended":
			if data.Class == classTimeout {
				data.Reason = base.ReasonAttemptTimeout
			}
			t.lose(causeOfEnd("", data.Reason))
		case "execution.suspended": // by the engine only: a worker's own suspends are not in its feed
			t.lose(causeOfEnd("", data.Code))
		case "execution.completed":
			t.lose(causeOfEnd(Status(data.Status), data.Reason))
		}
	})
}
