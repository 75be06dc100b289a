package model

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// brokenWaits lists what does not hold of the waits that a store holds (WI7..WI14). ends remembers how every suspension and link ended.
func brokenWaits(got *state, ends map[string]string) []string {
	var found []string
	if diff := cmp.Diff(marksOf(got.records), got.marks); diff != "" {
		found = append(found, "I18: marks of waits (-of the records +stored): "+diff)
	}
	for id, r := range got.records {
		for _, check := range []func(*record) string{openOnes, endedOnce, early, chain, keptOnce, ownSignals, ownTimers} {
			if text := check(r); text != "" {
				found = append(found, fmt.Sprintf("%s: %s", r.x.ID, text))
			}
		}
		found = append(found, r.changedEnds(id, ends)...)
	}
	return found
}

// openOnes is WI7: what is open by the record is what the dossier knows no end of.
func openOnes(r *record) string {
	var byRecord, byDossier []string
	if w := r.x.Waits; w != nil {
		for _, open := range w.Open {
			byRecord = append(byRecord, fmt.Sprintf("%s active %v", open.ID, open.Active))
		}
		if w.Suspension != nil {
			byRecord = append(byRecord, fmt.Sprintf("suspension %d %s", w.Suspension.Seq, w.Suspension.ID))
		}
	}
	closed := map[base.UUID]bool{}
	for _, end := range r.d.WaitpointEnds {
		closed[end.WaitpointID] = true
	}
	for _, w := range r.d.Waitpoints {
		if !closed[w.ID] {
			byDossier = append(byDossier, fmt.Sprintf("%s active %v", w.ID, w.ActivatedAt != 0))
		}
	}
	for _, s := range r.d.Suspensions {
		if r.endOf(s.Seq) == nil {
			byDossier = append(byDossier, fmt.Sprintf("suspension %d %s", s.Seq, s.ID))
		}
	}
	slices.Sort(byRecord)
	slices.Sort(byDossier)
	if !slices.Equal(byRecord, byDossier) {
		return fmt.Sprintf("WI7: open by the record %q, by the dossier %q", byRecord, byDossier)
	}
	return ""
}

func (r *record) endOf(seq int) *core.SuspensionEnd {
	at := slices.IndexFunc(r.d.SuspensionEnds, func(e core.SuspensionEnd) bool { return e.Seq == seq })
	if at < 0 {
		return nil
	}
	return &r.d.SuspensionEnds[at]
}

// endedOnce is WI9 as one moment shows it: one cause for what is closed.
func endedOnce(r *record) string {
	causes := []core.SuspensionCause{
		core.CauseSignal, core.CauseOperator, core.CauseTimeout, core.CauseEarlySignals, core.CauseCancelled, core.CauseEnded,
	}
	for i, end := range r.d.SuspensionEnds {
		if !slices.Contains(causes, end.Cause) || end.Seq > len(r.d.Suspensions) {
			return fmt.Sprintf("WI9: suspension %d ended by %q", end.Seq, end.Cause)
		}
		if r.endOf(end.Seq) != &r.d.SuspensionEnds[i] {
			return fmt.Sprintf("WI9: suspension %d ended twice", end.Seq)
		}
	}
	return ""
}

// changedEnds is WI9 and WI20 over time: an end that was seen stays as it is.
func (r *record) changedEnds(id base.UUID, ends map[string]string) []string {
	var found []string
	see := func(what string, now []byte) {
		key := fmt.Sprintf("%s since %s: %s", id, r.x.CreatedAt, what)
		if before, known := ends[key]; known && before != string(now) {
			found = append(found, fmt.Sprintf("WI9, WI20: %s was %s and is %s", key, before, now))
		}
		ends[key] = string(now)
	}
	for i := range r.d.SuspensionEnds {
		see(fmt.Sprintf("end of suspension %d", r.d.SuspensionEnds[i].Seq), r.d.SuspensionEnds[i].Encode())
	}
	for i := range r.d.WaitpointEnds {
		see("end of waitpoint "+r.d.WaitpointEnds[i].WaitpointID.String(), r.d.WaitpointEnds[i].Encode())
	}
	for i := range r.d.LinkEnds {
		see("end of link "+r.d.LinkEnds[i].LinkID.String(), r.d.LinkEnds[i].Encode())
	}
	return found
}

// signalsAt lists the signals of a suspension's waitpoints in order of acceptance.
func (r *record) signalsAt(s *core.Suspension) []core.Signal {
	var signals []core.Signal
	for _, signal := range r.d.Signals {
		if slices.ContainsFunc(s.Waitpoints, func(b core.BoundWaitpoint) bool { return b.ID == signal.WaitpointID }) {
			signals = append(signals, signal)
		}
	}
	slices.SortFunc(signals, func(a, b core.Signal) int { return a.Ordinal - b.Ordinal })
	return signals
}

func evidence(signals []core.Signal) []condition.Evidence {
	var all []condition.Evidence
	for _, s := range signals {
		all = append(all, condition.Evidence{WaitpointKey: s.WaitpointKey, SignalID: s.ID, Name: s.Name, SourceType: s.SourceType, SourceIdentity: s.SourceIdentity})
	}
	return all
}

// early is WI10: what was buffered met the condition exactly if nothing was suspended.
func early(r *record) string {
	for i := range r.d.Suspensions {
		s := &r.d.Suspensions[i]
		resume, err := condition.Decode(s.Condition)
		if err != nil {
			return err.Error()
		}
		buffered := slices.DeleteFunc(r.signalsAt(s), func(s core.Signal) bool { return s.Effect != condition.EffectBuffered })
		if met := resume.Evaluate(evidence(buffered)).Satisfied(); met != s.Early {
			return fmt.Sprintf("WI10: suspension %d passed at once: %v, its %d buffered signals meet %s: %v", s.Seq, s.Early, len(buffered), s.Condition, met)
		}
	}
	return ""
}

// chain is WI8: each stored effect is that of an evaluation from scratch, and the one that met the condition closed the wait.
func chain(r *record) string {
	for i := range r.d.Suspensions {
		s := &r.d.Suspensions[i]
		resume, err := condition.Decode(s.Condition)
		if err != nil {
			return err.Error()
		}
		signals := r.signalsAt(s)
		for n, signal := range signals {
			if signal.Effect == condition.EffectBuffered || signal.SourceType == condition.SourceEngine {
				continue
			}
			if effect := resume.Evaluate(evidence(signals[:n])).Add(evidence(signals[n : n+1])[0]); effect != signal.Effect {
				return fmt.Sprintf("WI8: signal %d has the effect %s, from scratch it is %s", signal.Ordinal, signal.Effect, effect)
			}
			end := r.endOf(s.Seq)
			if closer := end != nil && end.Cause == core.CauseSignal && end.CloserSignalID == signal.ID; closer != (signal.Effect == condition.EffectSatisfied) {
				return fmt.Sprintf("W62: signal %d has the effect %s, closed the wait: %v", signal.Ordinal, signal.Effect, closer)
			}
		}
	}
	return ""
}

// keptOnce is WI11 and WI12.
func keptOnce(r *record) string {
	seen := map[string]bool{}
	stored := 0
	for _, s := range r.d.Signals {
		names := []string{"id " + s.ID.String()}
		if s.IdempotencyKey != "" {
			names = append(names, fmt.Sprintf("key %v %s", s.SourceVerified, s.IdempotencyKey))
		}
		for _, name := range names {
			name = s.WaitpointID.String() + " " + name
			if seen[name] {
				return "WI11: two signals with the " + name
			}
			seen[name] = true
		}
		if s.SourceType != condition.SourceEngine {
			stored++
		}
	}
	if stored > r.x.Policy.MaxSignals {
		return fmt.Sprintf("WI12: %d signals of %d", stored, r.x.Policy.MaxSignals)
	}
	return ""
}

// ownSignals is WI13: what closed a suspension arrived at one of its waitpoints while it was open.
func ownSignals(r *record) string {
	for _, end := range r.d.SuspensionEnds {
		if end.CloserSignalID.IsZero() {
			continue
		}
		s := r.suspension(end.Seq)
		at := slices.IndexFunc(r.d.Signals, func(g core.Signal) bool {
			return g.ID == end.CloserSignalID && slices.ContainsFunc(s.Waitpoints, func(b core.BoundWaitpoint) bool { return b.ID == g.WaitpointID })
		})
		if at < 0 || r.d.Signals[at].AcceptedAt < s.At || r.d.Signals[at].AcceptedAt != end.At {
			return fmt.Sprintf("WI13: suspension %d was closed by a signal that is not its own", end.Seq)
		}
	}
	return ""
}

func (r *record) suspension(seq int) *core.Suspension {
	at := slices.IndexFunc(r.d.Suspensions, func(s core.Suspension) bool { return s.Seq == seq })
	return &r.d.Suspensions[at]
}

// ownTimers is WI14: a timeout acts on the suspension that it was armed for, at its moment, and on no other.
func ownTimers(r *record) string {
	for _, end := range r.d.SuspensionEnds {
		s := r.suspension(end.Seq)
		due := max(s.TimeoutAt, s.At)
		switch {
		case end.Cause == core.CauseTimeout && (s.TimeoutAt == 0 || end.At < due):
			return fmt.Sprintf("WI14: suspension %d timed out at %s, due at %s", end.Seq, end.At, s.TimeoutAt)
		case end.Resumed && end.Cause != core.CauseTimeout && !s.Early && s.TimeoutAt != 0 && end.At >= due && end.EscalatedAt == 0:
			return fmt.Sprintf("WI14, W77: suspension %d resumed by %s at %s, though it timed out at %s", end.Seq, end.Cause, end.At, s.TimeoutAt)
		case end.EscalatedAt != 0 && (s.TimeoutAt == 0 || end.EscalatedAt < due):
			return fmt.Sprintf("WI14: suspension %d was escalated at %s, due at %s", end.Seq, end.EscalatedAt, s.TimeoutAt)
		}
	}
	return ""
}
