package store

import "github.com/flowfabric/flowfabric/internal/core"

// RowOf makes the row of an execution. Input is nil iff x's input is not loaded.
func RowOf(x *core.Execution) Row {
	p := ChangedRowOf(x)
	policy := encodePolicy(x)
	c := writer(rowVersion, fixedRoom(x, policy), 0)
	c.time(&x.CreatedAt)
	c.base = x.CreatedAt
	c.fixed(x, &policy)
	p.Origin, p.Input = c.out, inputOf(x)
	return p
}

// ChangedRowOf makes the row of an execution that is there already: as RowOf, without Origin and Input.
func ChangedRowOf(x *core.Execution) Row {
	r := columnsOf(x)
	c := writer(rowVersion, stateRoom+bodyRoom, x.CreatedAt)
	c.state(&r)
	c.body(x, &r)
	return Row{ID: r.ID, N: r.N, Class: r.Class, Status: r.Status, Reason: r.Reason, Next: r.Next, Order: r.Order, State: c.out}
}

// Execution reads the row back. class is the one that p.Class names. Bytes that cannot be read are code corruption.
func (p *Row) Execution(class *core.Class) (*core.Execution, error) {
	r := columns{ID: p.ID, N: p.N, Class: p.Class, Status: p.Status, Reason: p.Reason, Next: p.Next, Order: p.Order}
	if !r.knownState() {
		return nil, corrupt("status", p.ID)
	}
	origin := reader(rowVersion, p.Origin, 0)
	origin.time(&r.Created)
	origin.base = r.Created
	state := reader(rowVersion, p.State, r.Created)
	state.state(&r)
	x := r.execution(class)
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

// state codes the columns that change, but for those that a row keeps as columns.
func (c *coder) state(r *columns) {
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
