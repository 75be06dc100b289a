package schedule

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Request is a firing that somebody asks for: a run by hand (T41) or one moment of a backfill (T42).
type Request struct {
	Moment  base.Time // whole seconds of 1970..2199; 0: the present second
	Call    base.UUID // makes it a firing of its own; zero: the moment itself, as in a backfill that does not rerun
	Cause   Cause     // CauseManual or CauseBackfill
	Overlap Overlap   // "": that of the schedule
	By      string
}

// Fire settles and then decides about one firing that was asked for, paused or not. ThroughAt, Runs and State are not changed by it. ok is false if the moment
// has a row already, fired, or waits: then nothing more is done. If the submit is refused, err is that refusal: the
// caller rolls back what Submit and Cancel did, and settles instead (W2). A moment out of bounds is invalid_schedule.
func Fire(r *Schedule, spec *Spec, facts *Facts, q *Request, fired bool) (p Plan, f Firing, ok bool, err error) {
	moment := q.Moment
	if moment == 0 {
		moment = timeOf(floorSecond(facts.Now))
	}
	if why := checkInstant(moment, true); why != "" {
		return Plan{}, Firing{}, false, invalid("scheduled_at", why)
	}
	s := begin(r, spec, facts)
	s.settle()
	f = Firing{Key: Key{Moment: moment, Call: q.Call}, DueAt: facts.Now, Cause: q.Cause, Overlap: q.Overlap, By: q.By}
	if fired || s.knows(f.Key) {
		return s.plan(), f, false, nil
	}
	submit := s.facts.Submit
	asked := *facts
	asked.Submit = func(start *Start) Verdict {
		v := submit(start)
		if start.Firing.Key == f.Key {
			err, v.Retryable = v.Err, false // somebody waits for the answer
		}
		return v
	}
	s.facts = &asked
	overlap := q.Overlap
	if overlap == "" {
		overlap = s.Definition.Overlap
	}
	s.judge(f, overlap)
	if err != nil {
		return Plan{}, Firing{}, false, err
	}
	f = s.rows[s.place[f.Key]]
	return s.plan(), f, true, nil
}

// knows reports whether a firing was decided in this transaction, is open or waits.
func (s *settling) knows(k Key) bool {
	has := func(f Firing) bool { return f.Key == k }
	_, written := s.place[k]
	return written || slices.ContainsFunc(s.Open, has) || slices.ContainsFunc(s.Queue, has)
}

// Backfill is the moments of a range that a backfill submits (T42): those of the present definition, whatever its bounds say.
type Backfill struct {
	spec     *Spec
	from, to base.Time
	reverse  bool
}

// NewBackfill checks a range: to before from is invalid_schedule, more than 10,000 moments are backfill_too_large with the count, which is exact up to 100,000
// unless exceptions remove most of the moments.
func NewBackfill(spec *Spec, from, to base.Time, reverse bool) (*Backfill, error) {
	for _, bound := range []struct {
		field string
		at    base.Time
	}{{"from", from}, {"to", to}} {
		if why := checkInstant(bound.at, false); why != "" {
			return nil, invalid(bound.field, why)
		}
	}
	if to < from {
		return nil, invalid("to", "must not be before from")
	}
	b := &Backfill{spec: spec.Unbounded(), from: from, to: to, reverse: reverse}
	if n := b.spec.count(from, to, maxCounted); n > maxBackfilled {
		e := base.Errorf(base.CodeBackfillTooLarge, "the range has %d moments, at most %d are allowed", n, maxBackfilled).With("count", n).WithField("to")
		if n > maxCounted {
			e = base.Errorf(base.CodeBackfillTooLarge, "the range has more than %d moments, at most %d are allowed", maxCounted, maxBackfilled).
				With("count", maxCounted).With("at_least", true).WithField("to")
		}
		return nil, e.WithHint("choose a shorter range, and backfill in parts")
	}
	return b, nil
}

// After returns up to n moments that come after one in the order of the backfill; zero: from its beginning. A job that was stopped goes on with the last moment it
// did.
func (b *Backfill) After(done base.Time, n int) (all []base.Time) {
	if !b.reverse {
		from := b.from
		if done != 0 {
			from = max(from, done+1)
		}
		for w, end := b.spec.walk(ceilSecond(from)), ceilSecond(b.to); len(all) < n; {
			m, ok := w.next()
			if !ok || m >= end {
				break
			}
			all = append(all, timeOf(m))
		}
		return all
	}
	before := b.to
	if done != 0 {
		before = min(before, done)
	}
	for w, begin := b.spec.walkBack(ceilSecond(before)-1), ceilSecond(b.from); len(all) < n; {
		m, ok := w.next()
		if !ok || m < begin {
			break
		}
		all = append(all, timeOf(m))
	}
	return all
}

// DryRun is what a backfill would do.
type DryRun struct {
	Count       int
	First, Last []base.Time // up to 20 each, in the order of the backfill
	Submitted   int         // how many were submitted before
}

// shownOfDryRun is how many moments a dry run shows at each end.
const shownOfDryRun = 20

// DryRun counts the moments; submitted reports whether one was submitted before.
func (b *Backfill) DryRun(submitted func(base.Time) bool) DryRun {
	all := b.After(0, maxBackfilled)
	d := DryRun{Count: len(all), First: all[:min(len(all), shownOfDryRun)], Last: all[max(0, len(all)-shownOfDryRun):]}
	for _, m := range all {
		if submitted(m) {
			d.Submitted++
		}
	}
	return d
}
