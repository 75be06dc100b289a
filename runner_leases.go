package flowfabric

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// How a runner looks after its leases.
const (
	leaseMargin  = 5 * time.Second // a lease is given up so long before it can have run out; a sixth of its time if that is less
	minLiveness  = time.Second     // bounds of how long an instance counts as alive without a sign of life (S49)
	maxLiveness  = time.Hour
	maxRenewals  = 1000 // leases a heartbeat
	feedPiece    = 30 * time.Second
	feedPageSize = 1000
)

// beatLoop says every third of a lease's time that the instance is alive, and renews all leases.
func (r *runner) beatLoop(ctx context.Context) {
	for wait, try := r.beat, 0; backoff.Pause(ctx, r.clock, wait); {
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

// heartbeat renews every lease in batches. Its error says that some may not have been renewed.
func (r *runner) heartbeat(ctx context.Context) error {
	var tasks []*Task
	var leases []Lease
	r.eachTask(func(t *Task) {
		if t.state.Load() == taskRuns || t.state.Load() == taskEnding {
			tasks, leases = append(tasks, t), append(leases, t.claimed.Lease)
		}
	})
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

func (r *runner) renew(ctx context.Context, tasks []*Task, leases []Lease) error {
	began := r.now()
	call, cancel := r.within(ctx, r.beat)
	defer cancel()
	answer, err := r.work.Heartbeat(call, r.cfg.Instance, leases)
	if r.meter.called(ctx, err) != nil {
		return err
	}
	r.drains.Store(answer.Drain)
	var unsure error
	for i, renewal := range answer.Leases {
		switch cause := causeOf(renewal.Err); {
		case renewal.Err == nil:
			tasks[i].trusted.Store(began + r.trust)
		case cause != nil:
			tasks[i].lose(tasks[i].sharpen(cause, r.now()))
		default:
			unsure = renewal.Err
		}
	}
	if !answer.Registered {
		return errors.Join(unsure, r.registerOnce(ctx))
	}
	return unsure
}

// watchLoop gives up leases by the host's clock and ends what is past its deadline. One timer serves all tasks.
func (r *runner) watchLoop(ctx context.Context) {
	for {
		r.look.Store(never) // a task placed from here on wakes the watch
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

// lookAtTasks ends what is due and returns when something is due next.
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
				t.stop(cause) // the lease stands: the handler's error fails the attempt
			default:
				t.giveUp(cause)
				return
			}
		}
	})
	return next
}

// lookBy makes the watch look no later than at a moment.
func (r *runner) lookBy(at int64) {
	if at < r.look.Load() {
		wake(r.looked)
	}
}

// due is the earliest moment at which the task must be ended, and why.
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

// sharpen names the cause of a lost lease by the task's own deadlines where the refusal does not tell it.
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

// causeOf says what a refusal means for the lease; nil when it says nothing about it.
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

// causeOfEnd says what the end of an execution, or of its attempt, means for the lease.
func causeOfEnd(status Status, reason string) error {
	switch {
	case reason == core.BudgetExceeded.String() || reason == core.ReasonCodeBudget:
		return ErrBudgetExceeded
	case status == StatusCancelled:
		return ErrCancelled
	case status == StatusExpired:
		return ErrDeadline
	case reason == core.AttemptTimeout.String():
		return ErrAttemptTimeout
	default:
		return ErrLeaseLost
	}
}

// feeds are what others do to the leases of this instance, followed so that handlers learn of it at once. What its own commands
// do, which is by far the most, is left out.
func (r *runner) feeds() []EventFilter {
	var feeds []EventFilter
	for _, actor := range []string{"operator", "client", "engine"} {
		feeds = append(feeds, EventFilter{InstanceID: r.cfg.Instance, ActorType: actor})
	}
	return feeds
}

// feedStart returns the present end of the log, and whether the feed can be followed. It does not keep a worker from its work: a feed
// that is refused is done without, and one that cannot be read for the time between two heartbeats is followed from wherever it is then.
func (r *runner) feedStart(ctx context.Context) (after string, followed bool) {
	limit, cancel := r.within(ctx, r.beat)
	defer cancel()
	for try := 0; limit.Err() == nil; try++ {
		page, err := r.client.Events().Read(limit, ReadOptions{EventFilter: r.feeds()[0], After: FromEnd})
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
	return FromEnd, true
}

// withoutFeed reports whether the feed is refused for good, and logs that once. Each renewal then tells what happened to its lease.
func (r *runner) withoutFeed(err error) bool {
	if !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrUnauthenticated) {
		return false
	}
	r.unheard.Do(func() {
		r.log.Warn("flowfabric: the worker may not read the events of its instance: it notices lost leases when it renews them", "error", err)
	})
	return true
}

// follow hears the events of one feed from a position on.
func (r *runner) follow(ctx context.Context, filter EventFilter, after string) {
	for try := 0; ctx.Err() == nil; {
		page, err := r.client.Events().Read(ctx, ReadOptions{EventFilter: filter, After: after, Limit: feedPageSize, Wait: feedPiece})
		_ = r.meter.called(ctx, err)
		switch {
		case ctx.Err() != nil || r.withoutFeed(err):
			return
		case errors.Is(err, ErrGone) || errors.Is(err, ErrInvalid):
			after = FromEnd // another log, or one that has moved on: renewals tell what was missed
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
	}
}

// hear ends the task whose lease an event has ended.
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
				data.Reason = core.AttemptTimeout.String()
			}
			t.lose(causeOfEnd("", data.Reason))
		case "execution.suspended": // by the engine alone: a worker's own is not in its feed
			t.lose(causeOfEnd("", data.Code))
		case "execution.completed":
			t.lose(causeOfEnd(Status(data.Status), data.Reason))
		}
	})
}
