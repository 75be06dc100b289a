package schedule

import (
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
	"github.com/flowfabric/flowfabric/internal/core/schedule/zone"
)

// Seconds since the Unix epoch that are no moment.
const (
	noneAfter  int64 = math.MaxInt64
	noneBefore int64 = math.MinInt64
)

// maxGap is the longest change of the clock, in seconds, after which readings that it left out are moments (T14).
const maxGap = 3 * 3600

// entry is one source of moments: a pattern in a zone, an interval, or a list of instants.
type entry struct {
	pattern  *cron.Pattern // nil: none
	interval cron.Interval // Every 0: none
	at       []int64       // sorted, without doubles
}

// next returns the least moment m with start <= m <= limit, noneAfter if there is none.
func (e *entry) next(z *zone.Zone, start, limit int64) int64 {
	m := noneAfter
	switch {
	case start > limit:
	case e.pattern != nil && e.pattern.Flowing():
		m = e.nextFlowing(z, start, limit)
	case e.pattern != nil:
		m = e.nextFixed(z, start, limit)
	case e.interval.Every > 0:
		m = e.interval.Next(start)
	default:
		if i, _ := slices.BinarySearch(e.at, start); i < len(e.at) {
			m = e.at[i]
		}
	}
	if m > limit {
		return noneAfter
	}
	return m
}

// prev returns the greatest moment m with limit <= m <= start, noneBefore if there is none.
func (e *entry) prev(z *zone.Zone, start, limit int64) int64 {
	m := noneBefore
	switch {
	case start < limit:
	case e.pattern != nil && e.pattern.Flowing():
		m = e.prevFlowing(z, start, limit)
	case e.pattern != nil:
		m = e.prevFixed(z, start, limit)
	case e.interval.Every > 0:
		m = e.interval.Prev(start)
	default:
		if i, found := slices.BinarySearch(e.at, start); found {
			m = start
		} else if i > 0 {
			m = e.at[i-1]
		}
	}
	if m < limit {
		return noneBefore
	}
	return m
}

// nextFlowing finds the next instant whose reading matches.
func (e *entry) nextFlowing(z *zone.Zone, start, limit int64) int64 {
	for i := z.At(start); i < z.Periods(); i++ {
		s := z.Period(i)
		if s.Begin > limit {
			break
		}
		if r, ok := e.pattern.Next(max(start, s.Begin)+s.Offset, min(s.End, limit+1)+s.Offset); ok {
			return r - s.Offset
		}
	}
	return noneAfter
}

func (e *entry) prevFlowing(z *zone.Zone, start, limit int64) int64 {
	for i := z.At(start); i >= 0; i-- {
		s := z.Period(i)
		if s.End <= limit {
			break
		}
		if r, ok := e.pattern.Prev(min(start, s.End-1)+s.Offset, max(s.Begin, limit)+s.Offset); ok {
			return r - s.Offset
		}
	}
	return noneBefore
}

// nextFixed finds the next instant that is the first one of its matching reading, or the change that left out such a reading.
func (e *entry) nextFixed(z *zone.Zone, start, limit int64) int64 {
	for i := z.At(start); i < z.Periods(); i++ {
		s := z.Period(i)
		if s.Begin > limit {
			break
		}
		if s.Begin >= start && e.leftOutBy(z, i) {
			return s.Begin
		}
		for r, end := max(start, s.Begin)+s.Offset, min(s.End, limit+1)+s.Offset; r < end; {
			found, ok := e.pattern.Next(r, end)
			if !ok {
				break
			}
			earlier, shown := shownBefore(z, i, found)
			if !shown {
				return found - s.Offset
			}
			r = earlier.End + earlier.Offset
		}
	}
	return noneAfter
}

func (e *entry) prevFixed(z *zone.Zone, start, limit int64) int64 {
	for i := z.At(start); i >= 0; i-- {
		s := z.Period(i)
		if s.End <= limit {
			break
		}
		for r, end := min(start, s.End-1)+s.Offset, max(s.Begin, limit)+s.Offset; r >= end; {
			found, ok := e.pattern.Prev(r, end)
			if !ok {
				break
			}
			earlier, shown := shownBefore(z, i, found)
			if !shown {
				return found - s.Offset
			}
			r = earlier.Begin + earlier.Offset - 1
		}
		if s.Begin >= limit && s.Begin <= start && e.leftOutBy(z, i) {
			return s.Begin
		}
	}
	return noneBefore
}

// apart is more than two offsets of a zone ever differ, in seconds: periods further away from an instant do not show its reading.
const apart = 2 * 86_400

// shownBefore finds an earlier period than period i in which the clocks showed the reading.
func shownBefore(z *zone.Zone, i int, reading int64) (zone.Period, bool) {
	begin := z.Period(i).Begin
	for j := i - 1; j >= 0; j-- {
		s := z.Period(j)
		if s.End < begin-apart {
			break
		}
		if s.Begin+s.Offset <= reading && reading < s.End+s.Offset {
			return s, true
		}
	}
	return zone.Period{}, false
}

// shownAfter finds period i or a later one in which the clocks show the reading.
func shownAfter(z *zone.Zone, i int, reading int64) (zone.Period, bool) {
	for ; i < z.Periods(); i++ {
		s := z.Period(i)
		if s.Begin+s.Offset > reading+apart {
			break
		}
		if s.Begin+s.Offset <= reading && reading < s.End+s.Offset {
			return s, true
		}
	}
	return zone.Period{}, false
}

// leftOut returns the readings first <= r < end that the change at the beginning of period i left out; none if it is too long.
func leftOut(z *zone.Zone, i int) (first, end int64) {
	if i == 0 {
		return 0, 0
	}
	s, before := z.Period(i), z.Period(i-1)
	if s.Offset-before.Offset > maxGap {
		return 0, 0
	}
	return s.Begin + before.Offset, s.Begin + s.Offset
}

// leftOutBy reports whether the change at the beginning of period i left out a matching reading that the clocks show at no other time.
func (e *entry) leftOutBy(z *zone.Zone, i int) bool {
	r, end := leftOut(z, i)
	for r < end {
		found, ok := e.pattern.Next(r, end)
		if !ok {
			return false
		}
		s, shown := shownBefore(z, i, found)
		if !shown {
			s, shown = shownAfter(z, i, found)
		}
		if !shown {
			return true
		}
		r = s.End + s.Offset
	}
	return false
}
