package jsonx

import (
	"reflect"
	"strings"
	"time"
)

// Instants and spans of time have a form of their own (U6), so that public types can hold time.Time and time.Duration: an instant is a
// string in UTC with milliseconds, a span a whole number of milliseconds in a field whose name ends in _ms.

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// timeLayout is RFC 3339 in UTC with milliseconds (U6).
const timeLayout = "2006-01-02T15:04:05.000Z"

// Instant returns t in UTC, cut to milliseconds, as it comes back from JSON; the zero time stays zero.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// ParseTime reads RFC 3339 with any offset. Anything else, and years outside 1970..9999, is invalid_argument. The result is in UTC, cut to
// milliseconds.
func ParseTime(text string) (time.Time, error) {
	if t, ok := readForm(text); ok {
		return t, nil
	}
	return readRFC3339(text)
}

func readRFC3339(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !isRFC3339(text) {
		return time.Time{}, notATime(text)
	}
	read := Instant(t)
	if !writable(read) {
		return time.Time{}, outside()
	}
	return read, nil
}

// readForm reads the form of timeLayout, which most instants have, several times as quickly as the standard library. Not ok: the text
// is of another form, or none.
func readForm(text string) (t time.Time, ok bool) {
	if len(text) != len(timeLayout) || !spelledAs(text, "0000-00-00T00:00:00.000Z") {
		return time.Time{}, false
	}
	pair := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day := pair(0)*100+pair(2), pair(5), pair(8)
	hour, minute, second, ms := pair(11), pair(14), pair(17), pair(20)*10+int(text[22]-'0')
	if year < 1970 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, ms*int(time.Millisecond), time.UTC)
	return t, t.Day() == day // else the month has no such day
}

// isRFC3339 reports whether the spelling is right, whatever the numbers are. The standard library alone would also take single digits,
// commas and offsets of a week.
func isRFC3339(text string) bool {
	const date, offset = "0000-00-00T00:00:00", "+00:00"
	if len(text) <= len(date) || !spelledAs(text[:len(date)], date) {
		return false
	}
	rest := text[len(date):]
	if rest[0] == '.' {
		digits := 1
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		if digits == 1 {
			return false
		}
		rest = rest[digits:]
	}
	if rest == "Z" {
		return true
	}
	return len(rest) == len(offset) && (rest[0] == '+' || rest[0] == '-') && spelledAs(rest[1:], offset[1:]) && rest[1:3] < "24" && rest[4:] < "60"
}

// spelledAs reports whether a text of the same length has digits where the pattern has zeros, and otherwise the same.
func spelledAs(text, pattern string) bool {
	for i := range len(pattern) {
		if c := text[i]; pattern[i] == '0' && (c < '0' || c > '9') || pattern[i] != '0' && c != pattern[i] {
			return false
		}
	}
	return true
}

func notATime(text string) *Error {
	hint := "write it as 2026-01-31T09:30:00Z, or with another offset"
	if strings.Contains(text, " ") {
		hint = "write the + of an offset as %2B in a query, and T between date and time"
	}
	return Invalid("this is not an RFC 3339 instant", hint)
}

func outside() *Error { return Invalid("the instant is outside the years 1970 to 9999", "") }

// writable reports whether ParseTime would read it again.
func writable(t time.Time) bool {
	return t.UnixMilli() >= 0 && t.UTC().Year() <= 9999
}

// FormatTime returns the text that ParseTime reads. Years outside 1970..9999 are invalid_argument.
func FormatTime(t time.Time) (string, error) {
	if !writable(t) {
		return "", outside()
	}
	return string(appendForm(make([]byte, 0, len(timeLayout)), t)), nil
}

// AppendTime adds an instant as a JSON string, the zero time as null. Years outside 1970..9999 are invalid_argument.
func AppendTime(text []byte, t time.Time) ([]byte, error) {
	if t.IsZero() {
		return append(text, "null"...), nil
	}
	if !writable(t) {
		return nil, outside()
	}
	return append(appendForm(append(text, '"'), t), '"'), nil
}

// appendForm writes the form of timeLayout, for which the standard library takes several times as long.
func appendForm(text []byte, t time.Time) []byte {
	utc := t.UTC()
	year, month, day := utc.Date()
	hour, minute, second := utc.Clock()
	text = appendPair(appendPair(text, year/100), year%100)
	text = appendPair(append(text, '-'), int(month))
	text = appendPair(append(text, '-'), day)
	text = appendPair(append(text, 'T'), hour)
	text = appendPair(append(text, ':'), minute)
	text = appendPair(append(text, ':'), second)
	ms := utc.Nanosecond() / int(time.Millisecond)
	return append(appendPair(append(text, '.'), ms/10), byte('0'+ms%10), 'Z')
}

// appendPair writes two digits.
func appendPair(text []byte, n int) []byte { return append(text, byte('0'+n/10), byte('0'+n%10)) }

// Milliseconds returns a span of time as it is written: rounded up, so that a short wait never becomes none.
func Milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// Duration returns so many milliseconds as a span of time; the longest one if there are too many.
func Duration(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(min(ms, most), -most)) * time.Millisecond
}

// checkUnit panics if a field holds spans of time and neither its name nor its tag says their unit.
func checkUnit(owner reflect.Type, f reflect.StructField, name string) {
	t := f.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t == durationType && !strings.HasSuffix(name, "_ms") && f.Tag.Get("unit") != "ms" {
		panic("jsonx: " + owner.String() + "." + f.Name + " is written in milliseconds and is called " + name + ", without _ms at the end")
	}
}
