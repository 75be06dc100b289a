package flowfabric

import (
	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
)

// ID identifies an execution or a flow: its UUID in lower case, which is unique in a store. Answers contain this form; calls also
// accept the full form {fp:N}:<uuid>, whose N is Partition in answers.
type ID = api.ID

// ParseID validates the form of an id. Anything else is invalid_id.
func ParseID(text string) (ID, error) { return api.ParseID(text) }

// Payload is bytes with their content type. They are returned unchanged. The zero Payload means no payload, which differs from an
// empty payload with a content type.
type Payload = api.Payload

// JSON encodes v. An encoding error is reported by the call that uses the payload, with code invalid_argument.
func JSON(v any) Payload { return api.JSON(v) }

// Text is a payload of UTF-8 text.
func Text(s string) Payload { return api.Text(s) }

// Bytes is a payload of any bytes; contentType "" means application/octet-stream.
func Bytes(b []byte, contentType string) Payload { return api.Bytes(b, contentType) }

// Event is an entry of the event log.
type Event = api.Event

// None as In or Out of a Kind means no payload.
type None = api.None

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

// some converts a list that is omitted when empty.
func some[From, To any](all []From, convert func(From) To) []To {
	if len(all) == 0 {
		return nil
	}
	return calls.Each(all, convert)
}
