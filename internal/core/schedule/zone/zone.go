package zone

import (
	"math"
	"sort"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The instants that schedules know: the years 1970 to 2199.
const (
	First int64 = 0
	Last  int64 = 7_258_118_399
)

// margin is how far beyond First and Last the changes of a zone are known: more than any two offsets differ.
const margin = 4 * 86_400

// far bounds the first and the last period of a zone.
const far = math.MaxInt64 / 4

// Zone is a time zone: periods of instants with one offset each. It is never changed.
type Zone struct {
	name    string
	begins  []int64 // of each period; that of the first is -far
	offsets []int32 // of each period, in seconds; neighbours differ
}

// Period is a range of instants, Begin <= t < End, during which the clocks of a zone are Offset seconds ahead of UTC.
type Period struct {
	Begin, End, Offset int64
}

// of finds the periods of a location.
func of(name string, location *time.Location) *Zone {
	z := &Zone{name: name}
	at := time.Unix(First-margin, 0).In(location)
	for begin := int64(-far); ; begin = at.Unix() {
		_, offset := at.Zone()
		if n := len(z.offsets); n == 0 || z.offsets[n-1] != int32(offset) {
			z.begins, z.offsets = append(z.begins, begin), append(z.offsets, int32(offset))
		}
		_, end := at.ZoneBounds()
		if end.IsZero() || end.Unix() > Last+margin {
			return z
		}
		if !end.After(at) {
			// In the last day of a leap year the standard library takes the year for over. No clock changes in it; a test looks at each.
			end = at.Add(24 * time.Hour)
		}
		at = end
	}
}

// Name returns the name under which the zone was found.
func (z *Zone) Name() string { return z.name }

// Periods returns the number of periods.
func (z *Zone) Periods() int { return len(z.begins) }

// Period returns a period by its number, from 0.
func (z *Zone) Period(i int) Period {
	s := Period{Begin: z.begins[i], End: far, Offset: int64(z.offsets[i])}
	if i+1 < len(z.begins) {
		s.End = z.begins[i+1]
	}
	return s
}

// At returns the number of the period of an instant.
func (z *Zone) At(instant int64) int {
	return sort.Search(len(z.begins), func(i int) bool { return z.begins[i] > instant }) - 1
}

// Offset returns the seconds that the clocks are ahead of UTC at an instant.
func (z *Zone) Offset(instant int64) int64 { return int64(z.offsets[z.At(instant)]) }

// Reading returns what the clocks show at an instant.
func (z *Zone) Reading(instant int64) int64 { return instant + z.Offset(instant) }

// Local returns an instant as RFC 3339 with the offset of the zone, which that form rounds to minutes.
func (z *Zone) Local(at base.Time) string {
	seconds := floor(at)
	return time.Unix(seconds, 0).In(time.FixedZone("", int(z.Offset(seconds)))).Format(time.RFC3339)
}

// Date returns the local date of an instant, such as 2026-03-29.
func (z *Zone) Date(at base.Time) string {
	return time.Unix(z.Reading(floor(at)), 0).UTC().Format(time.DateOnly)
}

// floor returns the whole seconds of a time.
func floor(at base.Time) int64 { return time.UnixMilli(int64(at)).Unix() }
