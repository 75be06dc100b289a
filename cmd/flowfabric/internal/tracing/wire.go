package tracing

import (
	"errors"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message that grows field by field.
type message []byte

func (m *message) tag(field protowire.Number, kind protowire.Type) {
	*m = protowire.AppendTag(*m, field, kind)
}

func (m *message) number(field protowire.Number, n uint64) {
	m.tag(field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, n)
}

func (m *message) double(field protowire.Number, f float64) {
	m.tag(field, protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, math.Float64bits(f))
}

func (m *message) bytes(field protowire.Number, b []byte) {
	m.tag(field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, b)
}

// text writes a string. One that is not UTF-8 would make the collector refuse all that is sent with it.
func (m *message) text(field protowire.Number, s string) {
	m.tag(field, protowire.BytesType)
	*m = protowire.AppendString(*m, strings.ToValidUTF8(s, "\uFFFD"))
}

// some writes a string unless it is empty.
func (m *message) some(field protowire.Number, s string) {
	if s != "" {
		m.text(field, s)
	}
}

// count writes how many there are, unless there are none.
func (m *message) count(field protowire.Number, n int) {
	if n > 0 {
		m.number(field, min(uint64(n), math.MaxUint32))
	}
}

// bits writes a field of flags.
func (m *message) bits(field protowire.Number, flags uint32) {
	m.tag(field, protowire.Fixed32Type)
	*m = protowire.AppendFixed32(*m, flags)
}

// instant writes nanoseconds since 1970; what was before is 0.
func (m *message) instant(field protowire.Number, at time.Time) {
	m.tag(field, protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, uint64(max(0, at.UnixNano())))
}

// nested writes a message that fill writes to the end of this one. Its length stands before it and is known after it: there is room
// for one byte, and what needs more moves the message on.
func (m *message) nested(field protowire.Number, fill func()) {
	m.tag(field, protowire.BytesType)
	at := len(*m)
	*m = append(*m, 0)
	fill()
	size := uint64(len(*m) - at - 1)
	if more := protowire.SizeVarint(size) - 1; more > 0 {
		*m = append(*m, make([]byte, more)...)
		copy((*m)[at+1+more:], (*m)[at+1:])
	}
	protowire.AppendVarint((*m)[:at], size)
}

// verdict reads what a collector says about a request: a number in field 1 and a text in field 2. That is the form of its partial
// success (spans that it rejected) and of its errors (a code).
func verdict(b []byte) (number int64, text string, err error) {
	err = fields(b, func(field protowire.Number, n uint64, content []byte) {
		switch field {
		case 1:
			number = int64(n)
		case 2:
			text = string(content)
		}
	})
	return number, text, err
}

// partialSuccess reads an ExportTraceServiceResponse: how many spans were rejected, and why.
func partialSuccess(b []byte) (rejected int64, reason string, err error) {
	broken := fields(b, func(field protowire.Number, _ uint64, content []byte) {
		if field == 1 {
			rejected, reason, err = verdict(content)
		}
	})
	return rejected, reason, errors.Join(broken, err)
}

// fields calls see for each field of a message: with its number, or with its content.
func fields(b []byte, see func(field protowire.Number, n uint64, content []byte)) error {
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var n uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			content, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(field, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		see(field, n, content)
	}
	return nil
}
