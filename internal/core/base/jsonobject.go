package base

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// JSONObject writes one JSON object with fields in the order of the calls. Every command writes a recorded answer, so nothing here uses reflection
// or iterates over a map.
type JSONObject struct{ Text []byte }

// NewObject allocates room for the given number of bytes.
func NewObject(room int) *JSONObject {
	return &JSONObject{Text: append(make([]byte, 0, room), '{')}
}

// Name begins a member: its value follows.
func (o *JSONObject) Name(name string) {
	if o.Text[len(o.Text)-1] != '{' {
		o.Text = append(o.Text, ',')
	}
	o.Text = append(o.Text, '"')
	o.Text = append(o.Text, name...)
	o.Text = append(o.Text, '"', ':')
}

// Str writes a text.
func (o *JSONObject) Str(name, value string) {
	o.Name(name)
	o.Text = AppendQuoted(o.Text, value)
}

// StrIf omits the field if the value is empty.
func (o *JSONObject) StrIf(name, value string) {
	if value != "" {
		o.Str(name, value)
	}
}

// Num writes a number.
func (o *JSONObject) Num(name string, value int64) {
	o.Name(name)
	o.Text = strconv.AppendInt(o.Text, value, 10)
}

// Moment omits the field if t is absent.
func (o *JSONObject) Moment(name string, t Time) {
	if t == 0 {
		return
	}
	o.Name(name)
	o.Text = append(o.Text, '"')
	o.Text = t.Std().AppendFormat(o.Text, momentLayout)
	o.Text = append(o.Text, '"')
}

const momentLayout = "2006-01-02T15:04:05.000Z"

// UUID writes u without converting it to a string.
func (o *JSONObject) UUID(name string, u UUID) {
	var digits [36]byte
	u.encode(digits[:])
	o.Name(name)
	o.Text = append(o.Text, '"')
	o.Text = append(o.Text, digits[:]...)
	o.Text = append(o.Text, '"')
}

// Flag writes a truth value.
func (o *JSONObject) Flag(name string, value bool) {
	o.Name(name)
	o.Text = strconv.AppendBool(o.Text, value)
}

// FlagIf omits the field if the value is false.
func (o *JSONObject) FlagIf(name string, value bool) {
	if value {
		o.Flag(name, true)
	}
}

// Strs writes a list of texts.
func (o *JSONObject) Strs(name string, values []string) {
	o.Name(name)
	o.Text = append(o.Text, '[')
	for i, value := range values {
		if i > 0 {
			o.Text = append(o.Text, ',')
		}
		o.Text = AppendQuoted(o.Text, value)
	}
	o.Text = append(o.Text, ']')
}

// Raw writes a value that is JSON already; it omits the field if there is none.
func (o *JSONObject) Raw(name string, value json.RawMessage) {
	if len(value) > 0 {
		o.Name(name)
		o.Text = append(o.Text, value...)
	}
}

// Open begins a nested object, which shut ends.
func (o *JSONObject) Open(name string) {
	o.Name(name)
	o.Text = append(o.Text, '{')
}

// Shut ends the object that open began.
func (o *JSONObject) Shut() { o.Text = append(o.Text, '}') }

// Done ends the object and returns it.
func (o *JSONObject) Done() json.RawMessage {
	o.Shut()
	return o.Text
}

const hexDigits = "0123456789abcdef"

// AppendQuoted writes text as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func AppendQuoted(to []byte, text string) []byte {
	to = append(to, '"')
	clean := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			to = append(to, text[clean:i]...)
			to = appendEscape(to, c)
			i++
			clean = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			to = append(to, text[clean:i]...)
			to = append(to, "\ufffd"...)
			clean = i + 1
		}
		i += size
	}
	to = append(to, text[clean:]...)
	return append(to, '"')
}

func appendEscape(to []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(to, '\\', c)
	case '\n':
		return append(to, '\\', 'n')
	case '\t':
		return append(to, '\\', 't')
	case '\r':
		return append(to, '\\', 'r')
	default:
		return append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}
