package core

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// Dossier is what is stored beside one execution about its waits, over all its runs, without payload bytes. Commands read it without changing it;
// Apply adds what they wrote. The lists are in the order of writing; those with a number are sorted by it.
type Dossier struct {
	Waitpoints     []Waitpoint
	WaitpointEnds  []WaitpointEnd
	Suspensions    []Suspension
	SuspensionEnds []SuspensionEnd
	Signals        []Signal
	Links          []Link
	LinkEnds       []LinkEnd
}

// Apply adds what a command or a timer of the execution has written, for the following commands of the same transaction.
func (d *Dossier) Apply(writes []WaitWrite) {
	for _, write := range writes {
		write.Record.keptBy(d)
	}
}

func (w *Waitpoint) keptBy(d *Dossier) {
	if known := d.Waitpoint(w.ID); known != nil {
		*known = *w
		return
	}
	d.Waitpoints = append(d.Waitpoints, *w)
}

func (e *WaitpointEnd) keptBy(d *Dossier)  { d.WaitpointEnds = append(d.WaitpointEnds, *e) }
func (s *Suspension) keptBy(d *Dossier)    { d.Suspensions = append(d.Suspensions, *s) }
func (e *SuspensionEnd) keptBy(d *Dossier) { d.SuspensionEnds = append(d.SuspensionEnds, *e) }
func (s *Signal) keptBy(d *Dossier)        { d.Signals = append(d.Signals, *s) }
func (l *Link) keptBy(d *Dossier)          { d.Links = append(d.Links, *l) }
func (e *LinkEnd) keptBy(d *Dossier)       { d.LinkEnds = append(d.LinkEnds, *e) }

// first returns the first element of a list for which is holds, nil if there is none.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Waitpoint returns the waitpoint of that id, or nil.
func (d *Dossier) Waitpoint(id base.UUID) *Waitpoint {
	return first(d.Waitpoints, func(w *Waitpoint) bool { return w.ID == id })
}

// waitpointEnd returns nil while the waitpoint is open.
func (d *Dossier) waitpointEnd(id base.UUID) *WaitpointEnd {
	return first(d.WaitpointEnds, func(e *WaitpointEnd) bool { return e.WaitpointID == id })
}

func (d *Dossier) suspension(seq int) *Suspension {
	return first(d.Suspensions, func(s *Suspension) bool { return s.Seq == seq })
}

func (d *Dossier) suspensionByID(id base.UUID) *Suspension {
	return first(d.Suspensions, func(s *Suspension) bool { return s.ID == id })
}

// suspensionEnd returns nil while the suspension is open.
func (d *Dossier) suspensionEnd(seq int) *SuspensionEnd {
	return first(d.SuspensionEnds, func(e *SuspensionEnd) bool { return e.Seq == seq })
}

// Link returns the link of that id, or nil.
func (d *Dossier) Link(id base.UUID) *Link {
	return first(d.Links, func(l *Link) bool { return l.ID == id })
}

// linkEnd returns nil while the link is neither decided nor revoked.
func (d *Dossier) linkEnd(id base.UUID) *LinkEnd {
	return first(d.LinkEnds, func(e *LinkEnd) bool { return e.LinkID == id })
}

// signalsOf lists the signals of a suspension, those of its waitpoints and its timeout, in order of acceptance.
func (d *Dossier) signalsOf(s *Suspension) []Signal {
	var signals []Signal
	for i := range d.Signals {
		if signal := &d.Signals[i]; s.binds(signal.WaitpointID) || signal.SuspensionID == s.ID {
			signals = append(signals, *signal)
		}
	}
	slices.SortStableFunc(signals, byOrdinal)
	return signals
}

func byOrdinal(a, b Signal) int { return a.Ordinal - b.Ordinal }

// judged is signalsOf with buffered signals evaluated: whether a node matches them is known now (W43).
func (d *Dossier) judged(s *Suspension) ([]Signal, error) {
	condition, err := condition.Decode(s.Condition)
	if err != nil {
		return nil, err
	}
	evaluation := condition.Evaluate(nil)
	signals := d.signalsOf(s)
	for i := range signals {
		signals[i].Matched = signals[i].matchedBy(evaluation)
	}
	return signals, nil
}

func evidenceIn(signals []Signal) []condition.Evidence {
	evidence := make([]condition.Evidence, len(signals))
	for i := range signals {
		evidence[i] = signals[i].evidence()
	}
	return evidence
}

// lacks is the error for a dossier without a record that the execution refers to.
func (x *Execution) lacks(what string) error {
	return base.Errorf(base.CodeCorruption, "a stored %s of %s is missing", what, x.ID).With("record", x.ID.String()).With("field", "waits")
}
