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

// isRFC3339 tells whether the spelling is right, whatever the numbers are. The standard library alone would also take single digits,
// commas and offsets of a week.
func isRFC3339(text string) bool {
	const date, offset = "0000-00-00T00:00:00", "+00:00"
	if len(text) <= len(date) || !spelledAs(text[:len(date)], date) {
		return false
	}
	rest := text[len(date):]
	if rest[0] == '.' {
		fraction := rest[1:]
		rest = strings.TrimLeft(fraction, "0123456789")
		if len(rest) == len(fraction) {
			return false
		}
	}
	if rest == "Z" {
		return true
	}
	return len(rest) == len(offset) && (rest[0] == '+' || rest[0] == '-') && spelledAs(rest[1:], offset[1:]) && rest[1:3] < "24" && rest[4:] < "60"
}

// spelledAs tells whether a text of the same length has digits where the pattern has zeros, and otherwise the same.
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

// writable tells whether ParseTime would read it again.
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
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	if !t.writable() {
		_, err := t.MarshalText()
		return nil, err
	}
	text := append(make([]byte, 0, len(timeLayout)+2), '"')
	return append(t.UTC().AppendFormat(text, timeLayout), '"'), nil
}

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
