package base

import (
	"fmt"
	"time"
)

// Time is a time of the store's clock in whole milliseconds since the Unix epoch (L5). Zero means absent.
type Time int64

// Millis is a duration in whole milliseconds.
type Millis = int64

// Frequently used durations, in milliseconds.
const (
	Second Millis = 1000
	Minute        = 60 * Second
	Hour          = 60 * Minute
	Day           = 24 * Hour
	Year          = 365 * Day
)

// TimeOf converts t, truncated to milliseconds. The zero time.Time becomes the absent Time.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std converts t to a time.Time in UTC. The absent Time becomes the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// IsZero reports whether t is absent.
func (t Time) IsZero() bool { return t == 0 }

// Add returns the moment d milliseconds after t, saturating instead of wrapping.
func (t Time) Add(d Millis) Time {
	sum := t + Time(d)
	if d > 0 && sum < t {
		return Time(1<<63 - 1)
	}
	return sum
}

// Sub returns the milliseconds from u to t.
func (t Time) Sub(u Time) Millis { return int64(t - u) }

// Reached reports whether t <= now. An absent time is never reached.
func (t Time) Reached(now Time) bool { return t != 0 && t <= now }

// Later returns the later of two moments.
func Later(a, b Time) Time { return max(a, b) }

// Earliest returns the earlier of two moments, either of which may be absent.
func Earliest(a, b Time) Time {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}

// String formats t as RFC 3339 in UTC with three decimals; the absent time as "-".
func (t Time) String() string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("2006-01-02T15:04:05.000Z")
}

// MarshalJSON writes t as RFC 3339 in UTC with three decimals, the absent time as null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads the output of MarshalJSON and any other RFC 3339 text.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*t = 0
		return nil
	}
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
	if year := parsed.UTC().Year(); err != nil || year < 0 || year > 9999 { // the offset may move it to a year that cannot be written and read again
		return fmt.Errorf("not an RFC 3339 moment: %s", text)
	}
	*t = TimeOf(parsed)
	return nil
}
