package schedule

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestT14_the_table_of_changes_of_the_clock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		line, zone, from, to string // a span in UTC
		want                 []string
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", []string{"2026-03-29T01:00:00"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 12:00", []string{"2026-10-25T00:30:00"}},
		{"0,15,30,45 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", []string{"2026-03-29T01:00:00"}},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", []string{"2026-03-29T01:00:00"}},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", nil},
		{"*/30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 12:00", []string{"2026-10-25T00:00:00", "2026-10-25T00:30:00", "2026-10-25T01:00:00", "2026-10-25T01:30:00"}},
		{"0 * * * *", "America/New_York", "2026-11-01 04:30", "2026-11-01 06:30", []string{"2026-11-01T05:00:00", "2026-11-01T06:00:00"}},
		{"0 0 * * *", "America/Santiago", "2026-09-05 12:00", "2026-09-06 12:00", []string{"2026-09-06T04:00:00"}},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-04 12:00", []string{"2026-10-03T15:30:00"}},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "2026-04-05 12:00", []string{"2026-04-04T14:45:00"}},
		{"0 9 * * *", "Pacific/Apia", "2011-12-29 19:30", "2011-12-30 18:30", nil},
	} {
		s := inZone(t, row.zone, row.line)
		got := texts(between(s, at(t, row.from), at(t, row.to)))
		if !slices.Equal(got, row.want) {
			t.Errorf("%s in %s: %v, want %v", row.line, row.zone, got, row.want)
		}
		var back []string
		for m, ok := s.Prev(at(t, row.to)); ok && m >= at(t, row.from); m, ok = s.Prev(m) {
			back = append(back, texts([]base.Time{m})...)
		}
		slices.Reverse(back)
		if !slices.Equal(back, row.want) {
			t.Errorf("%s in %s backwards: %v, want %v", row.line, row.zone, back, row.want)
		}
	}
}

// gateZones are the zones that the suite walks over: those with the strangest clocks, and some of every continent.
var gateZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul", "Europe/Chisinau", "Europe/Samara",
	"Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Juba", "Africa/Monrovia", "Africa/Tripoli", "Africa/Windhoek",
	"America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Santiago", "America/Havana", "America/Caracas", "America/Asuncion",
	"America/Argentina/San_Luis", "America/Anchorage", "America/Metlakatla", "America/Danmarkshavn", "America/Nuuk", "America/Port-au-Prince", "America/Ciudad_Juarez",
	"Antarctica/Troll", "Antarctica/Casey", "Antarctica/Macquarie", "Antarctica/Vostok", "Asia/Amman", "Asia/Gaza", "Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran",
	"Asia/Dhaka", "Asia/Manila", "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kwajalein", "Pacific/Norfolk", "Pacific/Kiritimati",
}

// exploring reports whether the search for new faults runs the test.
func exploring() bool { return os.Getenv(testseed.Variable) == "random" }

func TestTC1_moments_are_those_of_a_walk_over_every_minute_around_every_change(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	locations := loadZones(t, func(name string) bool { return exploring() || slices.Contains(gateZones, name) })
	if len(locations) < 40 {
		t.Fatalf("%d zones", len(locations))
	}
	entries, each := 300, 2
	if exploring() {
		entries = 10_000
	}
	pool := make([]*naive, entries)
	for i := range pool {
		pool[i] = drawNaive(random, false)
	}
	walked, moments := 0, 0
	for _, name := range slices.Sorted(maps.Keys(locations)) {
		spans := append(changes(locations[name]), random.Int64N(1_800_000_000), random.Int64N(7_000_000_000))
		for _, change := range spans {
			from := change - change%60 - 5*3600
			step := int64(60)
			if _, offset := time.Unix(max(from, 0), 0).In(locations[name]).Zone(); offset%60 != 0 {
				step = 1 // as in Monrovia until 1972
			}
			c := newClocks(locations[name], max(from, 0), from+10*3600, step)
			for range each {
				moments += compare(t, c, name, pool[random.IntN(len(pool))])
				walked++
			}
		}
	}
	t.Logf("%d walks over %d moments in %d zones", walked, moments, len(locations))
	if moments < walked {
		t.Errorf("only %d moments in %d walks", moments, walked)
	}
}

func TestTC1_moments_are_those_of_a_walk_over_every_second(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	locations := loadZones(t, func(name string) bool { return slices.Contains(gateZones, name) })
	names := slices.Sorted(maps.Keys(locations))
	walks, moments := 60, 0
	if exploring() {
		walks = 2000
	}
	for range walks {
		name := names[random.IntN(len(names))]
		change := random.Int64N(2_000_000_000)
		if all := changes(locations[name]); len(all) > 0 {
			change = all[random.IntN(len(all))]
		}
		from := max(change-3600, 0)
		moments += compare(t, newClocks(locations[name], from, from+2*3600, 1), name, drawNaive(random, true))
	}
	if moments < walks {
		t.Errorf("only %d moments in %d walks", moments, walks)
	}
}

// compare holds the moments of a span, forwards and backwards, against the walk.
func compare(t *testing.T, c *clocks, zone string, n *naive) int {
	t.Helper()
	s := inZone(t, zone, n.text)
	want := c.moments(n)
	end := c.from + int64(len(c.offsets))*c.step
	var forwards, backwards []int64
	w := s.walk(c.from + 1) // what a change at the beginning left out is before the span
	for m, ok := w.next(); ok && m < end; m, ok = w.next() {
		forwards = append(forwards, m)
	}
	b := s.walkBack(end - 1)
	for m, ok := b.next(); ok && m > c.from; m, ok = b.next() {
		backwards = append(backwards, m)
	}
	if len(want) > 0 && want[0] == c.from {
		want = want[1:]
	}
	slices.Reverse(backwards)
	if !slices.Equal(forwards, want) || !slices.Equal(backwards, want) {
		t.Fatalf("%q in %s from %s: forwards\n%v\nbackwards\n%v\nwant\n%v", n.text, zone, time.Unix(c.from, 0).UTC(), shownAs(forwards), shownAs(backwards), shownAs(want))
	}
	return len(want)
}

func shownAs(all []int64) (texts []string) {
	for _, m := range all[:min(len(all), 40)] {
		texts = append(texts, time.Unix(m, 0).UTC().Format("01-02T15:04:05"))
	}
	return texts
}

func TestTC1_moments_are_those_of_another_library_where_it_has_the_same_rules(t *testing.T) {
	t.Parallel()
	random := testseed.New(t)
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	entries := 400
	if exploring() {
		entries = 10_000
	}
	field := func(low, high int, star bool) string {
		text, _ := drawValues(random, low, high, 0, star, func(date) int { return low })
		return text
	}
	compared := 0
	for range entries {
		day, week := "*", "*"
		if random.IntN(2) == 0 {
			day = field(1, 31, false)
		}
		if random.IntN(2) == 0 {
			a := random.IntN(7)
			week = fmt.Sprintf("%d-%d", a, a+random.IntN(7-a))
		}
		text := fmt.Sprintf("%s %s %s %s %s %s", field(0, 59, true), field(0, 59, true), field(0, 23, true), day, field(1, 12, true), week)
		other, err := parser.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		s := must[*Spec](t)(Parse(valid(text)))
		after := time.Unix(random.Int64N(4_000_000_000), 0).UTC()
		for range 10 {
			want := other.Next(after)
			if want.IsZero() {
				break // it looks five years far
			}
			got, ok := s.Next(base.Time(after.UnixMilli()))
			if !ok || got != base.Time(want.UnixMilli()) {
				t.Fatalf("%q after %s: %s, want %s", text, after, got, want)
			}
			after, compared = want, compared+1
		}
	}
	if compared < 5*entries {
		t.Errorf("only %d moments were compared", compared)
	}
}
