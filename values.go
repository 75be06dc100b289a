package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// ID identifies an execution or a flow: its UUID in lower case, which is unique in a store. Answers contain this form; calls also
// accept the full form {fp:N}:<uuid>, whose N is Partition in answers.
type ID = api.ID

// ParseID validates the form of an id. Anything else is invalid_id.
func ParseID(text string) (ID, error) { return api.ParseID(text) }

// parseID parses an id for the engine; invalid_id.
func parseID(id ID) (base.GivenID, error) {
	given, err := base.ParseID(string(id))
	if err != nil {
		return base.GivenID{}, publicError(err)
	}
	return given, nil
}

// Payload is bytes with their content type. They are returned unchanged. The zero Payload means no payload, which differs from an
// empty payload with a content type.
type Payload = api.Payload

// JSON encodes v. An encoding error is reported by the call that uses the payload, with code invalid_argument.
func JSON(v any) Payload { return api.JSON(v) }

// Text is a payload of UTF-8 text.
func Text(s string) Payload { return api.Text(s) }

// Bytes is a payload of any bytes; contentType "" means application/octet-stream.
func Bytes(b []byte, contentType string) Payload { return api.Bytes(b, contentType) }

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

// wireTime converts a time to the form of requests.
func wireTime(t time.Time) wire.Time { return wire.TimeOf(t) }

// each converts a list. The result is never nil, because empty lists in answers are [].
func each[From, To any](all []From, convert func(From) To) []To {
	converted := make([]To, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// some converts a list that is omitted when empty.
func some[From, To any](all []From, convert func(From) To) []To {
	if len(all) == 0 {
		return nil
	}
	return each(all, convert)
}

// value returns the answer of a call by value; zero if there is an error.
func value[T any](answer *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}
