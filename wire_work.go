package flowfabric

import (
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of the worker protocol (U60..U77).

// MarshalJSON writes the answer as the HTTP API shows it (U60).
func (r Registered) MarshalJSON() ([]byte, error) {
	return wire.Marshal(wire.Registered{Outcome: r.Outcome, ExpiresAt: wireTime(r.ExpiresAt), Drain: r.Drain})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *Registered) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Registered](text)
	*r = registeredFrom(w)
	return err
}

func registeredFrom(w *wire.Registered) Registered {
	return Registered{Outcome: w.Outcome, ExpiresAt: w.ExpiresAt.Time, Drain: w.Drain}
}

// MarshalJSON writes the answer as the HTTP API shows it (U61).
func (h Heartbeat) MarshalJSON() ([]byte, error) {
	w := wire.Heartbeat{Registered: h.Registered, ExpiresAt: wireTime(h.ExpiresAt), Drain: h.Drain}
	w.Leases.Items = []wire.Item[wire.Renewal]{}
	for _, renewal := range h.Leases {
		w.Leases.Add(renewal.wire(), problemOf(renewal.Err))
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *Heartbeat) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Heartbeat](text)
	*h = heartbeatFrom(w)
	return err
}

func heartbeatFrom(w *wire.Heartbeat) Heartbeat {
	return Heartbeat{
		Registered: w.Registered, ExpiresAt: w.ExpiresAt.Time, Drain: w.Drain,
		Leases: each(w.Leases.Items, func(item wire.Item[wire.Renewal]) Renewal {
			renewal := renewalFrom(item.Value)
			renewal.Drain, renewal.Err = w.Drain, refusalFrom(item.Error)
			return renewal
		}),
	}
}

func (r Renewal) wire() wire.Renewal {
	return wire.Renewal{ExpiresAt: wireTime(r.ExpiresAt), TTLMS: millis(r.TTL)}
}

func renewalFrom(w wire.Renewal) Renewal {
	return Renewal{ExpiresAt: w.ExpiresAt.Time, TTL: duration(w.TTLMS)}
}

// MarshalJSON writes the answer as the HTTP API shows it (U62).
func (a ClaimAnswer) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (a ClaimAnswer) AppendJSON(text []byte) ([]byte, error) {
	beside := wire.ClaimFields{Drain: a.Drain, ServerTime: wireTime(a.ServerTime)}
	return wire.AppendClaimAnswer(text, len(a.Tasks), func(i int) wire.Task { return a.Tasks[i].wire() }, beside)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *ClaimAnswer) UnmarshalJSON(text []byte) (err error) {
	if *a, err = claimAnswerFrom(text); err != nil {
		return unreadable(err)
	}
	return nil
}

func claimAnswerFrom(text []byte) (ClaimAnswer, error) {
	a := ClaimAnswer{Tasks: []*Claimed{}}
	beside, err := wire.ReadClaimAnswer(text, func(w *wire.Task) { a.Tasks = append(a.Tasks, claimedFrom(w)) })
	a.Drain, a.ServerTime = beside.Drain, beside.ServerTime.Time
	return a, err
}

// MarshalJSON writes the task as the HTTP API shows it (U28).
func (c Claimed) MarshalJSON() ([]byte, error) {
	w := c.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *Claimed) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Task](text)
	*c = *claimedFrom(w)
	return err
}

func (c *Claimed) wire() wire.Task {
	w := wire.Task{
		ExecutionID: string(c.ID), Partition: c.Partition, Kind: c.Kind, Lane: c.Lane, Namespace: c.Namespace, Priority: c.Priority, Tags: c.Tags,
		Input: c.Input, How: c.How,
		Attempt: c.Attempt, Lease: wire.LeaseOf(c.Lease), CreatedAt: wireTime(c.CreatedAt), DeadlineAt: wireTime(c.DeadlineAt),
		AttemptDeadlineAt: wireTime(c.AttemptDeadline), FlowID: string(c.FlowID), RootFlowID: string(c.RootFlowID), Name: c.Name, ParentID: string(c.ParentID),
		Inputs:   c.Inputs,
		RunIndex: c.RunIndex, Policy: c.Policy, Remaining: c.Remaining,
		Traceparent: c.Trace.Traceparent, Tracestate: c.Trace.Tracestate, Baggage: c.Trace.Baggage,
	}
	w.Attempt.ResumedFrom = c.ResumedFrom
	if !c.brief {
		w.EffectKey = effectKey(c, "")
	}
	if c.Resume != nil {
		resumed := c.Resume.wire()
		w.Resumed = &resumed
	}
	return w
}

func claimedFrom(w *wire.Task) *Claimed {
	c := &Claimed{
		ID: ID(w.ExecutionID), Partition: w.Partition, Kind: w.Kind, Lane: w.Lane, Namespace: w.Namespace, Priority: w.Priority, Tags: maps.Clone(w.Tags),
		Input: w.Input, How: w.How, ResumedFrom: w.Attempt.ResumedFrom,
		Attempt: w.Attempt, Lease: w.Lease.Lease, CreatedAt: w.CreatedAt.Time, DeadlineAt: w.DeadlineAt.Time,
		AttemptDeadline: w.AttemptDeadlineAt.Time, FlowID: ID(w.FlowID), RootFlowID: ID(w.RootFlowID), Name: w.Name, Inputs: w.Inputs, ParentID: ID(w.ParentID), RunIndex: w.RunIndex, Policy: w.Policy, Remaining: w.Remaining,
		Trace: TraceContext{Traceparent: w.Traceparent, Tracestate: w.Tracestate, Baggage: w.Baggage},
	}
	c.Attempt.ResumedFrom = "" // it is the task's
	if w.Resumed != nil {
		c.Resume = resumeFrom(w.Resumed)
	}
	return c
}

// MarshalJSON writes the answer as a work batch of the HTTP API shows it, without index and ok (U77).
func (a WorkAnswer) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (a WorkAnswer) AppendJSON(text []byte) ([]byte, error) {
	w := a.wire()
	return appendItem(text, &w, a.Err)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *WorkAnswer) UnmarshalJSON(text []byte) error {
	w, refusal, err := readItem[wire.WorkAnswer](text)
	*a = workAnswerFrom(&w)
	a.Err = refusal
	return err
}

func (a *WorkAnswer) wire() wire.WorkAnswer {
	w := wire.WorkAnswer{Status: string(a.Status), Outcome: a.Outcome, Reason: a.Reason, RetryAt: wireTime(a.RetryAt), Late: a.Late, Usage: a.Usage}
	if a.Renewal.TTL != 0 {
		renewal := a.Renewal.wire()
		w.Lease, w.Drain = &renewal, a.Renewal.Drain
	}
	w.Step = a.Step
	a.waitInto(&w)
	a.childrenInto(&w)
	return w
}

// waitInto adds what a command about a wait answers; without tokens and addresses, which whoever may show them adds.
func (a *WorkAnswer) waitInto(w *wire.WorkAnswer) {
	w.SuspensionID, w.TimeoutAt = a.SuspensionID, wireTime(a.TimeoutAt)
	for i := range a.Waitpoints {
		if a.SuspensionID == "" {
			w.Waitpoint = &api.IssuedWaitpoint{Waitpoint: a.Waitpoints[i]}
			break // it is the one that was made
		}
		w.Waitpoints = append(w.Waitpoints, suspendWire(&a.Waitpoints[i]))
	}
	if a.Resume != nil {
		w.Cause, w.Signals = a.Resume.Cause, signals(a.Resume.Signals)
	}
}

func workAnswerFrom(w *wire.WorkAnswer) WorkAnswer {
	a := WorkAnswer{
		Status: Status(w.Status), Outcome: w.Outcome, Reason: w.Reason, RetryAt: w.RetryAt.Time, Late: w.Late, Usage: w.Usage,
	}
	if w.Lease != nil {
		a.Renewal = renewalFrom(*w.Lease)
		a.Renewal.Drain = w.Drain
	}
	a.Step = w.Step
	a.waitFrom(w)
	a.childrenFrom(w)
	return a
}

// waitFrom reads what a command about a wait answered. The continuation of a wait that is passed is the caller's own.
func (a *WorkAnswer) waitFrom(w *wire.WorkAnswer) {
	a.SuspensionID, a.TimeoutAt = w.SuspensionID, w.TimeoutAt.Time
	for _, waitpoint := range w.Waitpoints {
		a.Waitpoints = append(a.Waitpoints, suspendFrom(waitpoint, w.SuspensionID))
	}
	if w.Waitpoint != nil {
		a.Waitpoints = []Waitpoint{w.Waitpoint.Concealed()}
	}
	if w.Outcome == outcomeSatisfied {
		a.Resume = &Resume{SuspensionID: w.SuspensionID, Cause: w.Cause, Signals: signals(w.Signals)}
	}
}
