// Package payload says in which form the bytes of a payload stand in JSON (U8..U10): as a JSON value, as text or as base64. It knows no type
// of the API.
package payload

import (
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// The content types that payloads have by default (U8).
const (
	ContentJSON  = "application/json"
	ContentText  = "text/plain; charset=utf-8"
	ContentBytes = "application/octet-stream"
)

// Form is how bytes stand in JSON.
type Form uint8

// The forms.
const (
	Bytes Form = iota // a string of base64
	JSON              // the value itself
	Text              // a string
)

// TextLimit bounds what a request sends as text: every byte of it may need six, while base64 needs four for three.
const TextLimit = 64 << 10

// Sent is the form of a request: JSON and text where they arrive bit for bit, else bytes.
func Sent(data []byte, contentType string) Form {
	switch {
	case IsJSON(contentType) && utf8.Valid(data) && jsonx.IsCompact(data) && string(data) != "null":
		return JSON
	case isText(contentType) && len(data) <= TextLimit && utf8.Valid(data):
		return Text
	default:
		return Bytes
	}
}

// Shown is the form of an answer (U9).
func Shown(data []byte, contentType string) Form {
	switch {
	case IsJSON(contentType) && jsonx.Valid(data):
		return JSON
	case isText(contentType) && utf8.Valid(data):
		return Text
	default:
		return Bytes
	}
}

// IsJSON reports whether a content type is JSON: application/json, or a type built on it. JSON in another character set is not.
func IsJSON(contentType string) bool {
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
