package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// keyed gives a command that a repeat could not be told by its fence a key before its first try.
func (i *WorkItem) keyed(c clock.Clock) *WorkItem {
	switch {
	case i.Op == OpWaitpoint && i.Waitpoint != nil && i.Waitpoint.IdempotencyKey == "":
		waitpoint := *i.Waitpoint
		waitpoint.IdempotencyKey = mintUUID(c).String()
		return i.with(func(own *WorkItem) { own.Waitpoint = &waitpoint })
	case i.Op == OpSuspend && i.Suspension != nil && i.Suspension.Key == "":
		suspension := *i.Suspension
		suspension.Key = mintUUID(c).String()
		return i.with(func(own *WorkItem) { own.Suspension = &suspension })
	case i.Op == OpUsage && i.Usage.DedupKey == "":
		return i.with(func(own *WorkItem) { own.Usage, _ = keyedUsage(i.Usage, c) })
	default: // most: they are not copied
		return i
	}
}

func (i *WorkItem) with(change func(own *WorkItem)) *WorkItem {
	own := *i
	change(&own)
	return &own
}

// forget makes nothing of a repeat under a key that only this call had: a further try of it.
func (a *WorkAnswer) forget(item *WorkItem) {
	if a.Usage != nil && item.Usage.DedupKey == "" {
		*a.Usage = a.Usage.First()
	}
}

// belongTo names the execution of waitpoints that came without it: whoever sent the command knows it.
func (a *WorkAnswer) belongTo(id ID) {
	given, err := parseID(id)
	if err != nil {
		return
	}
	for i := range a.Waitpoints {
		if w := &a.Waitpoints[i]; w.ExecutionID == "" {
			w.ExecutionID = ID(given.UUID.String())
		}
	}
}

// into writes the wait into a command of a batch.
func (s *Suspension) into(w *wire.WorkItem) error {
	if s == nil {
		return newError(core.CodeInvalidArgument, "there is nothing to wait for").At("suspension", "say what it is")
	}
	if err := s.Continuation.Problem("continuation"); err != nil {
		return err
	}
	condition := s.Until
	w.ResumeCondition, w.IdempotencyKey, w.SuspendFields = &condition, s.Key, s.fields()
	return readable(w)
}

// fields are the wait as a request has it, without its condition and its key.
func (s *Suspension) fields() wire.SuspendFields {
	return wire.SuspendFields{
		Waitpoints: s.Waitpoints, ReasonCode: s.ReasonCode, TimeoutMS: span(s.Timeout), TimeoutAt: wireTime(s.TimeoutAt),
		TimeoutBehavior: string(s.OnTimeout), ResumeDelayMS: millis(s.ResumeDelay), SuspensionID: s.ID, Continuation: s.Continuation,
	}
}

// readable tells what a server would find wrong with the form of a command: it would take the whole batch with it.
func readable(w *wire.WorkItem) error {
	text, err := wire.Marshal(w)
	if err == nil {
		err = wire.DecodeJSON(text, new(wire.WorkItem))
	}
	return api.FaultsError(err)
}

// into writes the waitpoint into a command of a batch.
func (n *NewWaitpoint) into(w *wire.WorkItem) error {
	if n == nil {
		return newError(core.CodeInvalidArgument, "there is no waitpoint to make").At("waitpoint", "say what it is")
	}
	if n.Key == "" {
		return newError(core.CodeInvalidWaitpoint, "the waitpoint has no key").At("waitpoint_key", "give it one")
	}
	w.WaitpointKey, w.IdempotencyKey = n.Key, n.IdempotencyKey
	w.ExpiryFields = wire.ExpiryFields{ExpiresInMS: span(n.ExpiresIn), WaitpointID: n.ID}
	return nil
}
