package wire

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Time is a time (U6): written in UTC with milliseconds, read with any offset, truncated to milliseconds. The zero Time is
// absent; give such fields omitzero.
type Time struct{ time.Time }

// TimeOf converts t to UTC, truncated to milliseconds; the zero time stays zero.
func TimeOf(t time.Time) Time { return Time{jsonx.Instant(t)} }

// ParseTime parses RFC 3339 with any offset. Anything else, and years outside 1970..9999, is invalid_argument.
func ParseTime(text string) (Time, error) {
	t, err := jsonx.ParseTime(text)
	return Time{t}, err
}

// String is the JSON form; "" for the absent Time, and for one that cannot be written.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	text, _ := jsonx.FormatTime(t.Time)
	return text
}

// MarshalText writes the JSON form. Years outside 1970..9999 are invalid_argument.
func (t Time) MarshalText() ([]byte, error) {
	text, err := jsonx.FormatTime(t.Time)
	return []byte(text), err
}

// UnmarshalText reads what ParseTime reads.
func (t *Time) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTime(string(text))
	return err
}

// MarshalJSON writes the wire form as a string, null for the absent Time.
func (t Time) MarshalJSON() ([]byte, error) { return jsonx.AppendTime(nil, t.Time) }

// AppendJSON appends what MarshalJSON returns.
func (t *Time) AppendJSON(text []byte) ([]byte, error) { return jsonx.AppendTime(text, t.Time) }

// UnmarshalJSON reads a string as ParseTime does; null is the absent Time.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*t = Time{}
		return nil
	}
	if len(text) < 2 || text[0] != '"' {
		_, err := ParseTime("")
		return err
	}
	return t.UnmarshalText(text[1 : len(text)-1])
}
