package wire

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/payload"
)

// The content types that payload fields have by default (U8).
const (
	ContentJSON  = payload.ContentJSON
	ContentText  = payload.ContentText
	ContentBytes = payload.ContentBytes
)

// Payload is bytes with their content type. The zero Payload is absent, which differs from an empty one.
type Payload struct {
	Data        []byte
	ContentType string
	Size        int  // in answers: of the bytes, also of those left out
	Omitted     bool // in answers: the bytes are left out (U10)
}

// IsZero reports whether there is no payload.
func (p Payload) IsZero() bool {
	return p.Data == nil && p.ContentType == "" && p.Size == 0 && !p.Omitted
}

// forms are the fields of a payload whatever its name (U8).
type forms struct {
	json  json.RawMessage
	text  *string
	bytes *[]byte
	typ   string
}

// payload is what a request's fields say. The decoder has refused two of them.
func (f forms) payload() Payload {
	switch {
	case f.json != nil:
		return made(f.json, f.typ, ContentJSON)
	case f.text != nil:
		return made([]byte(*f.text), f.typ, ContentText)
	case f.bytes != nil:
		return made(*f.bytes, f.typ, ContentBytes)
	default:
		return Payload{}
	}
}

func made(data []byte, contentType, byDefault string) Payload {
	if contentType == "" {
		contentType = byDefault
	}
	if data == nil {
		data = []byte{}
	}
	return Payload{Data: data, ContentType: contentType, Size: len(data)}
}

// sent chooses the fields of a request: JSON and text where they arrive bit for bit, else bytes.
func sent(p Payload) forms {
	if p.IsZero() {
		return forms{}
	}
	return in(payload.Sent(p.Data, p.ContentType), p)
}

// in are the fields of a form.
func in(form payload.Form, p Payload) forms {
	switch form {
	case payload.JSON:
		return forms{json: p.Data, typ: p.ContentType}
	case payload.Text:
		return forms{text: textOf(p.Data), typ: p.ContentType}
	default:
		return forms{bytes: bytesOf(p.Data), typ: p.ContentType}
	}
}

func textOf(data []byte) *string {
	text := string(data)
	return &text
}

func bytesOf(data []byte) *[]byte {
	if data == nil {
		data = []byte{}
	}
	return &data
}
