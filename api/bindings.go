package api

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Binding is a waitpoint of a suspension: a new one, or a pending one that it uses. The functions NewWaitpoint and ExistingWaitpoint
// of package flowfabric make one. The zero Binding is a new waitpoint with the key of the condition.
type Binding struct {
	Fresh      *FreshWaitpoint   `json:"fresh,omitempty" oneof:"binding" doc:"A new waitpoint."`
	UsePending *PendingWaitpoint `json:"use_pending,omitempty" oneof:"binding" doc:"A waitpoint that was made before, with its token and its signals."`
}

// FreshWaitpoint is a waitpoint that a suspension creates.
type FreshWaitpoint struct {
	Key string `json:"waitpoint_key,omitempty" maxLength:"128" doc:"Its key; the condition's if absent."`
	ID  string `json:"waitpoint_id,omitempty" doc:"Id chosen by the caller."` // "": generated

	emptyKey bool // JSON gave an empty text, which the rules refuse
}

// PendingWaitpoint is an existing waitpoint that a suspension uses, with its key, its token and the signals it has received.
type PendingWaitpoint struct {
	ID string `json:"waitpoint_id" required:"true" doc:"Its id."`
}

// CheckJSON requires exactly one of the two.
func (*Binding) CheckJSON(given []string) jsonx.Errors {
	if len(given) > 0 {
		return nil
	}
	return jsonx.Errors{{Code: jsonx.CodeMissingField, Field: "/fresh", Detail: "a binding is fresh or use_pending", Hint: `give {"fresh":{}} or {"use_pending":{"waitpoint_id":"..."}}`}}
}

// CheckJSON records whether the key was given as empty.
func (f *FreshWaitpoint) CheckJSON(given []string) jsonx.Errors {
	f.emptyKey = f.Key == "" && slices.Contains(given, "waitpoint_key")
	return nil
}

// Given returns the key; nil if it is absent. A key that was given as empty in JSON is returned, so that it is refused.
func (f *FreshWaitpoint) Given() (key *string) {
	if f.Key != "" || f.emptyKey {
		key = &f.Key
	}
	return key
}

// AppendJSON appends what MarshalJSON writes.
func (b Binding) AppendJSON(text []byte) ([]byte, error) {
	type fields Binding
	if b == (Binding{}) {
		b.Fresh = &FreshWaitpoint{}
	}
	return jsonx.Append(text, (*fields)(&b))
}

// MarshalJSON writes the binding as the HTTP API accepts it.
func (b Binding) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil) }

// UnmarshalJSON reads a binding as strictly as the HTTP API does.
func (b *Binding) UnmarshalJSON(text []byte) error { return readRequest(text, b) }

// AppendJSON appends what MarshalJSON writes.
func (f FreshWaitpoint) AppendJSON(text []byte) ([]byte, error) {
	written := struct {
		Key *string `json:"waitpoint_key,omitempty"`
		ID  string  `json:"waitpoint_id,omitempty"`
	}{f.Given(), f.ID}
	return jsonx.Append(text, &written)
}

// MarshalJSON writes the waitpoint as the HTTP API accepts it.
func (f FreshWaitpoint) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil) }

// UnmarshalJSON reads a waitpoint as strictly as the HTTP API does.
func (f *FreshWaitpoint) UnmarshalJSON(text []byte) error { return readRequest(text, f) }
