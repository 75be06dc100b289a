package schedule

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
	"github.com/flowfabric/flowfabric/internal/core/schedule/zone"
)

// Bounds of the search for a moment (T5).
const (
	horizon    = 18_263 * 86_400 // fifty years, in seconds
	maxRemoved = 100_000         // moments in a row that except removes
	maxLooked  = 1_000_000       // moments of all entries in one walk, those that except removes among them
)

// Spec is a definition that was checked, with its entries ready for use. It is never changed and may be used by several goroutines at once.
type Spec struct {
	Definition Definition // with its defaults

	zone    *zone.Zone
	entries []entry
	except  []*cron.Pattern
	first   int64 // moments m with first <= m <= last count
	last    int64
}

// Next returns the least moment after a time (T5). It looks at most 50 years far.
func (s *Spec) Next(after base.Time) (base.Time, bool) {
	w := s.walk(floorSecond(after) + 1)
	return found(w.next())
}

// Prev returns the greatest moment before a time (T5). It looks at most 50 years far.
func (s *Spec) Prev(before base.Time) (base.Time, bool) {
	w := s.walkBack(ceilSecond(before) - 1)
	return found(w.next())
}

// Unbounded returns the same moments without regard to start_at and end_at, as a backfill needs them (T42).
func (s *Spec) Unbounded() *Spec {
	all := *s
	all.first, all.last = zone.First, zone.Last
	return &all
}

// Zone returns the time zone of the definition.
func (s *Spec) Zone() *zone.Zone { return s.zone }

// removed reports whether except removes a moment (T12).
func (s *Spec) removed(m int64) bool {
	if len(s.except) == 0 {
		return false
	}
	reading := s.zone.Reading(m)
	return slices.ContainsFunc(s.except, func(p *cron.Pattern) bool { return p.Matches(reading) })
}

// walk is the moments of a spec from a time on, in order.
type walk struct {
	spec *Spec
	at   []int64 // of each entry its next moment
	from int64   // all moments before it were passed
	effort
	small [4]int64 // room for at
}

// effort is what a walk took so far, so that neither exceptions nor many entries can make it take long.
type effort struct {
	looked int // moments of entries
	found  bool
}

// spent reports whether a walk ends because it looked at too many. It finds its first moment in any case: that search has bounds of its own (T5).
func (e *effort) spent() bool { return e.found && e.looked >= maxLooked }

func (s *Spec) walk(from int64) *walk {
	w := &walk{spec: s, from: max(from, s.first)}
	w.at = append(w.small[:0], make([]int64, len(s.entries))...)
	for i := range s.entries {
		w.at[i] = s.entries[i].next(s.zone, w.from, s.last)
	}
	w.from = from
	return w
}

// next returns the next moment; false if there is none within the bounds of T5, or the walk looked at too many.
func (w *walk) next() (int64, bool) {
	limit := saturated(w.from, horizon)
	for range maxRemoved {
		m := slices.Min(w.at)
		if m > limit || w.spent() {
			break
		}
		for i := range w.at {
			if w.at[i] == m {
				w.at[i] = w.spec.entries[i].next(w.spec.zone, m+1, w.spec.last)
				w.looked++
			}
		}
		if !w.spec.removed(m) {
			w.from, w.found = m+1, true
			return m, true
		}
	}
	return 0, false
}

// walkBack is the moments of a spec up to a time, in falling order.
type walkBack struct {
	spec *Spec
	at   []int64
	from int64
	effort
	small [4]int64
}

func (s *Spec) walkBack(from int64) *walkBack {
	w := &walkBack{spec: s, from: min(from, s.last)}
	w.at = append(w.small[:0], make([]int64, len(s.entries))...)
	for i := range s.entries {
		w.at[i] = s.entries[i].prev(s.zone, w.from, s.first)
	}
	w.from = from
	return w
}

func (w *walkBack) next() (int64, bool) {
	limit := w.from - horizon
	for range maxRemoved {
		m := slices.Max(w.at)
		if m < limit || m == noneBefore || w.spent() {
			break
		}
		for i := range w.at {
			if w.at[i] == m {
				w.at[i] = w.spec.entries[i].prev(w.spec.zone, m-1, w.spec.first)
				w.looked++
			}
		}
		if !w.spec.removed(m) {
			w.from, w.found = m-1, true
			return m, true
		}
	}
	return 0, false
}

// found converts a result of a walk.
func found(m int64, ok bool) (base.Time, bool) { return timeOf(m), ok }

// timeOf returns the time of a moment.
func timeOf(m int64) base.Time { return base.Time(m * base.Second) }

// floorSecond returns the last whole second up to a time, ceilSecond the first one from it on.
func floorSecond(t base.Time) int64 {
	s := int64(t) / base.Second
	if int64(t)%base.Second < 0 {
		s--
	}
	return s
}

func ceilSecond(t base.Time) int64 { return -floorSecond(-t) }

// saturated adds without wrapping.
func saturated(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return noneAfter - 1
}
