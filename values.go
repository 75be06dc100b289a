package flowfabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
)

// ID names an execution or a flow: its UUID in lower case, which alone is unique in a store. Answers show that; calls also take the
// full form {fp:N}:<uuid>, whose N answers show as Partition.
type ID = api.ID

// ParseID checks the spelling of an id. Anything else is invalid_id.
func ParseID(text string) (ID, error) { return api.ParseID(text) }

// parseID parses an id for the engine; invalid_id.
func parseID(id ID) (core.GivenID, error) {
	given, err := core.ParseID(string(id))
	if err != nil {
		return core.GivenID{}, publicError(err)
	}
	return given, nil
}

// fullID is the full form of an id of that partition. One that has its full form already keeps it.
func fullID(id ID, partition int) string {
	given, err := core.ParseID(string(id))
	if err != nil || given.Full {
		return string(id)
	}
	return core.ID{N: uint8(partition), UUID: given.UUID}.Full()
}

// idOf shows a stored id; "" when it is absent.
func idOf(id core.ID) ID {
	if id.IsZero() {
		return ""
	}
	return ID(id.String())
}

// The content types that payloads have by default.
const (
	contentJSON  = "application/json"
	contentText  = "text/plain; charset=utf-8"
	contentBytes = "application/octet-stream"
)

// Payload is bytes with their content type. They come back bit for bit. The zero Payload means nothing at all, which differs
// from an empty payload that has a content type.
type Payload struct {
	Data        []byte
	ContentType string // default application/octet-stream
	err         error  // of the maker, reported by the call that uses the payload
	asBytes     bool   // JSON shows it as base64
}

// JSON encodes v. An encoding error is reported by the call that uses the payload, with code invalid_argument.
func JSON(v any) Payload {
	data, err := json.Marshal(v)
	if err != nil {
		return Payload{ContentType: contentJSON, err: err}
	}
	return Payload{Data: data, ContentType: contentJSON}
}

// Text is a payload of UTF-8 text.
func Text(s string) Payload { return Payload{Data: []byte(s), ContentType: contentText} }

// Bytes is a payload of any bytes; contentType "" means application/octet-stream.
func Bytes(b []byte, contentType string) Payload {
	if b == nil {
		b = []byte{}
	}
	if contentType == "" {
		contentType = contentBytes
	}
	return Payload{Data: b, ContentType: contentType}
}

// None as In or Out of a Kind means: nothing.
type None struct{}

// Decode reads the payload into a *[]byte, *string or *Payload as it is, into a *None not at all, into anything else as JSON.
// What is not JSON is invalid_json.
func (p Payload) Decode(into any) error {
	if p.err != nil {
		return p.problem("payload")
	}
	switch v := into.(type) {
	case *[]byte:
		*v = p.Data
	case *string:
		*v = string(p.Data)
	case *Payload:
		*v = p
	case *None:
	default:
		if err := json.Unmarshal(p.Data, into); err != nil {
			return newError(core.CodeInvalidJSON, "the payload does not decode into %T: %w", into, err)
		}
	}
	return nil
}

// isNothing tells the absent payload from an empty one.
func (p Payload) isNothing() bool { return p.Data == nil && p.ContentType == "" }

// problem is what went wrong when the payload was made, as a refusal of the argument called field; nil when nothing did.
func (p Payload) problem(field string) error {
	var refusal *Error
	switch {
	case p.err == nil:
		return nil
	case errors.As(p.err, &refusal):
		return refusal
	}
	err := newError(core.CodeInvalidArgument, "the value does not encode as JSON: %w", p.err)
	err.Field = field
	return err
}

// core is the payload with bytes of its own: the caller may use his again, and the handler that gets them may change them.
func (p Payload) core() core.Payload {
	return core.Payload{ContentType: p.ContentType, Data: bytes.Clone(p.Data), Size: len(p.Data)}
}

func payloadOf(p core.Payload) Payload { return Payload{Data: p.Data, ContentType: p.ContentType} }

// encode makes the payload of a typed value (U135).
func encode(v any) Payload {
	switch v := v.(type) {
	case []byte:
		return Bytes(v, "")
	case string:
		return Text(v)
	case Payload:
		return v
	case None:
		return Payload{}
	default:
		return JSON(v)
	}
}

// decode is the reverse of encode.
func decode[T any](p Payload) (v T, err error) {
	err = p.Decode(&v)
	return v, err
}

// single takes the one options struct that a call may have; two are refused with invalid_argument (U132).
func single[T any](options []T) (one T, err error) {
	switch len(options) {
	case 0:
		return one, nil
	case 1:
		return options[0], nil
	default:
		return one, tooManyOptions(len(options), one)
	}
}

func tooManyOptions(given int, one any) error {
	return newError(core.CodeInvalidArgument, "%d option structs given, at most one is taken", given).
		At("options", fmt.Sprintf("merge them into one %T", one))
}
