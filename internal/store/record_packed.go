package store

import "github.com/flowfabric/flowfabric/internal/core"

// Packed is a row for a store whose statements look at few columns: a column costs it more than a field of a blob. Pack makes
// it, Unpack reads it back.
type Packed struct {
	ID     core.UUID
	N      uint8
	Class  int32
	Status core.Status
	Reason core.Reason
	Next   core.Next
	Order  int64
	Origin []byte // what is written once: Created and Fixed; nil if the row has no Fixed
	State  []byte // everything else that changes
	Input  []byte
}

// packedVersion is the version of Origin and of State.
const packedVersion = 1

// Pack makes the packed form of r.
func (r *Row) Pack() Packed {
	p := Packed{ID: r.ID, N: r.N, Class: r.Class, Status: r.Status, Reason: r.Reason, Next: r.Next, Order: r.Order, Input: r.Input}
	if r.Fixed != nil {
		c := writer(packedVersion, 16+len(r.Fixed), 0)
		c.time(&r.Created)
		p.Origin = append(c.out, r.Fixed...)
	}
	c := writer(packedVersion, 96+len(r.Body), r.Created)
	c.state(r)
	p.State = append(c.out, r.Body...)
	return p
}

// Unpack reads p back. Bytes that cannot be read are code corruption; those of the rest are judged by Execution. Fixed and
// Body of the row share p's bytes.
func (p *Packed) Unpack() (Row, error) {
	r := Row{ID: p.ID, N: p.N, Class: p.Class, Status: p.Status, Reason: p.Reason, Next: p.Next, Order: p.Order, Input: p.Input}
	c := reader(packedVersion, p.Origin, 0)
	c.time(&r.Created)
	if c.bad {
		return Row{}, corrupt("origin", p.ID)
	}
	r.Fixed = p.Origin[len(p.Origin)-len(c.in):]
	c = reader(packedVersion, p.State, r.Created)
	c.state(&r)
	if c.bad {
		return Row{}, corrupt("state", p.ID)
	}
	r.Body = p.State[len(p.State)-len(c.in):]
	return r, nil
}

func (c *coder) state(r *Row) {
	c.int(&r.Priority)
	c.time(&r.QueuedAt)
	c.time(&r.StatusSince)
	c.time(&r.MutatedAt)
	c.time(&r.CompletedAt)
	c.time(&r.WakeAt)
	c.time(&r.TimerAt)
	c.int64(&r.LeaseEpoch)
	c.optionalUUID(&r.LeaseID)
	c.optionalUUID(&r.AttemptID)
	c.time(&r.LeaseExpires)
	c.time(&r.LeaseRenewed)
	c.int64(&r.LeaseTTL)
}

// optionalUUID spares the bytes of an absent id.
func (c *coder) optionalUUID(v *core.UUID) {
	present := !v.IsZero()
	c.flag(&present)
	if present {
		c.uuid(v)
	}
}
