package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Renew extends the lease from now on (L38); ttl 0 means the lease's own. It works live and in grace and changes only the times of the lease (L9).
// Errors: invalid_argument, those of the fence, lease_expired.
func (x *Execution) Renew(fx *Effects, f Fence, ttl base.Millis) error {
	if ttl != 0 {
		if err := base.CheckTTL(ttl); err != nil {
			return err
		}
	}
	if err := x.checkLive(f); err != nil {
		return err
	}
	if ttl == 0 {
		ttl = x.Lease.TTL
	}
	x.Lease.RenewedAt, x.Lease.TTL, x.Lease.ExpiresAt = fx.Now, ttl, fx.Now.Add(ttl)
	// A later lapse is noticed when the old WakeAt is due (S65).
	if x.lapseDue() < x.WakeAt {
		x.arm()
	}
	return nil
}

// ReportProgress replaces the given fields of the progress (L99). Errors: invalid_argument, those of the fence, lease_expired.
func (x *Execution) ReportProgress(fx *Effects, f Fence, percent *int, message *string) error {
	if err := base.CheckProgress(percent, message); err != nil {
		return err
	}
	if err := x.checkLive(f); err != nil {
		return err
	}
	progress := Progress{UpdatedAt: fx.Now}
	if x.Progress != nil {
		progress.Percent, progress.Message = x.Progress.Percent, x.Progress.Message
	}
	if percent != nil {
		progress.Percent = percent
	}
	if message != nil {
		progress.Message = message
	}
	x.Progress = &progress
	x.LastMutationAt = fx.Now
	return nil
}

// Completion is the command complete (L89). Override is set for an operator, who has no fence (L37). Recorded is the lease history entry of the
// fence's epoch if NeedsRecord required it; the commands below have it too.
type Completion struct {
	Fence    Fence
	Override bool
	Result   *Payload         // nil: none
	Usage    map[string]int64 // spent already, booked before the lease ends (B16)
	Recorded *LeaseRecord
	TooLarge error // why the result is not stored; a repeat is answered as before
}

// Complete ends x with success. Errors: TooLarge, invalid_usage, reserved_dimension, those of the fence.
func (x *Execution) Complete(fx *Effects, c Completion) (CompleteAnswer, error) {
	if err := CheckUsage(c.Usage); err != nil {
		return CompleteAnswer{}, err
	}
	in, err := x.enterAs(fx, c.Fence, c.Override, EndComplete, c.Recorded)
	if err != nil {
		return CompleteAnswer{}, err
	}
	if in.repeat != nil {
		return repeatComplete(in.repeat)
	}
	if c.TooLarge != nil {
		return CompleteAnswer{}, c.TooLarge
	}
	x.spend(fx, c.Usage, in.lapse != nil)
	x.Failure = nil // of an earlier attempt, which keeps its own copy
	x.end(fx, ending{
		status: Succeeded, reason: Completed, attempt: EndedSuccess, lease: EndComplete, lapse: in.lapse, result: c.Result,
	})
	answer := CompleteAnswer{Status: x.Status, Late: in.lapse != nil}
	fx.recordAnswer(answer.encode())
	return answer, nil
}

// FailCommand is the command fail (L90, L91).
type FailCommand struct {
	Fence      Fence
	Override   bool
	Class      string // "": transient
	Category   string // "": the class
	Message    string
	Detail     []byte           // nil: none
	DetailType string           // its content type; "": application/octet-stream
	RetryAfter *base.Millis     // instead of the backoff (L94)
	Default    *RetryPolicy     // of the worker: used if the submission does not state its retries; nil: it has none
	Usage      map[string]int64 // spent already, booked before the lease ends (B16)
	Recorded   *LeaseRecord
}

// The classes of a failure (L91).
const (
	classTransient  = "transient"
	classTimeout    = "timeout"
	classInfraCrash = "infra_crash"
	classPermanent  = "permanent"
	classCancelled  = "cancelled"
)

// Normalize fills in the defaults and checks the arguments: invalid_argument, invalid_usage, reserved_dimension. Message and detail are truncated,
// never refused (L6).
func (c *FailCommand) Normalize() error {
	switch c.Class {
	case "":
		c.Class = classTransient
	case classTransient, classTimeout, classInfraCrash, classPermanent, classCancelled:
	default:
		return base.Invalid("class", "%q is not a class of failure", base.CutText(c.Class, 80)).
			WithHint("use transient, timeout, infra_crash, permanent or cancelled")
	}
	if c.Category == "" {
		c.Category = c.Class
	}
	if err := base.CheckCategory("category", c.Category); err != nil {
		return err
	}
	if c.RetryAfter != nil && (*c.RetryAfter < 0 || *c.RetryAfter > 30*base.Day) {
		return base.Invalid("retry_after_ms", "must be in 0..%d", 30*base.Day)
	}
	if err := c.normalizeDetail(); err != nil {
		return err
	}
	c.Message = base.CutMessage(c.Message)
	return CheckUsage(c.Usage)
}

// normalizeDetail truncates the detail. Its content type is kept only if there is a detail and the type is not the default.
func (c *FailCommand) normalizeDetail() error {
	if c.DetailType != "" {
		if err := base.CheckContentType("detail_content_type", c.DetailType); err != nil {
			return err
		}
	}
	if c.Detail == nil || c.DetailType == base.DefaultContentType {
		c.DetailType = ""
	}
	c.Detail = base.CutDetail(c.Detail)
	return nil
}

// Fail ends the attempt as failed; a retry follows, or x fails (L92). Errors: invalid_argument, those of the fence.
func (x *Execution) Fail(fx *Effects, c FailCommand) (FailAnswer, error) {
	if err := c.Normalize(); err != nil {
		return FailAnswer{}, err
	}
	in, err := x.enterAs(fx, c.Fence, c.Override, EndFail, c.Recorded)
	if err != nil {
		return FailAnswer{}, err
	}
	if in.repeat != nil {
		return repeatFail(in.repeat)
	}
	x.spend(fx, c.Usage, in.lapse != nil)
	answer := x.failAttempt(fx, failing{
		failure:    &Failure{Class: c.Class, Category: c.Category, Message: c.Message, Detail: c.Detail, DetailType: c.DetailType, At: fx.Now},
		retryAfter: c.RetryAfter, lease: EndFail, lapse: in.lapse, byDefault: c.Default,
	})
	fx.recordAnswer(answer.encode())
	return answer, nil
}

// DelayCommand is the command delay (L95).
type DelayCommand struct {
	Fence    Fence
	Until    base.Time
	Usage    map[string]int64 // spent already, booked before the lease ends (B16)
	Recorded *LeaseRecord
	TooLarge error // why the result is not stored; a repeat is answered as before
}

// Delay hands x back until a moment; then the attempt continues. A moment in the past makes it ready at once. Errors: invalid_argument, those of
// the fence.
func (x *Execution) Delay(fx *Effects, c DelayCommand) (LeaveAnswer, error) {
	if c.Until == 0 {
		return LeaveAnswer{}, base.Invalid("until", "is required")
	}
	if err := base.CheckAhead("until", c.Until, fx.Now); err != nil {
		return LeaveAnswer{}, err
	}
	if err := CheckUsage(c.Usage); err != nil {
		return LeaveAnswer{}, err
	}
	in, err := x.enter(fx, c.Fence, EndDelay, c.Recorded)
	if err != nil {
		return LeaveAnswer{}, err
	}
	if in.repeat != nil {
		return repeatLeave(in.repeat)
	}
	x.spend(fx, c.Usage, in.lapse != nil)
	held := x.leave(fx, exit{end: EndDelay, state: AttemptInterrupted, interruption: InterruptedDelayed, lapse: in.lapse})
	x.DelayUntil, x.DelayReason = c.Until, WaitingForDelay
	x.QueuedAt = base.Later(fx.Now, c.Until)
	return x.handBack(fx, held, "delay", ""), nil
}

// ReleaseCommand is the command release (L98).
type ReleaseCommand struct {
	Fence    Fence
	Reason   string
	Recorded *LeaseRecord
	TooLarge error // why the result is not stored; a repeat is answered as before
}

// Release hands x back for the next worker, which gets the same attempt with its full time. It changes no counter: a late release replaces the
// lapse in the history (L36), but the lapse stays counted. Otherwise a worker that keeps losing its lease and then releases it would never reach
// the cap of L103. Errors: those of the fence.
func (x *Execution) Release(fx *Effects, c ReleaseCommand) (LeaveAnswer, error) {
	in, err := x.enter(fx, c.Fence, EndRelease, c.Recorded)
	if err != nil {
		return LeaveAnswer{}, err
	}
	if in.repeat != nil {
		return repeatLeave(in.repeat)
	}
	held := x.leave(fx, exit{end: EndRelease, state: AttemptInterrupted, interruption: InterruptedReleased, lapse: in.lapse})
	return x.handBack(fx, held, "release", c.Reason), nil
}

// handBack queues an interrupted attempt for resumption and returns the answer of the command that interrupted it.
func (x *Execution) handBack(fx *Effects, held heldLease, by, reason string) LeaveAnswer {
	x.Next = NextResume
	x.gate(fx.Now)
	x.emitReleased(fx, held, by, reason)
	answer := LeaveAnswer{Status: x.Status, Reason: x.Reason, DelayUntil: x.DelayUntil, Late: held.late}
	fx.recordAnswer(answer.encode())
	return answer
}
