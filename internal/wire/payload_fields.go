package wire

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
)

// One set of fields a payload name: Go has no way to give the fields of one struct the names of another.

// InputFields are the payload field input of a request (U8).
type InputFields struct {
	Input            json.RawMessage `json:"input,omitempty" oneof:"input" doc:"The input as any JSON value."`
	InputText        *string         `json:"input_text,omitempty" oneof:"input" doc:"The input as text."`
	InputBytes       *[]byte         `json:"input_bytes,omitempty" oneof:"input" doc:"The input as standard base64."`
	InputContentType string          `json:"input_content_type,omitempty" maxLength:"128" doc:"Content type of the input."`
}

// InputOf are the fields that bring p to the server bit for bit.
func InputOf(p Payload) InputFields {
	f := sent(p)
	return InputFields{f.json, f.text, f.bytes, f.typ}
}

// Payload is what the fields say; zero when none is given.
func (f InputFields) Payload() Payload {
	return forms{f.Input, f.InputText, f.InputBytes, f.InputContentType}.payload()
}

// ResultField is the payload field result of a request (U8).
type ResultField struct {
	Result api.Payload `json:"result,omitempty" spread:"sent" doc:"The result."`
}

// DetailField is the payload field detail of a request (U8).
type DetailField struct {
	Detail api.Payload `json:"detail,omitempty" spread:"sent" doc:"The detail of the failure."`
}

// PayloadField is the payload of a signal in a request (U8).
type PayloadField struct {
	Payload api.Payload `json:"payload,omitempty" spread:"sent" doc:"The payload."`
}
