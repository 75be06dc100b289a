package schedule

import "github.com/flowfabric/flowfabric/internal/core/base"

// Upcoming is one moment of a preview (T43).
type Upcoming struct {
	ScheduledAt base.Time
	Local       string    // RFC 3339 in the zone of the definition
	DueAt       base.Time // 0: it depends on the id, which there is none of yet
	Shift       Shift
}

// Shift is how a change of the clock moved a moment.
type Shift string

// The values of Shift.
const (
	ShiftNone       Shift = ""
	ShiftGap        Shift = "gap"          // its reading was left out, and it is the instant of the change
	ShiftFirstOfTwo Shift = "first_of_two" // its reading comes twice, and it is the earlier one
)

// maxPreview and defaultPreview bound the number of moments of a preview.
const (
	maxPreview     = 1000
	defaultPreview = 10
)

// Preview lists the next moments of a definition from a time on. count 0 means 10; outside of 1..1000 it is invalid_schedule. id is that of the
// schedule, zero if there is none yet.
func (s *Spec) Preview(id base.UUID, from base.Time, count int) ([]Upcoming, error) {
	if err := checkPreview(from, &count); err != nil {
		return nil, err
	}
	return s.upcoming(Jitter(id, s.Definition.JitterMS), id.IsZero() && s.Definition.JitterMS > 0, from, count), nil
}

func checkPreview(from base.Time, count *int) error {
	setDefault(count, defaultPreview)
	if *count < 1 || *count > maxPreview {
		return base.Errorf(base.CodeInvalidSchedule, "must be in 1..%d", maxPreview).WithField("count")
	}
	return invalid("from", checkInstant(from, false))
}

func (s *Spec) upcoming(jitter base.Millis, unknown bool, from base.Time, count int) (all []Upcoming) {
	w := s.walk(ceilSecond(from))
	m, ok := w.next()
	for ok && len(all) < count {
		next, more := w.next()
		u := Upcoming{ScheduledAt: timeOf(m), Local: s.zone.Local(timeOf(m)), Shift: s.shift(m)}
		if !unknown {
			following := base.Time(0)
			if more {
				following = timeOf(next)
			}
			u.DueAt = dueBefore(u.ScheduledAt, following, jitter)
		}
		all, m, ok = append(all, u), next, more
	}
	return all
}

// Upcoming lists the next moments that will fire as things are: none of a schedule that is paused or ended, and no more than max_runs permits. from 0 means
// now; moments that are settled are not listed. The rest is as in Preview.
func (r *Schedule) Upcoming(spec *Spec, now, from base.Time, count int) ([]Upcoming, error) {
	setDefault(&from, now)
	if err := checkPreview(from, &count); err != nil {
		return nil, err
	}
	if r.State != Active {
		return nil, nil
	}
	if most := r.Definition.MaxRuns; most > 0 {
		count = int(min(int64(count), most-r.Runs))
	}
	return spec.upcoming(r.jitter(), false, max(from, r.ThroughAt+1), count), nil
}

// shift returns how a change of the clock moved a moment of a fixed entry.
func (s *Spec) shift(m int64) Shift {
	i := s.zone.At(m)
	period := s.zone.Period(i)
	for e := range s.entries {
		entry := &s.entries[e]
		if entry.pattern == nil || entry.pattern.Flowing() {
			continue
		}
		if period.Begin == m && entry.leftOutBy(s.zone, i) {
			return ShiftGap
		}
		if entry.pattern.Matches(m + period.Offset) {
			if _, again := shownAfter(s.zone, i+1, m+period.Offset); again {
				return ShiftFirstOfTwo
			}
		}
	}
	return ShiftNone
}
