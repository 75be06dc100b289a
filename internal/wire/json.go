package wire

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// DecodeJSON reads the JSON of a request, strictly: jsonx.Decode.
func DecodeJSON(data []byte, into any) error { return jsonx.Decode(data, into) }

// DecodeAnswer reads the JSON of an answer. It accepts what Unmarshal accepts, in one pass: jsonx.DecodeLenient.
func DecodeAnswer(data []byte, into any) error { return jsonx.DecodeLenient(data, into) }

// Marshal writes JSON: jsonx.Marshal.
func Marshal(v any) ([]byte, error) { return jsonx.Marshal(v) }

// Append appends what Marshal writes to a text: jsonx.Append.
func Append(text []byte, v any) ([]byte, error) { return jsonx.Append(text, v) }

// Appender is a type that can append its JSON to a text.
type Appender = jsonx.Appender

// Unmarshal reads the JSON of an answer. Unknown fields are ignored (U4).
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into) }
