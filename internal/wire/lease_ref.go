package wire

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// LeaseRef is a lease in a request (U27): the fence of the caller. It reads the lease object of a task unchanged, an object with
// its three fence parts, or the text <lease_id>.<lease_epoch>.<attempt_id>. Missing parts are refused by the rules.
type LeaseRef struct {
	LeaseID   string `json:"lease_id,omitempty"`
	Epoch     int64  `json:"lease_epoch,omitempty"`
	AttemptID string `json:"attempt_id,omitempty"`
}

// IsZero reports whether no lease is given.
func (l LeaseRef) IsZero() bool { return l == LeaseRef{} }

// String is the text form.
func (l LeaseRef) String() string {
	return l.LeaseID + "." + strconv.FormatInt(l.Epoch, 10) + "." + l.AttemptID
}

// ParseLeaseRef parses the text form. Anything else is invalid_handle.
func ParseLeaseRef(text string) (LeaseRef, error) {
	lease, rest, ok := strings.Cut(text, ".")
	epoch, attempt, ok2 := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(epoch, 10, 64)
	if !ok || !ok2 || err != nil || n < 0 || strconv.FormatInt(n, 10) != epoch ||
		lease == "" || attempt == "" || strings.Contains(attempt, ".") {
		return LeaseRef{}, invalidHandle("not the text form of a lease", "send the fence of the task: <lease_id>.<lease_epoch>.<attempt_id>")
	}
	return LeaseRef{LeaseID: lease, Epoch: n, AttemptID: attempt}, nil
}

// MarshalText writes the text form.
func (l LeaseRef) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the text form.
func (l *LeaseRef) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLeaseRef(string(text))
	return err
}

// MarshalJSON writes the object of the parts.
func (l LeaseRef) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil) }

// leaseParts is a lease without its other forms.
type leaseParts LeaseRef

// AppendJSON adds what MarshalJSON returns.
func (l *LeaseRef) AppendJSON(text []byte) ([]byte, error) {
	return jsonx.Append(text, (*leaseParts)(l))
}

// UnmarshalJSON reads all three forms.
func (l *LeaseRef) UnmarshalJSON(text []byte) error { return DecodeJSON(text, l) }

// ReadJSON reads the next value of a request.
func (l *LeaseRef) ReadJSON(d *jsonx.Decoder) {
	if d.Peek() == '"' {
		d.Text(l)
		return
	}
	if object := jsonx.Scratch[Lease](d); d.Into(object) {
		d.Refuse(l.take(object))
	}
}

// take sets the parts from a lease object. Its fence must match them.
func (l *LeaseRef) take(object *Lease) *Error {
	*l = LeaseRef{LeaseID: object.ID, Epoch: object.Epoch, AttemptID: object.AttemptID}
	if object.Fence == "" {
		return nil
	}
	fence, err := ParseLeaseRef(object.Fence)
	switch {
	case err != nil || !l.IsZero() && fence != *l:
		return invalidHandle("the fence of the lease differs from its parts", "send the lease as returned by the claim")
	default:
		*l = fence
		return nil
	}
}

// HeldLease is a lease in a heartbeat (U61): an object as LeaseRef reads it, which must also name its execution.
type HeldLease struct {
	ExecutionID string
	LeaseRef
}

// MarshalJSON writes the execution and the parts of the fence.
func (h HeldLease) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON returns.
func (h *HeldLease) AppendJSON(text []byte) ([]byte, error) {
	text = jsonx.AppendString(append(text, `{"execution_id":`...), h.ExecutionID)
	return jsonx.AppendInto(text, (*leaseParts)(&h.LeaseRef))
}

// UnmarshalJSON reads the lease object.
func (h *HeldLease) UnmarshalJSON(text []byte) error { return DecodeJSON(text, h) }

// ReadJSON reads the next value of a request.
func (h *HeldLease) ReadJSON(d *jsonx.Decoder) {
	object := jsonx.Scratch[Lease](d)
	if !d.Expect("a lease object", "{") || !d.Into(object) {
		return
	}
	if h.ExecutionID = string(object.ExecutionID); h.ExecutionID == "" {
		d.Refuse(&Error{Code: jsonx.CodeMissingField, Field: "/execution_id", Detail: "this field is required"})
	}
	d.Refuse(h.LeaseRef.take(object))
}

// PickLease returns the lease of a fenced call, which can be in the body or in the header FlowFabric-Lease. Two different ones
// are invalid_argument.
func PickLease(body, header LeaseRef) (LeaseRef, error) {
	switch {
	case header.IsZero() || header == body:
		return body, nil
	case body.IsZero():
		return header, nil
	default:
		e := jsonx.Invalid("the lease of the header differs from that of the body", "give one of them")
		e.Field = "header.FlowFabric-Lease"
		return LeaseRef{}, e
	}
}
