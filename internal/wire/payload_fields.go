package wire

import "encoding/json"

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

// InputShown are the payload field input of an answer (U9, U10).
type InputShown struct {
	InputFields
	InputSize    *int `json:"input_size,omitempty" doc:"Size of the input in bytes."`
	InputOmitted bool `json:"input_omitted,omitempty" doc:"The input is too large to be shown here."`
}

// ShowInput are the fields that show p.
func ShowInput(p Payload, e Encoding) InputShown {
	if p.IsZero() {
		return InputShown{}
	}
	f := shown(p, e)
	return InputShown{InputFields{f.json, f.text, f.bytes, f.typ}, sizeOf(p), p.Omitted}
}

// Payload is what the fields show.
func (f InputShown) Payload() Payload {
	return f.InputFields.Payload().as(f.InputContentType, f.InputSize, f.InputOmitted)
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

// ResultShown are the payload field result of an answer (U9, U10).
type ResultShown struct {
	ResultFields
	ResultSize    *int `json:"result_size,omitempty" doc:"Size of the result in bytes."`
	ResultOmitted bool `json:"result_omitted,omitempty" doc:"The result is too large to be shown here."`
}

// ShowResult are the fields that show p.
func ShowResult(p Payload, e Encoding) ResultShown {
	if p.IsZero() {
		return ResultShown{}
	}
	f := shown(p, e)
	return ResultShown{ResultFields{f.json, f.text, f.bytes, f.typ}, sizeOf(p), p.Omitted}
}

// Payload is what the fields show.
func (f ResultShown) Payload() Payload {
	return f.ResultFields.Payload().as(f.ResultContentType, f.ResultSize, f.ResultOmitted)
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

// DetailShown are the payload field detail of an answer (U9, U10).
type DetailShown struct {
	DetailFields
	DetailSize    *int `json:"detail_size,omitempty" doc:"Size of the detail in bytes."`
	DetailOmitted bool `json:"detail_omitted,omitempty" doc:"The detail is too large to be shown here."`
}

// ShowDetail are the fields that show p.
func ShowDetail(p Payload, e Encoding) DetailShown {
	if p.IsZero() {
		return DetailShown{}
	}
	f := shown(p, e)
	return DetailShown{DetailFields{f.json, f.text, f.bytes, f.typ}, sizeOf(p), p.Omitted}
}

// Payload is what the fields show.
func (f DetailShown) Payload() Payload {
	return f.DetailFields.Payload().as(f.DetailContentType, f.DetailSize, f.DetailOmitted)
}

// sizeOf is the size that an answer shows: of the bytes, or of what is left out.
func sizeOf(p Payload) *int {
	size := len(p.Data)
	if p.Omitted {
		size = p.Size
	}
	return &size
}

// as adds what only answers say to the bytes that were read.
func (p Payload) as(contentType string, size *int, omitted bool) Payload {
	p.ContentType, p.Omitted = contentType, omitted
	if size != nil {
		p.Size = *size
	}
	return p
}
