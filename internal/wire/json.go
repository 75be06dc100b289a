package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Marshal writes JSON without the escapes that HTML would need: they would change the bytes of inline payloads (U9).
func Marshal(v any) ([]byte, error) {
	if m, ok := v.(json.Marshaler); ok && writesItself(v) {
		return m.MarshalJSON() // the encoder would read it all again
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// writesItself tells whether the MarshalJSON of a value can be believed: the types of this module write compact JSON. A nil pointer is
// the encoder's to write, and so is text of others.
func writesItself(v any) bool {
	if _, foreign := v.(json.RawMessage); foreign {
		return false
	}
	value := reflect.ValueOf(v)
	return value.Kind() != reflect.Pointer || !value.IsNil()
}

// Unmarshal reads the JSON of an answer. Unknown fields are ignored (U4).
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into) }
