package jsonx

import (
	"encoding/json"
	"reflect"
	"time"
)

// Marshal writes JSON as encoding/json does, without the escapes that HTML would need: they would change the bytes of inline payloads
// (U9). Only instants and spans of time differ: a time.Time is written by AppendTime, a time.Duration as Milliseconds, and a field that
// holds spans has a name that ends in _ms, or Marshal panics. A pointer to a value is written with less effort than the value.
func Marshal(v any) ([]byte, error) {
	if m, ok := v.(json.Marshaler); ok && writesItself(v) {
		return m.MarshalJSON() // nothing is read again
	}
	value := reflect.ValueOf(v)
	if !value.IsValid() {
		return []byte("null"), nil
	}
	w := writingOf(value.Type())
	text, err := w.appendTo(make([]byte, 0, w.room()), value)
	if err != nil {
		return nil, err
	}
	w.took(len(text))
	return text, nil
}

// Appender is a type that adds what its MarshalJSON returns, compact JSON, to a text. MarshalJSON must be a method of the value.
type Appender interface {
	json.Marshaler
	AppendJSON(text []byte) ([]byte, error)
}

// Append adds what Marshal writes to a text.
func Append(text []byte, v any) ([]byte, error) {
	switch m := v.(type) {
	case nil:
		return append(text, "null"...), nil
	case Appender:
		if writesItself(v) {
			return m.AppendJSON(text)
		}
	case json.Marshaler:
		if writesItself(v) {
			own, err := m.MarshalJSON()
			return append(text, own...), err
		}
	}
	value := reflect.ValueOf(v)
	return writingOf(value.Type()).appendTo(text, value)
}

// writesItself reports whether the MarshalJSON of a value can be believed: the types of this module write compact JSON. A nil pointer
// is null, text of callers is looked at, and instants have a form of their own.
func writesItself(v any) bool {
	switch v.(type) {
	case json.RawMessage, *json.RawMessage, time.Time, *time.Time:
		return false
	}
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer {
		return writingOf(value.Type()).manner != asFields
	}
	return !value.IsNil() && writingOf(value.Type().Elem()).manner != asFields
}
