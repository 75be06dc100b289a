package core

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// jsonObject writes one JSON object with fields in the order of the calls. Every command writes a recorded answer, so nothing here uses reflection
// or iterates over a map.
type jsonObject struct{ text []byte }

// newObject allocates room for the given number of bytes.
func newObject(room int) *jsonObject {
	return &jsonObject{text: append(make([]byte, 0, room), '{')}
}

// name begins a member: its value follows.
func (o *jsonObject) name(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, '"', ':')
}

// str writes a text.
func (o *jsonObject) str(name, value string) {
	o.name(name)
	o.text = appendQuoted(o.text, value)
}

// strIf omits the field if the value is empty.
func (o *jsonObject) strIf(name, value string) {
	if value != "" {
		o.str(name, value)
	}
}

// num writes a number.
func (o *jsonObject) num(name string, value int64) {
	o.name(name)
	o.text = strconv.AppendInt(o.text, value, 10)
}

// moment omits the field if t is absent.
func (o *jsonObject) moment(name string, t Time) {
	if t == 0 {
		return
	}
	o.name(name)
	o.text = append(o.text, '"')
	o.text = t.Std().AppendFormat(o.text, momentLayout)
	o.text = append(o.text, '"')
}

const momentLayout = "2006-01-02T15:04:05.000Z"

// uuid writes u without converting it to a string.
func (o *jsonObject) uuid(name string, u UUID) {
	var digits [36]byte
	u.encode(digits[:])
	o.name(name)
	o.text = append(o.text, '"')
	o.text = append(o.text, digits[:]...)
	o.text = append(o.text, '"')
}

// flag writes a truth value.
func (o *jsonObject) flag(name string, value bool) {
	o.name(name)
	o.text = strconv.AppendBool(o.text, value)
}

// flagIf omits the field if the value is false.
func (o *jsonObject) flagIf(name string, value bool) {
	if value {
		o.flag(name, true)
	}
}

// strs writes a list of texts.
func (o *jsonObject) strs(name string, values []string) {
	o.name(name)
	o.text = append(o.text, '[')
	for i, value := range values {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = appendQuoted(o.text, value)
	}
	o.text = append(o.text, ']')
}

// raw writes a value that is JSON already; it omits the field if there is none.
func (o *jsonObject) raw(name string, value json.RawMessage) {
	if len(value) > 0 {
		o.name(name)
		o.text = append(o.text, value...)
	}
}

// open begins a nested object, which shut ends.
func (o *jsonObject) open(name string) {
	o.name(name)
	o.text = append(o.text, '{')
}

// shut ends the object that open began.
func (o *jsonObject) shut() { o.text = append(o.text, '}') }

// done ends the object and returns it.
func (o *jsonObject) done() json.RawMessage {
	o.shut()
	return o.text
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes text as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func appendQuoted(to []byte, text string) []byte {
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
