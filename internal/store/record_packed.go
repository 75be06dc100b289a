package store

import "github.com/flowfabric/flowfabric/internal/core"

// Packed is the row of an execution for a store whose statements look at few columns: there a column costs more than a field
// of a blob. PackedOf makes it, Execution reads it back.
type Packed struct {
	// Written once.
	ID     core.UUID
	N      uint8
	Class  int32
	Origin []byte // the rest of what never changes
	Input  []byte // nil when not loaded; never nil in PackedOf when the input is loaded

	// Written with every change and by renewals.
	Status core.Status
	Reason core.Reason
	Next   core.Next
	Order  int64
	State  []byte // the rest
}

// PackedOf makes the packed row of an execution. Input is nil iff x's input is not loaded.
func PackedOf(x *core.Execution) Packed {
	p := ChangedPackedOf(x)
	policy := encodePolicy(x)
	c := writer(packedVersion, fixedRoom(x, policy), 0)
	c.time(&x.CreatedAt)
	c.base = x.CreatedAt
	c.fixed(x, &policy)
	p.Origin, p.Input = c.out, inputOf(x)
	return p
}

// ChangedPackedOf makes the packed row of an execution that is there already: as PackedOf, without Origin and Input.
func ChangedPackedOf(x *core.Execution) Packed {
	r := columnsOf(x)
	c := writer(packedVersion, stateRoom+bodyRoom, x.CreatedAt)
	c.state(&r)
	c.body(x, &r)
	return Packed{ID: r.ID, N: r.N, Class: r.Class, Status: r.Status, Reason: r.Reason, Next: r.Next, Order: r.Order, State: c.out}
}

// Execution reads the row back. class is the one that p.Class names. Bytes that cannot be read are code corruption.
func (p *Packed) Execution(class *core.Class) (*core.Execution, error) {
	r := Row{ID: p.ID, N: p.N, Class: p.Class, Status: p.Status, Reason: p.Reason, Next: p.Next, Order: p.Order}
	if !r.knownState() {
		return nil, corrupt("status", p.ID)
	}
	origin := reader(packedVersion, p.Origin, 0)
	origin.time(&r.Created)
	origin.base = r.Created
	state := reader(packedVersion, p.State, r.Created)
	state.state(&r)
	x := r.columns(class)
	if err := origin.readFixed(x); err != nil {
		return nil, err
	}
	if state.body(x, &r); !state.finished() {
		return nil, corrupt("state", p.ID)
	}
	x.Input.Data = p.Input
	return x, nil
}

// stateRoom is enough for the columns of most executions.
const stateRoom = 96

// state codes the columns that change, but for those that a packed row keeps as columns.
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
