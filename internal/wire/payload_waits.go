package wire

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/api"
)

// ContinuationFields are the payload field continuation of a request (U8).
type ContinuationFields struct {
	Continuation            json.RawMessage `json:"continuation,omitempty" oneof:"continuation" doc:"What whoever goes on is given, as any JSON value."`
	ContinuationText        *string         `json:"continuation_text,omitempty" oneof:"continuation" doc:"The continuation as text."`
	ContinuationBytes       *[]byte         `json:"continuation_bytes,omitempty" oneof:"continuation" doc:"The continuation as standard base64."`
	ContinuationContentType string          `json:"continuation_content_type,omitempty" maxLength:"128" doc:"Content type of the continuation."`
}

// ContinuationOf are the fields that bring p to the server bit for bit.
func ContinuationOf(p Payload) ContinuationFields {
	f := sent(p)
	return ContinuationFields{f.json, f.text, f.bytes, f.typ}
}

// Payload is what the fields say; zero when none is given.
func (f ContinuationFields) Payload() Payload {
	return forms{f.Continuation, f.ContinuationText, f.ContinuationBytes, f.ContinuationContentType}.payload()
}

// ContinuationShown are the payload field continuation of an answer (U9, U10).
type ContinuationShown struct {
	ContinuationFields
	ContinuationSize    *int `json:"continuation_size,omitempty" doc:"Size of the continuation in bytes."`
	ContinuationOmitted bool `json:"continuation_omitted,omitempty" doc:"The continuation is not shown here."`
}

// ShowContinuation are the fields that show p.
func ShowContinuation(p Payload, e Encoding) ContinuationShown {
	if p.IsZero() {
		return ContinuationShown{}
	}
	f := shown(p, e)
	return ContinuationShown{ContinuationFields{f.json, f.text, f.bytes, f.typ}, sizeIfKnown(p), p.Omitted}
}

// Payload is what the fields show.
func (f ContinuationShown) Payload() Payload {
	return f.ContinuationFields.Payload().as(f.ContinuationContentType, f.ContinuationSize, f.ContinuationOmitted)
}

// PayloadField is the payload of a signal in a request (U8).
type PayloadField struct {
	Payload api.Payload `json:"payload,omitempty" spread:"sent" doc:"The payload."`
}

// sizeIfKnown is the size that an answer shows; nil of what is left out where nobody has looked at its size.
func sizeIfKnown(p Payload) *int {
	if p.Omitted && p.Size == 0 {
		return nil
	}
	return sizeOf(p)
}
