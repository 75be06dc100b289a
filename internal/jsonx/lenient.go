package jsonx

import (
	"encoding/json"
	"reflect"
)

// DecodeLenient reads the JSON of an answer into what a pointer points to. Unknown fields are ignored (U4), no field is required, and
// neither Checkers nor the number of elements are asked for. Its error is nil, *Error or Errors.
func DecodeLenient(data []byte, into any) error {
	d := &Decoder{scanner: newScanner(data)}
	d.lenient = true
	v := reflect.ValueOf(into).Elem()
	d.value(shapeOf(v.Type()), v)
	if d.peek(); d.at < len(data) {
		d.unexpected("the end")
	}
	if d.broken != nil {
		return d.broken
	}
	return d.found.OrNil()
}

// anything reads a value of any type as the standard library does.
func (d *Decoder) anything(v reflect.Value) {
	text := d.skip(maxDepth)
	if d.broken == nil && json.Unmarshal(text, v.Addr().Interface()) != nil {
		d.Refuse(Invalid("the value cannot be read", ""))
	}
}
