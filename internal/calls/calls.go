// Package calls has what the groups of calls of a client share: ids in paths, pages of lists, and options. It does not know what
// the calls do.
package calls

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// LongPoll is how long one call waits for an end; the client repeats it until its caller's context ends.
const LongPoll = 30 * time.Second

// Refuse returns an error of that code; %w keeps the cause.
func Refuse(code base.Code, format string, args ...any) *api.Error {
	return api.Errorf(string(code), format, args...)
}

// ParseID parses an id; invalid_id.
func ParseID(id api.ID) (base.GivenID, error) {
	given, err := base.ParseID(string(id))
	if err != nil {
		return base.GivenID{}, api.AsError(err)
	}
	return given, nil
}

// UUID parses a required id that is no execution's; invalid_id.
func UUID(field, text string) (base.UUID, error) {
	id, ok := base.ParseUUID(text)
	if !ok {
		return id, Refuse(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(text)).At(field, "give it as it was shown")
	}
	return id, nil
}

// ByID formats an id for a path; invalid_id.
func ByID(id api.ID) (wire.ByID, error) {
	if _, err := ParseID(id); err != nil {
		return wire.ByID{}, err
	}
	return wire.ByID{ID: string(id)}, nil
}

// Target returns the id in the form of paths and the options of a call on one execution; invalid_argument, invalid_id.
func Target[O any](id api.ID, o []O) (options O, path wire.ByID, err error) {
	if options, err = transport.Single(o); err == nil {
		path, err = ByID(id)
	}
	return options, path, err
}

// Time converts a time to the form of requests.
func Time(t time.Time) wire.Time { return wire.TimeOf(t) }

// Millis rounds up, so that a short wait never becomes zero.
func Millis(d time.Duration) base.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// Span converts an optional duration; nil means unset.
func Span(d time.Duration) *base.Millis {
	if d == 0 {
		return nil
	}
	ms := Millis(d)
	return &ms
}

// Each converts a list. The result is never nil, because empty lists in answers are [].
func Each[From, To any](all []From, convert func(From) To) []To {
	converted := make([]To, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

// Value returns the answer of a call by value; zero if there is an error.
func Value[T any](answer *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}

// Expected is the expected state of an execution in a request; nil if nothing is expected.
func Expected(status, leaseID string, leaseEpoch int64) *wire.Expect {
	if status == "" && leaseID == "" && leaseEpoch == 0 {
		return nil
	}
	return &wire.Expect{Status: status, LeaseID: leaseID, LeaseEpoch: leaseEpoch}
}

// The names of the signals that carry a person's decision.
const (
	SignalApproved = "approved"
	SignalRejected = "rejected"
)

// noID replaces an empty text in a path; it is not a valid id or token.
const noID = "none"

// Segment returns a text as a segment of a path, or one that names nothing for an empty text.
func Segment(text string) string {
	if text == "" {
		return noID
	}
	return text
}
