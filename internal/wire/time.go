package wire

import (
	"strings"
	"time"
)

// timeLayout is RFC 3339 in UTC with milliseconds (U6).
const timeLayout = "2006-01-02T15:04:05.000Z"

// Time is an instant (U6): written in UTC with milliseconds, read with any offset, cut to milliseconds. The zero Time is absent;
// give such fields omitzero.
type Time struct{ time.Time }

// TimeOf takes t over in UTC, cut to milliseconds; the zero time stays zero.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{time.UnixMilli(t.UnixMilli()).UTC()}
}

// ParseTime reads RFC 3339 with any offset. Anything else, and years outside 1970..9999, is invalid_argument.
func ParseTime(text string) (Time, error) {
	if t, ok := readForm(text); ok {
		return t, nil
	}
	return readRFC3339(text)
}

func readRFC3339(text string) (Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !isRFC3339(text) {
		return Time{}, notATime(text)
	}
	read := TimeOf(t)
	if !read.writable() {
		return Time{}, invalid("the instant is outside the years 1970 to 9999", "")
	}
	return read, nil
}

// readForm reads the form of timeLayout, which most instants have, several times as quickly as the standard library. Not ok: the text
// is of another form, or none.
func readForm(text string) (t Time, ok bool) {
	if len(text) != len(timeLayout) || !spelledAs(text, "0000-00-00T00:00:00.000Z") {
		return Time{}, false
	}
	pair := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day := pair(0)*100+pair(2), pair(5), pair(8)
	hour, minute, second, ms := pair(11), pair(14), pair(17), pair(20)*10+int(text[22]-'0')
	if year < 1970 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return Time{}, false
	}
	t = Time{time.Date(year, time.Month(month), day, hour, minute, second, ms*int(time.Millisecond), time.UTC)}
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
	return invalid("this is not an RFC 3339 instant", hint)
}

// writable reports whether ParseTime would read it again.
func (t Time) writable() bool {
	return t.UnixMilli() >= 0 && t.UTC().Year() <= 9999
}

// String is the wire form; "" of the absent Time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// MarshalText writes the wire form. Years outside 1970..9999 are invalid_argument.
func (t Time) MarshalText() ([]byte, error) {
	if !t.writable() {
		return nil, invalid("the instant is outside the years 1970 to 9999", "")
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what ParseTime reads.
func (t *Time) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTime(string(text))
	return err
}

// MarshalJSON writes the wire form as a string, null for the absent Time.
func (t Time) MarshalJSON() ([]byte, error) { return t.appendJSON(nil) }

func (t *Time) appendJSON(text []byte) ([]byte, error) {
	if t.IsZero() {
		return append(text, "null"...), nil
	}
	if !t.writable() {
		_, err := t.MarshalText()
		return nil, err
	}
	return append(t.appendForm(append(text, '"')), '"'), nil
}

// appendForm writes the form of timeLayout, for which the standard library takes several times as long.
func (t *Time) appendForm(text []byte) []byte {
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

// UnmarshalJSON reads a string as ParseTime does; null is the absent Time.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*t = Time{}
		return nil
	}
	if len(text) < 2 || text[0] != '"' {
		return notATime("")
	}
	return t.UnmarshalText(text[1 : len(text)-1])
}
