package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/encoding/protowire"
)

func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, a := range all {
		m.attribute(field, a)
	}
}

func (m *message) set(field protowire.Number, all *attribute.Set) {
	for i := all.Iter(); i.Next(); {
		m.attribute(field, i.Attribute())
	}
}

func (m *message) attribute(field protowire.Number, a attribute.KeyValue) {
	m.nested(field, func() {
		m.text(1, string(a.Key))
		m.nested(2, func() { m.value(a.Value) })
	})
}

// value writes an AnyValue: which of its fields is there says of which kind it is, so zeros are written too.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		m.text(1, v.AsString())
	case attribute.BOOL:
		m.number(2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		m.number(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	case attribute.STRINGSLICE:
		list(m, v.AsStringSlice(), attribute.StringValue)
	case attribute.BOOLSLICE:
		list(m, v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		list(m, v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		list(m, v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.SLICE:
		list(m, v.AsSlice(), func(v attribute.Value) attribute.Value { return v })
	case attribute.MAP:
		m.nested(6, func() { m.attributes(1, v.AsMap()) })
	case attribute.BYTESLICE:
		m.bytes(7, v.AsByteSlice())
	}
}

// list writes an ArrayValue.
func list[T any](m *message, all []T, value func(T) attribute.Value) {
	m.nested(5, func() {
		for _, one := range all {
			m.nested(1, func() { m.value(value(one)) })
		}
	})
}
