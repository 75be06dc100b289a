package core

import "slices"

// Dossier is what is stored beside one execution about its waits, of all its runs, without payload bytes. Commands read it and leave
// it alone; what they wrote is taken in by Apply. The lists are in the order of writing, those with a number in order of it.
type Dossier struct {
	Waitpoints     []Waitpoint
	WaitpointEnds  []WaitpointEnd
	Suspensions    []Suspension
	SuspensionEnds []SuspensionEnd
	Signals        []Signal
	Links          []Link
	LinkEnds       []LinkEnd
}

// Apply takes in what a command or a settling of the execution has written, for the commands that follow in the same transaction.
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

// first is the first of a list for which is holds, nil when there is none.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Waitpoint is nil when there is none of that id.
func (d *Dossier) Waitpoint(id UUID) *Waitpoint {
	return first(d.Waitpoints, func(w *Waitpoint) bool { return w.ID == id })
}

// waitpointEnd is nil while the waitpoint is open.
func (d *Dossier) waitpointEnd(id UUID) *WaitpointEnd {
	return first(d.WaitpointEnds, func(e *WaitpointEnd) bool { return e.WaitpointID == id })
}

func (d *Dossier) suspension(seq int) *Suspension {
	return first(d.Suspensions, func(s *Suspension) bool { return s.Seq == seq })
}

func (d *Dossier) suspensionByID(id UUID) *Suspension {
	return first(d.Suspensions, func(s *Suspension) bool { return s.ID == id })
}

// suspensionEnd is nil while the suspension is open.
func (d *Dossier) suspensionEnd(seq int) *SuspensionEnd {
	return first(d.SuspensionEnds, func(e *SuspensionEnd) bool { return e.Seq == seq })
}

// Link is nil when there is none of that id.
func (d *Dossier) Link(id UUID) *Link {
	return first(d.Links, func(l *Link) bool { return l.ID == id })
}

// linkEnd is nil while the link is neither decided nor revoked.
func (d *Dossier) linkEnd(id UUID) *LinkEnd {
	return first(d.LinkEnds, func(e *LinkEnd) bool { return e.LinkID == id })
}

// signalsOf lists the signals that belong to a suspension: those of its waitpoints, and its timeout, in order of acceptance.
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

// judged is signalsOf with the signals looked at that were buffered: whether a node lets them pass is known now (W43).
func (d *Dossier) judged(s *Suspension) ([]Signal, error) {
	condition, err := DecodeCondition(s.Condition)
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

func evidenceIn(signals []Signal) []Evidence {
	evidence := make([]Evidence, len(signals))
	for i := range signals {
		evidence[i] = signals[i].evidence()
	}
	return evidence
}

// lacks is what to answer when the dossier has not what the execution says is there.
func (x *Execution) lacks(what string) error {
	return Errorf(CodeCorruption, "a stored %s of %s is missing", what, x.ID).With("record", x.ID.String()).With("field", "waits")
}
