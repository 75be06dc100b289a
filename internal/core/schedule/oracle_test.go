package schedule

import (
	"archive/zip"
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"
)

// The oracle of moments says once more what T6, T8 and T14 say, by looking at every minute or second with the calendar of the standard library.

// date is a reading in parts.
type date struct{ year, month, day, weekday, hour, minute, second, length int }

// dateOf splits what a clock shows.
func dateOf(reading int64) date {
	t := time.Unix(reading, 0).UTC()
	return date{
		t.Year(), int(t.Month()), t.Day(), int(t.Weekday()), t.Hour(), t.Minute(), t.Second(),
		time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day(),
	}
}

// weekdayOf is the weekday of another day of the same month.
func (d date) weekdayOf(day int) int { return ((d.weekday+day-d.day)%7 + 7) % 7 }

// naive is an entry beside its text: a predicate for each of the six fields.
type naive struct {
	text    string
	second  func(date) bool
	rest    [5]func(date) bool // minute, hour, day of month, month, day of week
	either  bool
	flowing bool
}

func (n *naive) matches(d date) bool {
	byMonth, byWeek := n.rest[2](d), n.rest[4](d)
	day := byMonth && byWeek || n.either && (byMonth || byWeek)
	return n.rest[0](d) && n.rest[1](d) && day && n.rest[3](d) && n.second(d)
}

// drawValues draws a field of plain items, most often a loose one. Without steps of *, if none is true.
func drawValues(r *rand.Rand, low, high, alias int, star bool, of func(date) int) (string, func(date) bool) {
	if star && r.IntN(2) == 0 {
		step := 1
		text := []string{"*", "?"}[r.IntN(2)]
		if r.IntN(3) == 0 {
			step = 1 + r.IntN(high-low)
			text += fmt.Sprintf("/%d", step)
		}
		return text, func(d date) bool { return (of(d)-low)%step == 0 || alias > 0 && of(d) == 0 && alias%step == 0 }
	}
	allowed := map[int]bool{}
	var items []string
	for range 1 + r.IntN(3) {
		a := low + r.IntN(high-low+1)
		b := a + r.IntN(high-a+1)
		step := 1 + r.IntN(high-low)
		switch r.IntN(4) {
		case 0:
			items, b, step = append(items, fmt.Sprint(a)), a, 1
		case 1:
			items, step = append(items, fmt.Sprintf("%d-%d", a, b)), 1
		case 2:
			items = append(items, fmt.Sprintf("%d-%d/%d", a, b, step))
		default:
			items, b = append(items, fmt.Sprintf("%d/%d", a, step)), high
		}
		for v := a; v <= b; v += step {
			allowed[v] = true
		}
	}
	return strings.Join(items, ","), func(d date) bool { return allowed[of(d)] || alias > 0 && of(d) == 0 && allowed[alias] }
}

// drawDay draws a day of the month, with its marks.
func drawDay(r *rand.Rand) (string, func(date) bool) {
	n := 1 + r.IntN(31)
	switch r.IntN(8) {
	case 0:
		return "L", func(d date) bool { return d.day == d.length }
	case 1:
		n = 1 + r.IntN(30)
		return fmt.Sprintf("l-%d", n), func(d date) bool { return d.day == d.length-n }
	case 2:
		return fmt.Sprintf("%dW", n), func(d date) bool { return n <= d.length && d.day == nearestWorkday(d, n) }
	case 3:
		return "LW", func(d date) bool { return d.day == nearestWorkday(d, d.length) }
	default:
		return drawValues(r, 1, 31, 0, true, func(d date) int { return d.day })
	}
}

func nearestWorkday(d date, day int) int {
	for _, away := range []int{0, -1, 1, -2, 2} {
		near := day + away
		if w := d.weekdayOf(near); near >= 1 && near <= d.length && w >= 1 && w <= 5 {
			return near
		}
	}
	panic("a month has weekdays")
}

func drawWeekday(r *rand.Rand) (string, func(date) bool) {
	day := r.IntN(8)
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("%dL", day), func(d date) bool { return d.weekday == day%7 && d.day+7 > d.length }
	case 1:
		n := 1 + r.IntN(5)
		return fmt.Sprintf("%d#%d", day, n), func(d date) bool { return d.weekday == day%7 && (d.day-1)/7+1 == n }
	default:
		return drawValues(r, 0, 7, 7, true, func(d date) int { return d.weekday })
	}
}

// drawNaive draws an entry whose day and month are often free, so that many spans have moments.
func drawNaive(r *rand.Rand, withSeconds bool) *naive {
	n := &naive{second: func(d date) bool { return d.second == 0 }}
	var words []string
	if withSeconds {
		text, second := drawValues(r, 0, 59, 0, true, func(d date) int { return d.second })
		words, n.second = append(words, text), second
	}
	draw := []func() (string, func(date) bool){
		func() (string, func(date) bool) {
			return drawValues(r, 0, 59, 0, true, func(d date) int { return d.minute })
		},
		func() (string, func(date) bool) {
			return drawValues(r, 0, 23, 0, true, func(d date) int { return d.hour })
		},
		func() (string, func(date) bool) { return drawDay(r) },
		func() (string, func(date) bool) {
			return drawValues(r, 1, 12, 0, true, func(d date) int { return d.month })
		},
		func() (string, func(date) bool) { return drawWeekday(r) },
	}
	parts := make([]string, len(draw))
	for i := range draw {
		if i >= 2 && r.IntN(3) > 0 {
			parts[i], n.rest[i] = "*", func(date) bool { return true }
			continue
		}
		parts[i], n.rest[i] = draw[i]()
	}
	star := func(text string) bool { return text[0] == '*' || text[0] == '?' }
	n.either = !star(parts[2]) && !star(parts[4])
	n.flowing = star(parts[0]) || star(parts[1])
	n.text = strings.Join(append(words, parts...), " ")
	return n
}

// clocks are the clocks of a zone over a span, step by step.
type clocks struct {
	location *time.Location
	step     int64
	from     int64
	offsets  []int64
	dates    []date
	known    []int64 // offsets within two days of the span
}

func newClocks(location *time.Location, from, to, step int64) *clocks {
	c := &clocks{location: location, step: step, from: from}
	for t := from; t < to; t += step {
		o := c.offset(t)
		c.offsets, c.dates = append(c.offsets, o), append(c.dates, dateOf(t+o))
	}
	seen := map[int64]bool{}
	for t := from - 2*86_400; t < to+2*86_400; t += 900 {
		if o := c.offset(t); !seen[o] {
			seen[o] = true
			c.known = append(c.known, o)
		}
	}
	return c
}

func (c *clocks) offset(t int64) int64 {
	_, offset := time.Unix(t, 0).In(c.location).Zone()
	return int64(offset)
}

// shown returns the instants at which the clocks show a reading.
func (c *clocks) shown(reading int64) (all []int64) {
	for _, o := range c.known {
		if c.offset(reading-o) == o {
			all = append(all, reading-o)
		}
	}
	return all
}

// moments walks over every step of the span.
func (c *clocks) moments(n *naive) (all []int64) {
	for i, o := range c.offsets {
		t := c.from + int64(i)*c.step
		if c.fires(n, i, t, o) {
			all = append(all, t)
		}
	}
	return all
}

func (c *clocks) fires(n *naive, i int, t, offset int64) bool {
	if n.matches(c.dates[i]) {
		if n.flowing || len(c.known) == 1 {
			return true
		}
		first := true
		for _, other := range c.shown(t + offset) {
			first = first && other >= t
		}
		if first {
			return true
		}
	}
	if n.flowing || i == 0 || offset <= c.offsets[i-1] || offset-c.offsets[i-1] > 3*3600 {
		return false
	}
	for r := t + c.offsets[i-1]; r < t+offset; r += c.step {
		if n.matches(dateOf(r)) && len(c.shown(r)) == 0 {
			return true
		}
	}
	return false
}

// loadZones reads zones of the archive with the standard library.
func loadZones(t *testing.T, wanted func(name string) bool) map[string]*time.Location {
	t.Helper()
	files, err := zip.OpenReader("zone/zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	all := map[string]*time.Location{}
	for _, file := range files.File {
		if strings.HasSuffix(file.Name, "/") || !wanted(file.Name) {
			continue
		}
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		location, err := time.LoadLocationFromTZData(file.Name, data)
		if err != nil {
			t.Fatal(err)
		}
		all[file.Name] = location
	}
	return all
}

// changes returns the changes of the clocks of 1970..2037.
func changes(location *time.Location) (all []int64) {
	end := time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)
	_, before := time.Unix(0, 0).In(location).Zone()
	for at := time.Unix(0, 0).In(location); at.Before(end); at = at.Add(24 * time.Hour) {
		_, offset := at.Zone()
		if offset == before {
			continue
		}
		day := at.Add(-24 * time.Hour).Unix()
		change := day + int64(sort.Search(86_400, func(n int) bool {
			_, o := time.Unix(day+int64(n), 0).In(location).Zone()
			return o == offset
		}))
		all, before = append(all, change), offset
	}
	return all
}
