package wire

import (
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// The content types that payload fields have by default (U8).
const (
	ContentJSON  = "application/json"
	ContentText  = "text/plain; charset=utf-8"
	ContentBytes = "application/octet-stream"
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

// textLimit bounds what a request sends as text: every byte of it may need six, while base64 needs four for three.
const textLimit = 64 << 10

// sent chooses the fields of a request: JSON and text where they arrive bit for bit, else bytes.
func sent(p Payload) forms {
	switch {
	case p.IsZero():
		return forms{}
	case isJSON(p.ContentType) && utf8.Valid(p.Data) && jsonx.IsCompact(p.Data) && string(p.Data) != "null":
		return forms{json: p.Data, typ: p.ContentType}
	case isText(p.ContentType) && len(p.Data) <= textLimit && utf8.Valid(p.Data):
		return forms{text: textOf(p.Data), typ: p.ContentType}
	default:
		return forms{bytes: bytesOf(p.Data), typ: p.ContentType}
	}
}

// shown chooses the fields of an answer (U9).
func shown(p Payload, e Encoding) forms {
	switch {
	case p.IsZero():
		return forms{}
	case p.Omitted:
		return forms{typ: p.ContentType}
	case e == EncodingBytes:
	case isJSON(p.ContentType) && jsonx.Valid(p.Data):
		return forms{json: p.Data, typ: p.ContentType}
	case isText(p.ContentType) && utf8.Valid(p.Data):
		return forms{text: textOf(p.Data), typ: p.ContentType}
	}
	return forms{bytes: bytesOf(p.Data), typ: p.ContentType}
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

// isJSON reports whether a content type is JSON: application/json, or a type built on it. JSON in another character set is not.
func isJSON(contentType string) bool {
	switch contentType { // most have one of these
	case ContentJSON:
		return true
	case ContentBytes:
		return false
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && (media == ContentJSON || strings.HasSuffix(media, "+json")) && (!given || strings.EqualFold(charset, "utf-8"))
}

func isText(contentType string) bool {
	if contentType == ContentBytes {
		return false
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}
