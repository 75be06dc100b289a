package schedule

import "slices"

// wait puts a moment into the queue.
func (s *settling) wait(f Firing) Outcome {
	if f.Cause.byClock() {
		s.Run = nil
	}
	f.Outcome, f.At = Queued, s.facts.Now
	s.insert(f)
	s.enqueue(f)
	s.latest(f)
	return Queued
}

// waitAlone is wait for a moment in whose favour the one that waits already is skipped. Moments that are retried do not wait for open work.
func (s *settling) waitAlone(f Firing) Outcome {
	s.supersede()
	if len(s.Queue) >= MaxQueue {
		return s.skip(f, ReasonQueueFull)
	}
	return s.wait(f)
}

// supersede skips what waits, in favour of a later moment.
func (s *settling) supersede() {
	s.dropQueue(ReasonSuperseded, func(f *Firing) bool { return f.Outcome == Queued })
}

// enqueue adds a firing in order.
func (s *settling) enqueue(f Firing) {
	i, _ := slices.BinarySearchFunc(s.Queue, f, func(a, b Firing) int { return a.Compare(b.Key) })
	s.Queue = slices.Insert(s.Queue, i, f)
}

// dropQueue skips some of what waits.
func (s *settling) dropQueue(reason string, some func(*Firing) bool) {
	s.Queue = slices.DeleteFunc(s.Queue, func(f Firing) bool {
		if !some(&f) {
			return false
		}
		f.Outcome, f.Reason, f.NotBefore, f.At = Skipped, reason, 0, s.facts.Now
		s.Counts.Skipped++
		s.write(f)
		s.skipped(&f)
		return true
	})
}

// startQueue starts what waits, in order, as far as open work, time and the size of a transaction permit.
func (s *settling) startQueue() {
	waiting := s.Queue
	s.Queue = nil
	for _, f := range waiting {
		s.startWaiting(f)
	}
}

// startWaiting starts a firing that waits, puts it back or gives it up.
func (s *settling) startWaiting(f Firing) {
	now := s.facts.Now
	switch {
	case f.Outcome == Retrying && s.State != Paused && now.Sub(f.DueAt) > s.Definition.CatchUp.WindowMS:
		s.refuse(&f)
		s.write(f)
	case f.Cause.byClock() && s.runsUsedUp():
		s.Queue = append(s.Queue, f)
		s.dropQueue(ReasonRunsUsedUp, func(other *Firing) bool { return other.Key == f.Key })
	case s.State == Paused || f.NotBefore > now || s.blocked(&f):
		s.Queue = append(s.Queue, f)
	case s.full():
		s.Queue, s.more = append(s.Queue, f), true
	default:
		outcome := s.submit(&f)
		s.write(f)
		if outcome == Retrying {
			s.Queue = append(s.Queue, f)
		}
	}
}

// blocked reports whether open work is in the way of a firing that waits.
func (s *settling) blocked(f *Firing) bool {
	overlap := s.Definition.Overlap
	if f.Overlap != "" {
		overlap = f.Overlap
	}
	if overlap == OverlapAllow {
		return len(s.Open) >= MaxOpen
	}
	return len(s.Open) > 0
}
