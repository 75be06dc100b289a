package wire

import (
	"bytes"
	"encoding/json"
)

// Marshal writes JSON without the escapes that HTML would need: they would change the bytes of inline payloads (U9).
func Marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// Unmarshal reads the JSON of an answer. Unknown fields are ignored (U4).
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into) }
