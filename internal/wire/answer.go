package wire

import (
	"encoding/json"
	"reflect"
)

// DecodeAnswer reads an answer into a pointer to a type of the table. It takes what Unmarshal takes, in one pass: unknown fields are
// ignored (U4), and nothing is asked of which fields stand together.
func DecodeAnswer(data []byte, into any) error {
	d := &decoder{scanner: newScanner(data)}
	d.lenient = true
	v := reflect.ValueOf(into).Elem()
	d.value(shapeOf(v.Type()), v)
	if d.peek(); d.at < len(data) {
		d.unexpected("the end")
	}
	if d.broken != nil {
		return d.broken
	}
	return d.found.orNil()
}

// anything reads a value of any type as the standard library does.
func (d *decoder) anything(v reflect.Value) {
	text := d.skip(maxDepth)
	if d.broken == nil && json.Unmarshal(text, v.Addr().Interface()) != nil {
		d.refuse(invalid("the value cannot be read", ""))
	}
}
