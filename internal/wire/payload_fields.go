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

// ResultFields are the payload field result of a request (U8).
type ResultFields struct {
	Result            json.RawMessage `json:"result,omitempty" oneof:"result" doc:"The result as any JSON value."`
	ResultText        *string         `json:"result_text,omitempty" oneof:"result" doc:"The result as text."`
	ResultBytes       *[]byte         `json:"result_bytes,omitempty" oneof:"result" doc:"The result as standard base64."`
	ResultContentType string          `json:"result_content_type,omitempty" maxLength:"128" doc:"Content type of the result."`
}

// ResultOf are the fields that bring p to the server bit for bit.
func ResultOf(p Payload) ResultFields {
	f := sent(p)
	return ResultFields{f.json, f.text, f.bytes, f.typ}
}

// Payload is what the fields say; zero when none is given.
func (f ResultFields) Payload() Payload {
	return forms{f.Result, f.ResultText, f.ResultBytes, f.ResultContentType}.payload()
}

// DetailFields are the payload field detail of a request (U8).
type DetailFields struct {
	Detail            json.RawMessage `json:"detail,omitempty" oneof:"detail" doc:"The detail of the failure as any JSON value."`
	DetailText        *string         `json:"detail_text,omitempty" oneof:"detail" doc:"The detail of the failure as text."`
	DetailBytes       *[]byte         `json:"detail_bytes,omitempty" oneof:"detail" doc:"The detail of the failure as standard base64."`
	DetailContentType string          `json:"detail_content_type,omitempty" maxLength:"128" doc:"Content type of the detail."`
}

// DetailOf are the fields that bring p to the server bit for bit.
func DetailOf(p Payload) DetailFields {
	f := sent(p)
	return DetailFields{f.json, f.text, f.bytes, f.typ}
}

// Payload is what the fields say; zero when none is given.
func (f DetailFields) Payload() Payload {
	return forms{f.Detail, f.DetailText, f.DetailBytes, f.DetailContentType}.payload()
}

// PayloadField is the payload of a signal in a request (U8).
type PayloadField struct {
	Payload api.Payload `json:"payload,omitempty" spread:"sent" doc:"The payload."`
}
