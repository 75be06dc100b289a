package cron

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Interval is moments at equal distances: Anchor + k x Every for every integer k (T11). The zero Interval is none.
type Interval struct {
	Every  int64 // seconds
	Anchor int64 // seconds since the Unix epoch
}

// The bounds of an interval, in seconds.
const (
	MinEvery = 1
	MaxEvery = 10 * base.Year / base.Second
)

// Next returns the least moment of the interval that is at least start.
func (v Interval) Next(start int64) int64 {
	_, into := floorDiv(start-v.Anchor, v.Every)
	if into == 0 {
		return start
	}
	return start - into + v.Every
}

// Prev returns the greatest moment of the interval that is at most start.
func (v Interval) Prev(start int64) int64 {
	_, into := floorDiv(start-v.Anchor, v.Every)
	return start - into
}

// parseEvery reads what follows @every: D or D/P.
func parseEvery(text string, place int) (Interval, error) {
	period, phase, phased := strings.Cut(text, "/")
	every, err := parseDuration(period, place)
	if err != nil {
		return Interval{}, err
	}
	if every < MinEvery || every > MaxEvery {
		return Interval{}, fault(place, "an interval must be of one second to ten years")
	}
	if !phased {
		return Interval{Every: every}, nil
	}
	place += len(period) + 1
	anchor, err := parseDuration(phase, place)
	if err != nil {
		return Interval{}, err
	}
	if anchor >= every {
		return Interval{}, fault(place, "the part after / must be shorter than the interval")
	}
	return Interval{Every: every, Anchor: anchor}, nil
}

// durationUnits are the units of a duration in the order in which they are written, and their seconds.
var durationUnits = []struct {
	letter  byte
	seconds int64
}{{'d', 86_400}, {'h', 3600}, {'m', 60}, {'s', 1}}

// parseDuration reads texts such as 90s, 1h30m and 2d, in seconds.
func parseDuration(text string, place int) (int64, error) {
	total, next, at := int64(0), 0, 0
	for at < len(text) {
		begin := at
		for at < len(text) && text[at] >= '0' && text[at] <= '9' {
			at++
		}
		n, err := strconv.ParseInt(text[begin:at], 10, 64)
		if err != nil || at-begin > 9 {
			return 0, fault(place+begin, "%q is not a number of up to nine digits", base.CutText(text[begin:at], 20))
		}
		for next < len(durationUnits) && (at == len(text) || text[at]|0x20 != durationUnits[next].letter) {
			next++
		}
		if next == len(durationUnits) {
			return 0, fault(place+at, "a number must be followed by d, h, m or s, each at most once and in this order")
		}
		total += n * durationUnits[next].seconds
		next, at = next+1, at+1
	}
	if text == "" {
		return 0, fault(place, "a duration is missing").WithHint("write it like 90s, 6h, 1h30m or 2d")
	}
	return total, nil
}

// appendDuration writes what parseDuration reads.
func appendDuration(to []byte, seconds int64) []byte {
	if seconds == 0 {
		return append(to, "0s"...)
	}
	for _, u := range durationUnits {
		if n := seconds / u.seconds; n > 0 {
			to = append(strconv.AppendInt(to, n, 10), u.letter)
			seconds -= n * u.seconds
		}
	}
	return to
}

func (v Interval) append(to []byte) []byte {
	to = appendDuration(append(to, "@every "...), v.Every)
	if v.Anchor != 0 {
		to = appendDuration(append(to, '/'), v.Anchor)
	}
	return to
}
