package core

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Observation is a suspension as observe and list_suspensions show it (W82, W85), and as a claim returns it for resumed work (W80). Reading it
// consumes nothing.
type Observation struct {
	Suspension                     // ReasonCode and TimeoutAt are the present ones, or those at its end: an escalation changes them
	Cause          SuspensionCause // "" while it is open
	ClosedAt       base.Time
	CloserSignalID base.UUID
	By             string
	EscalatedAt    base.Time
	Signals        []Signal // in order of acceptance, without payload bytes
}

// Observe returns the open suspension, else the one of this run that closed last; nil if this run was never suspended. Errors: corruption.
func (x *Execution) Observe(d *Dossier) (*Observation, error) {
	return x.observeLast(d, func(*Suspension) bool { return true })
}

// observeLast returns the last suspension of this run for which counts holds; nil if there is none.
func (x *Execution) observeLast(d *Dossier, counts func(*Suspension) bool) (*Observation, error) {
	var last *Suspension
	for i := range d.Suspensions {
		s := &d.Suspensions[i]
		if s.RunIndex == x.RunIndex() && counts(s) && (last == nil || s.Seq > last.Seq) {
			last = s
		}
	}
	if last == nil {
		return nil, nil
	}
	return x.observe(d, last)
}

// ObserveOne returns the suspension of that id; nil if there is none. Errors: corruption.
func (x *Execution) ObserveOne(d *Dossier, id base.UUID) (*Observation, error) {
	s := d.suspensionByID(id)
	if s == nil {
		return nil, nil
	}
	return x.observe(d, s)
}

// Suspensions returns the history over all runs, in order. Errors: corruption.
func (x *Execution) Suspensions(d *Dossier) ([]Observation, error) {
	history := make([]Observation, 0, len(d.Suspensions))
	for i := range d.Suspensions {
		shown, err := x.observe(d, &d.Suspensions[i])
		if err != nil {
			return nil, err
		}
		history = append(history, *shown)
	}
	sortBy(history, func(o *Observation) int { return o.Seq })
	return history, nil
}

func (x *Execution) observe(d *Dossier, s *Suspension) (*Observation, error) {
	signals, err := d.judged(s)
	if err != nil {
		return nil, err
	}
	shown := &Observation{Suspension: *s, Signals: signals}
	if end := d.suspensionEnd(s.Seq); end != nil {
		shown.Cause, shown.ClosedAt, shown.CloserSignalID = end.Cause, end.At, end.CloserSignalID
		shown.By, shown.EscalatedAt = end.By, end.EscalatedAt
	} else if open := x.openSuspension(); open != nil {
		shown.EscalatedAt = open.EscalatedAt
	}
	if shown.EscalatedAt != 0 {
		shown.TimeoutAt, shown.ReasonCode = 0, ReasonCodeOperatorReview
	}
	return shown, nil
}

// ResumedWait returns what a claim reports when work continues after a suspension (W80): the suspension that ended, its signals and its
// continuation. It returns nil if the attempt continues after something else. A claim that is repeated after the handler has passed a further wait
// by early signals gets the same answer as the first time. Errors: corruption.
func (x *Execution) ResumedWait(d *Dossier, got Acquired) (*Observation, error) {
	if got.ResumedFrom != InterruptedSuspended {
		return nil, nil
	}
	return x.observeLast(d, func(s *Suspension) bool { return !s.Early })
}

// sortBy sorts in place by a number.
func sortBy[T any, N cmp.Ordered](list []T, number func(*T) N) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(number(&a), number(&b)) })
}
