package schedule

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// drawDefinition draws a definition with moments every few minutes or hours.
func drawDefinition(t *rapid.T) Definition {
	d := valid(rapid.SampledFrom([]string{"*/5 * * * *", "0 * * * *", "*/7 3-20 * * *", "30 2 * * *", "1,2,3 */2 * * *", "@every 11m/2m", "0,30 0-59/20 * * * *"}).Draw(t, "cron"))
	d.Timezone = rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"}).Draw(t, "zone")
	d.Overlap = rapid.SampledFrom([]Overlap{OverlapSkip, OverlapQueueLatest, OverlapQueue, OverlapCancel, OverlapAllow}).Draw(t, "overlap")
	d.CatchUp.Policy = rapid.SampledFrom([]CatchUpPolicy{CatchUpLatest, CatchUpAll, CatchUpNone}).Draw(t, "catch-up")
	d.CatchUp.WindowMS = rapid.SampledFrom([]base.Millis{base.Minute, base.Hour, 5 * base.Hour}).Draw(t, "window")
	d.CatchUp.Limit = rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "limit")
	d.JitterMS = rapid.SampledFrom([]base.Millis{0, 0, 90_000, 10 * base.Minute}).Draw(t, "jitter")
	d.MaxRuns = rapid.SampledFrom([]int64{0, 0, 20}).Draw(t, "max runs")
	if rapid.Bool().Draw(t, "except") {
		d.Except = []cron.Calendar{{Hour: "*/3"}}
	}
	return d
}

// life is a world whose moments are accounted for.
type life struct {
	*world
	t        *rapid.T
	allowing bool                   // the overlap is or was allow
	since    base.Time              // moments up to it were accounted for
	expected map[base.Time]bool     // moments that are to be in one row each
	covered  map[base.Time]int      // by rows of spans that are over
	seen     map[Key]Firing         // rows of spans that are over
	clock    []base.Time            // submits by the clock
	allowed  map[base.Time]struct{} // moments by the definition of their time
}

func (l *life) advance(by base.Millis) {
	active := l.rec.State == Active
	l.now = l.now.Add(by)
	if !active || l.now <= l.since {
		return
	}
	for _, m := range between(l.spec, l.since+1, l.now+1) {
		l.allowed[m] = struct{}{}
		if m > l.rec.ThroughAt {
			l.expected[m] = true
		}
	}
	l.since = l.now
}

// forget drops moments that a pause or an end passes over.
func (l *life) forget() {
	l.since = max(l.since, l.now)
	if l.rec.State == Active {
		return
	}
	maps.DeleteFunc(l.expected, func(m base.Time, _ bool) bool { return m > l.rec.ThroughAt })
}

// cover counts in how many rows each moment of the present definition is.
func (l *life) cover(spec *Spec) {
	for k, f := range l.history {
		if before, known := l.seen[k]; known && before.Last == f.Last || !f.Cause.byClock() {
			continue
		}
		first, last := k.Moment, k.Moment
		if f.Run {
			last = f.Last
			if before, known := l.seen[k]; known {
				first = before.Last + 1
			}
		}
		n := int64(0)
		for _, m := range between(spec, first, last+1) {
			l.covered[m]++
			n++
		}
		if f.Run && l.seen[k].Count+n != f.Count {
			l.t.Fatalf("the run %+v has %d moments", f, n)
		}
		l.seen[k] = f
	}
}

func (l *life) step() {
	spec := l.spec
	what := rapid.SampledFrom([]string{"on", "on", "on", "long", "back", "end", "end", "crash", "run", "pause", "resume", "change", "refuse"}).Draw(l.t, "step")
	submits := len(l.submits)
	switch what {
	case "on":
		l.advance(rapid.Int64Range(0, 40*base.Minute).Draw(l.t, "by"))
		l.settle()
	case "long":
		l.advance(rapid.Int64Range(0, 30*base.Hour).Draw(l.t, "by"))
		l.settle()
	case "back":
		l.now = l.now.Add(-rapid.Int64Range(0, base.Hour).Draw(l.t, "by"))
		l.settle()
	case "end":
		if len(l.rec.Open) > 0 {
			l.end(rapid.IntRange(0, len(l.rec.Open)-1).Draw(l.t, "which"), rapid.SampledFrom([]string{StatusSucceeded, StatusFailed, "deleted"}).Draw(l.t, "status"))
		}
		l.settle()
	case "crash":
		l.advance(10 * base.Minute)
		Settle(&l.rec, l.spec, l.facts()) // before it is written
		l.submits = l.submits[:submits]
	case "run":
		call := base.UUID{7}
		call[8] = byte(len(l.history))
		call[9] = byte(len(l.history) >> 8)
		p, _, _, _ := Fire(&l.rec, l.spec, l.facts(), &Request{Call: call, Cause: CauseManual}, false)
		if p.After.Revision > 0 {
			l.apply(p)
		}
	case "pause":
		p, _ := PauseSchedule(&l.rec, l.spec, l.facts(), "ana", "")
		l.apply(p)
	case "resume":
		p, _ := Resume(&l.rec, l.spec, l.facts(), "ana", "")
		l.apply(p)
	case "change":
		d := drawDefinition(l.t)
		l.change(func(old *Definition) { *old = d })
	case "refuse":
		retryable := rapid.Bool().Draw(l.t, "retryable")
		l.refuse = nil
		if rapid.Bool().Draw(l.t, "refused") {
			l.refuse = func(*Start) Verdict {
				return Verdict{Err: base.Errorf(base.CodeLaneNotAccepting, "no"), Retryable: retryable}
			}
		}
	}
	for _, s := range l.submits[submits:] {
		if s.Firing.Cause.byClock() {
			l.clock = append(l.clock, s.Firing.Moment)
		}
	}
	l.forget()
	l.cover(spec)
	l.allowing = l.allowing || l.rec.Definition.Overlap == OverlapAllow
	open := 0
	for _, f := range l.rec.Open {
		if f.Cause.byClock() {
			open++
		}
	}
	if open > 1 && !l.allowing {
		l.t.Fatalf("TI3: %d starts by the clock are open", open)
	}
}

func TestTI1_TI2_TI3_every_moment_is_settled_once_over_random_lives(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		w := newWorld(t, at(t, "2026-03-28 12:00").Add(rapid.Int64Range(0, base.Day).Draw(t, "begin")), drawDefinition(t))
		atOnce := rapid.Bool().Draw(t, "cancelled at once")
		w.cancelled = func(*Firing) bool { return atOnce }
		l := &life{
			world: w, t: t, since: w.now, expected: map[base.Time]bool{}, covered: map[base.Time]int{}, seen: map[Key]Firing{}, allowed: map[base.Time]struct{}{},
			allowing: w.rec.Definition.Overlap == OverlapAllow,
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			l.step()
		}
		sorted := slices.Sorted(slices.Values(l.clock))
		for i, m := range sorted {
			if _, is := l.allowed[m]; !is || i > 0 && sorted[i-1] == m {
				t.Fatalf("TI1: %s was submitted, twice or without being a moment", m)
			}
		}
		for m := range l.expected {
			if m <= l.rec.ThroughAt && l.covered[m] != 1 {
				t.Fatalf("TI1: %s is in %d rows: %q", m, l.covered[m], l.rows())
			}
		}
	})
}

// nominal returns the date of the reading that a moment of a daily entry stands for: its own, or the one that the change at it left out.
func nominal(spec *Spec, m base.Time, clock int64) string {
	second := floorSecond(m)
	i := spec.zone.At(second)
	reading := spec.zone.Reading(second)
	if first, end := leftOut(spec.zone, i); reading%86_400 != clock && spec.zone.Period(i).Begin == second {
		for day := first - first%86_400; day < end; day += 86_400 {
			if r := day + clock; first <= r && r < end {
				reading = r
			}
		}
	}
	return time.Unix(reading, 0).UTC().Format(time.DateOnly)
}

func TestTI4_a_fixed_entry_with_one_reading_a_day_has_one_moment_a_local_date(t *testing.T) {
	t.Parallel()
	locations := loadZones(t, func(name string) bool { return exploring() || slices.Contains(gateZones, name) })
	checked := 0
	for name, location := range locations {
		for line, clock := range map[string]int64{"30 2 * * *": 2*3600 + 30*60, "0 0 * * *": 0, "59 23 * * *": 23*3600 + 59*60} {
			spec := inZone(t, name, line)
			for _, change := range changes(location) {
				span := spec.zone.Period(spec.zone.At(change))
				if change < 4*86_400 || span.Offset-spec.zone.Offset(change-1) > maxGap {
					continue // a longer change leaves readings out for good
				}
				days := map[string]int{}
				for _, m := range between(spec, base.Time((change-3*86_400)*1000), base.Time((change+3*86_400)*1000)) {
					days[nominal(spec, m, clock)]++
				}
				for away := int64(-1); away <= 1; away++ {
					day := time.Unix(change+away*86_400, 0).In(location).Format(time.DateOnly)
					if checked++; days[day] != 1 {
						t.Errorf("%q in %s has %d moments on %s", line, name, days[day], day)
					}
				}
			}
		}
	}
	if checked < 10_000 {
		t.Errorf("only %d dates were looked at", checked)
	}
}

func TestT5_next_and_prev_are_inverse(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	for range 150 {
		entry := drawNaive(random, random.IntN(2) == 0)
		spec := inZone(t, gateZones[random.IntN(len(gateZones))], entry.text)
		after := base.Time(random.Int64N(4_000_000_000_000))
		for range 20 {
			next, ok := spec.Next(after)
			if !ok {
				break
			}
			if again, ok := spec.Next(next - 1); !ok || again != next {
				t.Fatalf("%q: %s and %s", entry.text, next, again)
			}
			if prev, ok := spec.Prev(next + 1); !ok || prev != next {
				t.Fatalf("%q: %s, and before its end %s", entry.text, next, prev)
			}
			if following, ok := spec.Next(next); ok {
				if prev, ok := spec.Prev(following); !ok || prev != next {
					t.Fatalf("%q: %s comes after %s, and %s before it", entry.text, following, next, prev)
				}
			}
			after = next
		}
	}
}
