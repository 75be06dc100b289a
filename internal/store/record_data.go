package store

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// The data of events is JSON that we wrote: the same few shapes again and again, with other ids, moments and numbers in them.
// It is kept as its shape, a text that the commit shares, in which each value is a mark, followed by the values in short form.
// What comes back is the same text byte for byte; data that does not fit is kept as it is.

// Marks of values in a shape. JSON has no such bytes outside of escapes. Values are stored.
const (
	markUUID   byte = 1 // a text of 36 characters that is a UUID
	markMoment byte = 2 // a text that is a moment with three decimals in UTC
	markText   byte = 3 // any other text without escapes
	markNumber byte = 4 // an integer as we write them
	marks      byte = 5
)

const dataMoment = "2006-01-02T15:04:05.000Z"

// data codes the data of an event.
func (c *coder) data(v *json.RawMessage) {
	plain := !c.reading && !squeezable(*v)
	c.flag(&plain)
	switch {
	case plain:
		c.json(v)
	case c.reading:
		c.readData(v)
	default:
		c.writeData(*v)
	}
}

// squeezable tells whether a text can hold marks without doubt about what is one.
func squeezable(text []byte) bool {
	for _, b := range text {
		if b < marks {
			return false
		}
	}
	return len(text) > 0
}

// writeData writes the shape, then the values.
func (c *coder) writeData(text []byte) {
	var shapeRoom [256]byte
	var foundRoom [16]dataValue
	shape, found := takeApart(text, shapeRoom[:0], foundRoom[:0])
	c.writeShared(string(shape), placeShape)
	for _, v := range found {
		c.writeValue(v.mark, v.text)
	}
}

// dataValue is a value in a JSON text, without quotes.
type dataValue struct {
	mark byte
	text []byte
}

// takeApart splits a JSON text into its shape and its values.
func takeApart(text, shape []byte, found []dataValue) ([]byte, []dataValue) {
	from := 0
	for i := 0; i < len(text); {
		end, mark := valueAt(text, i)
		if mark != 0 {
			shape = append(append(shape, text[from:i]...), mark)
			v := dataValue{mark, text[i:end]}
			if mark != markNumber {
				v.text = text[i+1 : end-1]
			}
			found = append(found, v)
			from = end
		}
		i = end
	}
	return append(shape, text[from:]...), found
}

func (c *coder) writeValue(mark byte, text []byte) {
	switch mark {
	case markUUID:
		id, _ := core.ParseUUID(string(text))
		c.uuid(&id)
	case markMoment:
		at, _ := parseMoment(string(text))
		c.time(&at)
	case markText:
		c.writeShared(string(text), placeDataText)
	case markNumber:
		n, _ := strconv.ParseInt(string(text), 10, 64)
		c.int64(&n)
	}
}

// readData puts shape and values together.
func (c *coder) readData(v *json.RawMessage) {
	var shape string
	c.readShared(&shape)
	out := make([]byte, 0, 2*len(shape)+64)
	for i := 0; i < len(shape) && !c.bad; i++ {
		if shape[i] == 0 || shape[i] >= marks {
			out = append(out, shape[i])
			continue
		}
		out = c.readValue(shape[i], out)
	}
	*v = out
}

func (c *coder) readValue(mark byte, out []byte) []byte {
	switch mark {
	case markUUID:
		var id core.UUID
		c.uuid(&id)
		return append(append(append(out, '"'), id.String()...), '"')
	case markMoment:
		var at core.Time
		c.time(&at)
		return append(at.Std().AppendFormat(append(out, '"'), dataMoment), '"')
	case markText:
		var text string
		c.readShared(&text)
		return append(append(append(out, '"'), text...), '"')
	default:
		var n int64
		c.int64(&n)
		return strconv.AppendInt(out, n, 10)
	}
}

// valueAt looks at the token that begins at i: where it ends, and its mark; 0 for what belongs to the shape.
func valueAt(text []byte, i int) (end int, mark byte) {
	switch b := text[i]; {
	case b == '"':
		return textAt(text, i)
	case b == '-' || '0' <= b && b <= '9':
		return numberAt(text, i)
	default:
		return i + 1, 0
	}
}

func textAt(text []byte, i int) (end int, mark byte) {
	escaped := false
	for end = i + 1; end < len(text) && text[end] != '"'; end++ {
		if text[end] == '\\' {
			escaped = true
			end++
		}
	}
	if end >= len(text) {
		return len(text), 0
	}
	inner := text[i+1 : end]
	end++
	switch {
	case escaped || end < len(text) && text[end] == ':': // a name, or not worth it
		return end, 0
	case isCanonicalUUID(inner):
		return end, markUUID
	case isCanonicalMoment(inner):
		return end, markMoment
	default:
		return end, markText
	}
}

func isCanonicalUUID(text []byte) bool {
	if len(text) != 36 || text[8] != '-' {
		return false
	}
	_, ok := core.ParseUUID(string(text))
	return ok
}

func isCanonicalMoment(text []byte) bool {
	if len(text) != len(dataMoment) || text[10] != 'T' {
		return false
	}
	at, ok := parseMoment(string(text))
	return ok && at.Std().Format(dataMoment) == string(text)
}

func parseMoment(text string) (core.Time, bool) {
	t, err := time.Parse(dataMoment, text)
	at := core.TimeOf(t)
	return at, err == nil && at != 0
}

// numberAt takes integers of up to 18 digits in the form in which we write them.
func numberAt(text []byte, i int) (end int, mark byte) {
	end = i
	if text[end] == '-' {
		end++
	}
	digits := end
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	n := end - digits
	fraction := end < len(text) && (text[end] == '.' || text[end] == 'e' || text[end] == 'E' || text[end] == '+' || text[end] == '-')
	switch {
	case n == 0 || n > 18 || n > 1 && text[digits] == '0' || n == 1 && digits > i && text[digits] == '0':
		return max(end, i+1), 0
	case fraction:
		for end < len(text) && text[end] != ',' && text[end] != '}' && text[end] != ']' {
			end++
		}
		return end, 0
	default:
		return end, markNumber
	}
}
