package wire

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Lease is a lease as workers receive it (U27), with its fence as text, which readers of executions do not see (U26). LeaseRef
// reads it.
type Lease struct {
	api.Lease
	Fence string `json:"fence,omitempty" doc:"<lease_id>.<lease_epoch>.<attempt_id>, for fenced calls."`
}

// LeaseOf converts a lease for workers.
func LeaseOf(l api.Lease) Lease {
	if l.ID == "" || l.AttemptID == "" {
		return Lease{Lease: l}
	}
	return Lease{l, l.Fence()}
}

// MarshalJSON writes the lease with its fence, which that of the embedded type would leave to its parts.
func (l Lease) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Lease) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, l) }
