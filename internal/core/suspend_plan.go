package core

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// suspendPlan is a checked suspend.
type suspendPlan struct {
	record    *Suspension // without its number
	bound     []boundRow
	condition *condition.Condition // every Single with its key
	buffered  []Signal             // of the adopted waitpoints, in order of acceptance
}

// boundRow is the row of a binding: of a waitpoint that will be made, or of an adopted one.
type boundRow struct {
	Waitpoint
	fresh bool
}

func (p *suspendPlan) rows() []Waitpoint {
	rows := make([]Waitpoint, len(p.bound))
	for i := range p.bound {
		rows[i] = p.bound[i].Waitpoint
	}
	return rows
}

// judged returns the buffered signals with their evaluation by the condition (W43).
func (p *suspendPlan) judged() []Signal {
	evaluation := p.condition.Evaluate(nil)
	signals := make([]Signal, len(p.buffered))
	for i, signal := range p.buffered {
		signal.Matched = evaluation.Matches(signal.evidence())
		signals[i] = signal
	}
	return signals
}

// maxTimeoutPast is how far a timeout_at may lie in the past: the caller's clock may be slow, and the timeout then fires at once (W47).
const maxTimeoutPast = 10 * base.Minute

// planSuspend checks what depends on state, in the order of W47 after the fence.
func (x *Execution) planSuspend(now base.Time, d *WaitState, c *SuspendCommand) (*suspendPlan, error) {
	timeout, err := c.timeout(now, &x.Policy.Suspension)
	if err != nil {
		return nil, err
	}
	if err := c.checkKey(); err != nil {
		return nil, err
	}
	p := &suspendPlan{}
	for i := range c.Waitpoints {
		row, err := x.bind(now, d, c, i)
		if err != nil {
			return nil, err
		}
		p.bound = append(p.bound, row)
	}
	if err := p.resolve(c.Condition); err != nil {
		return nil, err
	}
	fresh := 0
	for i := range p.bound {
		if p.bound[i].fresh {
			fresh++
		}
	}
	if err := x.checkWaitpointLimit(fresh); err != nil {
		return nil, err
	}
	if !c.SuspensionID.IsZero() && d.suspensionByID(c.SuspensionID) != nil {
		return nil, base.Errorf(base.CodeSuspensionAlreadyExists, "a suspension has this id").WithField("suspension_id").
			WithHint("leave the id out, or bring one that was never used")
	}
	for i := range p.bound {
		if row := &p.bound[i]; row.fresh && !c.unsigned {
			if err := row.handOut(c.Keys); err != nil {
				return nil, err
			}
		}
	}
	p.record = x.newSuspension(now, c, p, timeout)
	p.buffered = d.signalsOf(p.record)
	return p, nil
}

// timeout returns when the suspension times out, absent if never.
func (c *SuspendCommand) timeout(now base.Time, policy *SuspensionPolicy) (base.Time, error) {
	at := c.TimeoutAt
	switch {
	case at != 0 && at < now.Add(-maxTimeoutPast):
		return 0, condition.InvalidSuspend("timeout_at_in_past", "timeout_at", "has passed more than ten minutes ago")
	case at > now.Add(base.MaxAhead):
		return 0, condition.InvalidSuspend("bad_number", "timeout_at", "must be at most ten years ahead")
	case at != 0:
	case c.TimeoutMS != nil:
		at = now.Add(*c.TimeoutMS)
	case policy.DefaultTimeoutMS > 0:
		at = now.Add(policy.DefaultTimeoutMS)
	}
	if at == 0 && c.Condition.HasTimeoutOnly() {
		return 0, condition.InvalidSuspend("timeout_only_without_deadline", "timeout_at", "is required: the condition is met by a timeout only").
			WithHint("set `timeout_ms` or `timeout_at`, or a default timeout in the suspension policy")
	}
	return at, nil
}

// checkKey refuses a suspend that needs a signing key if there is none (W22).
func (c *SuspendCommand) checkKey() error {
	for i := range c.Waitpoints {
		if !c.Waitpoints[i].UsePending && !c.unsigned {
			_, err := c.Keys.ActiveKid()
			return err
		}
	}
	return nil
}

// bind finds the waitpoint of a binding or makes its row.
func (x *Execution) bind(now base.Time, d *WaitState, c *SuspendCommand, i int) (boundRow, error) {
	b := &c.Waitpoints[i]
	if b.UsePending {
		w, err := x.adopt(d, b.ID)
		if err != nil {
			return boundRow{}, err.WithField(base.Element("waitpoints", i))
		}
		return boundRow{Waitpoint: *w}, nil
	}
	id := b.ID
	switch {
	case id.IsZero():
		id = c.Mint()
	case d.Waitpoint(id) != nil || c.Taken != nil && c.Taken(id):
		return boundRow{}, waitpointExists(id)
	}
	var key string
	if b.Key != nil {
		key = *b.Key
	} else {
		key = c.Condition.FreshKey(len(c.Waitpoints) == 1, id)
	}
	return boundRow{fresh: true, Waitpoint: Waitpoint{
		ID: id, ExecutionID: x.ID, Namespace: x.Class.Namespace, Key: key, RunIndex: x.RunIndex(), MintedAt: now, CreatedAt: now,
	}}, nil
}

// adopt finds a pending waitpoint of this run.
func (x *Execution) adopt(d *WaitState, id base.UUID) (*Waitpoint, *base.Error) {
	w := d.Waitpoint(id)
	if w == nil || w.RunIndex != x.RunIndex() {
		return nil, waitpointNotFound()
	}
	end := d.waitpointEnd(id)
	switch open := x.openWaitpoint(id); {
	case end != nil && end.Reason == ClosedExpired:
		return nil, base.Errorf(base.CodeWaitpointExpired, "the waitpoint has expired").With("expires_at", w.ExpiresAt.String())
	case end != nil:
		return nil, base.Errorf(base.CodeWaitpointNotPending, "the waitpoint is closed").With("close_reason", string(end.Reason))
	case open == nil || open.Active:
		return nil, base.Errorf(base.CodeWaitpointNotPending, "the waitpoint belongs to a suspension already")
	}
	return w, nil
}

// resolve gives every Single its key and checks bindings and condition against each other.
func (p *suspendPlan) resolve(given *condition.Condition) error {
	p.condition = given
	if len(p.bound) > 0 {
		p.condition = given.WithPrimary(p.bound[0].Key)
	}
	named := base.SetOf(p.condition.Keys())
	bound := map[string]bool{}
	for i := range p.bound {
		bound[p.bound[i].Key] = true
	}
	for _, key := range p.condition.Keys() {
		if !bound[key] {
			return condition.InvalidSuspend("referenced_waitpoint_key_missing_binding", condition.FieldName, "names the key %q, which no binding has", key)
		}
	}
	if !given.BindsNothing() {
		for i := range p.bound {
			if key := p.bound[i].Key; !named[key] {
				return condition.InvalidSuspend("extra_binding_not_referenced_by_condition", base.Element("waitpoints", i), "has the key %q, which the condition does not name", key)
			}
		}
	}
	if len(bound) < len(p.bound) {
		return condition.InvalidSuspend("duplicate_binding", "waitpoints", "two of them have one key")
	}
	return nil
}

// newSuspension returns the record of the suspend, without its number.
func (x *Execution) newSuspension(now base.Time, c *SuspendCommand, p *suspendPlan, timeout base.Time) *Suspension {
	s := &Suspension{
		ID: c.SuspensionID, RunIndex: x.RunIndex(), AttemptIndex: x.Attempt.Index, Condition: p.condition.Canonical(),
		Fingerprint: c.Fingerprint(), IdempotencyKey: c.IdempotencyKey, Fence: c.Fence, ReasonCode: c.reasonCode(),
		TimeoutAt: timeout, Behavior: c.Behavior, ResumeDelay: c.ResumeDelayMS, Continuation: c.Continuation.sized(), At: now,
	}
	if s.ID.IsZero() {
		s.ID = c.Mint()
	}
	if s.Behavior == "" {
		s.Behavior = x.Policy.Suspension.TimeoutBehavior
	}
	for i := range p.bound {
		s.Waitpoints = append(s.Waitpoints, BoundWaitpoint{p.bound[i].ID, p.bound[i].Key})
	}
	return s
}
