package schedule

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// judgeDue decides about the moments that are due, in order (T22, T25).
func (s *settling) judgeDue() {
	last, ok := s.lastDue()
	if !ok {
		return
	}
	fires := s.chosen(last)
	end := last + 1
	if len(fires) > 0 {
		end = fires[0].Moment
	}
	s.miss(end, ReasonCatchUp+string(s.Definition.CatchUp.Policy))
	for i := range fires {
		if s.runsUsedUp() || s.State != Active {
			return
		}
		if s.full() {
			s.more = true
			return
		}
		s.ThroughAt = fires[i].Moment
		if _, fired := slices.BinarySearch(s.fired, fires[i].Moment); !fired {
			s.judge(fires[i], s.Definition.Overlap)
		}
	}
	s.ThroughAt = max(s.ThroughAt, last)
}

// lastDue returns the greatest moment that is due and not settled.
func (s *settling) lastDue() (base.Time, bool) {
	now := s.facts.Now
	last, ok := s.spec.Prev(now + 1)
	if ok && s.jitter > 0 && s.spec.due(last, s.jitter) > now {
		last, ok = s.spec.Prev(last) // a moment is due before the next one
	}
	return last, ok && last > s.ThroughAt
}

// chosen returns the moments up to last that fire, in order: those on time, and late ones as the policy states.
func (s *settling) chosen(last base.Time) (fires []Firing) {
	now, catchUp := s.facts.Now, &s.Definition.CatchUp
	next, _ := s.spec.Next(last)
	late := 0
	for w := s.spec.walkBack(floorSecond(last)); ; {
		at, ok := w.next()
		m := timeOf(at)
		if !ok || m <= s.ThroughAt {
			break
		}
		f := Firing{Key: Key{Moment: m}, DueAt: dueBefore(m, next, s.jitter), Cause: CauseTimer}
		next = m
		if now.Sub(f.DueAt) > onTime {
			f.Cause = CauseCatchUp
			fits := catchUp.Policy == CatchUpAll && late < catchUp.Limit || catchUp.Policy == CatchUpLatest && len(fires) == 0
			if !fits || now.Sub(f.DueAt) > catchUp.WindowMS {
				break
			}
			late++
		}
		fires = append(fires, f)
	}
	slices.Reverse(fires)
	return fires
}

// miss settles the moments before end: they are missed.
func (s *settling) miss(end base.Time, reason string) {
	first, last, count, more := base.Time(0), base.Time(0), int64(0), false
	limit := ceilSecond(end)
	for w := s.spec.walk(floorSecond(s.ThroughAt) + 1); ; {
		at, ok := w.next()
		if at >= limit || !ok && !w.spent() {
			break
		}
		if count == maxCounted || !ok {
			more = count > 0
			last, _ = s.spec.Prev(end)
			break
		}
		m := timeOf(at)
		if _, fired := slices.BinarySearch(s.fired, m); fired {
			continue
		}
		if count == 0 {
			first = m
		}
		last, count = m, count+1
	}
	if count == 0 {
		return
	}
	s.ThroughAt = last
	s.Counts.Missed += count
	s.extend(Firing{Key: Key{Moment: first}, Outcome: Missed, Reason: reason, Last: last, Count: count, AtLeast: more})
}

// extend settles a run of moments that did not start: as part of the row before it if that ended the same way, else in a row of its own.
func (s *settling) extend(f Firing) {
	f.Key, f.DueAt, f.At, f.Cause = Key{Moment: f.Moment, Run: true}, f.Moment, s.facts.Now, CauseTimer
	s.events = append(s.events, Event{
		Type: map[Outcome]string{Missed: EventMissed, Skipped: EventSkipped}[f.Outcome], First: f.Moment, Last: f.Last, Count: f.Count, AtLeast: f.AtLeast,
		Cause: f.Cause, Reason: f.Reason, Target: f.Blocker,
	})
	if run := s.Run; run != nil && run.Outcome == f.Outcome && run.Reason == f.Reason && run.Blocker == f.Blocker {
		run.At, run.Last, run.Count, run.AtLeast = f.At, f.Last, run.Count+f.Count, run.AtLeast || f.AtLeast
		s.write(*run)
	} else {
		s.Run = &f
		s.insert(f)
	}
	s.latest(*s.Run)
}

func (s *settling) latest(f Firing) { s.Latest = &f }

// judge decides about one moment (T27).
func (s *settling) judge(f Firing, overlap Overlap) Outcome {
	open := len(s.Open)
	switch {
	case overlap == OverlapAllow && open >= MaxOpen:
		return s.skip(f, ReasonTooManyOpen)
	case overlap == OverlapAllow || open == 0:
		return s.start(f)
	case overlap == OverlapQueueLatest:
		return s.waitAlone(f)
	case overlap == OverlapQueue:
		if len(s.Queue) >= MaxQueue {
			return s.skip(f, ReasonQueueFull)
		}
		return s.wait(f)
	case overlap == OverlapCancel:
		if s.cancelOpen(); len(s.Open) == 0 {
			s.supersede()
			return s.start(f)
		}
		return s.waitAlone(f)
	default:
		return s.skip(f, ReasonOverlap)
	}
}

// skip skips a moment. Moments of the clock become part of a run.
func (s *settling) skip(f Firing, reason string) Outcome {
	var blocker base.ID
	if len(s.Open) > 0 {
		blocker = s.Open[0].Target
	}
	s.Counts.Skipped++
	if f.Cause.byClock() {
		s.extend(Firing{Key: f.Key, Outcome: Skipped, Reason: reason, Blocker: blocker, Last: f.Moment, Count: 1})
		return Skipped
	}
	f.Outcome, f.Reason, f.Blocker, f.At = Skipped, reason, blocker, s.facts.Now
	s.insert(f)
	s.latest(f)
	s.skipped(&f)
	return Skipped
}

// skipped adds the event of a single moment that was skipped.
func (s *settling) skipped(f *Firing) {
	s.events = append(s.events, Event{Type: EventSkipped, First: f.Moment, Last: f.Moment, Count: 1, Cause: f.Cause, Reason: f.Reason, Target: f.Blocker})
}

// start submits the work of a moment that has no row yet.
func (s *settling) start(f Firing) Outcome {
	if f.Cause.byClock() {
		s.Run = nil
	}
	outcome := s.submit(&f)
	s.insert(f)
	if outcome == Retrying {
		s.enqueue(f)
	}
	return outcome
}

// submit submits the work of a firing and notes the answer in it (T29). A firing that is to be retried is not put into the queue here.
func (s *settling) submit(f *Firing) Outcome {
	s.submits++
	previous, _ := s.spec.Prev(f.Moment)
	v := s.facts.Submit(&Start{Firing: *f, Run: s.Counts.Submitted + 1, PreviousAt: previous})
	f.At = s.facts.Now
	if v.Err == nil {
		f.Outcome, f.Target, f.Reason, f.NotBefore = Submitted, v.Target, "", 0
		s.Open = append(s.Open, *f)
		s.Counts.Submitted++
		if f.Cause.byClock() {
			s.Runs++
		}
		late := max(0, s.facts.Now.Sub(f.DueAt))
		s.events = append(s.events, Event{Type: EventFired, ScheduledAt: f.Moment, Cause: f.Cause, Target: f.Target, LateMS: late})
		s.latest(*f)
		return Submitted
	}
	f.Reason = string(base.CodeOf(v.Err))
	f.Tries++
	waits := f.Outcome == Retrying || f.Outcome == Queued // it has its place in the queue
	if v.Retryable && s.facts.Now.Sub(f.DueAt) <= s.Definition.CatchUp.WindowMS && (waits || len(s.Queue) < MaxQueue) {
		f.Outcome, f.NotBefore = Retrying, s.facts.Now.Add(backoff(f.Tries))
		s.latest(*f)
		return Retrying
	}
	s.refuse(f)
	return Refused
}

// refuse gives a moment up.
func (s *settling) refuse(f *Firing) {
	f.Outcome, f.NotBefore, f.At = Refused, 0, s.facts.Now
	s.Counts.Refused++
	s.events = append(s.events, Event{Type: EventRefused, First: f.Moment, Last: f.Moment, Count: 1, Cause: f.Cause, Reason: f.Reason})
	s.latest(*f)
}

// cancelOpen cancels the work that is open; what ended at once is closed.
func (s *settling) cancelOpen() {
	if s.facts.Cancel == nil {
		return
	}
	for _, f := range slices.Clone(s.Open) {
		if status, ended := s.facts.Cancel(&f); ended {
			s.close(Ending{Key: f.Key, Status: status, At: s.facts.Now})
		}
	}
}
