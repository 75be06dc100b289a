package store

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// RowOf makes the row of an execution; Origin and State share one array. Input is nil iff x's input is not loaded.
func RowOf(x *core.Execution) Row {
	policy := encodePolicy(x)
	c := writer(rowVersion, fixedRoom(x, policy)+stateRoom, 0)
	c.time(&x.CreatedAt)
	c.base = x.CreatedAt
	input := inputOf(x)
	sum := sumOf(input)
	c.fixed(x, &policy, &sum)
	c.seal(0)
	origin := len(c.out)
	c.out = append(c.out, rowVersion)
	p := c.changed(x)
	c.seal(origin)
	p.Origin, p.State, p.Input = c.out[:origin:origin], c.out[origin:], input
	return p
}

// ChangedRowOf makes the row of an existing execution: like RowOf, without Origin and Input.
func ChangedRowOf(x *core.Execution) Row {
	c := writer(rowVersion, stateRoom+bodyRoom, x.CreatedAt)
	p := c.changed(x)
	c.seal(0)
	p.State = c.out
	return p
}

// changed writes the state of x and makes the rest of its row.
func (c *coder) changed(x *core.Execution) Row {
	r := columnsOf(x)
	c.state(&r)
	c.body(x, &r)
	return Row{ID: r.ID, N: r.N, Class: r.Class, Version: x.Version, Status: r.Status, Reason: r.Reason, Next: r.Next, Order: r.Order}
}

// Execution reads the row back. class is the one with the number p.Class. Decoded policies are cached in policies, which may be nil. Unreadable
// bytes are code corruption.
func (p *Row) Execution(class *core.Class, policies *Policies) (x *core.Execution, err error) {
	defer func() {
		if recover() != nil { // unforeseen bytes are unreadable like any others
			x, err = nil, corrupt("row", p.ID)
		}
	}()
	r := columns{ID: p.ID, N: p.N, Class: p.Class, Status: p.Status, Reason: p.Reason, Next: p.Next, Order: p.Order}
	if !r.knownState() {
		return nil, corrupt("status", p.ID)
	}
	fixed, ok := unseal(p.Origin)
	changed, whole := unseal(p.State)
	if !ok || !whole {
		return nil, damaged("row", p.ID)
	}
	both := oneText(fixed, changed)
	origin := reader(rowVersion, both[:len(fixed)], 0)
	origin.time(&r.Created)
	origin.base = r.Created
	state := reader(rowVersion, both[len(fixed):], r.Created)
	state.state(&r)
	x = r.execution(class)
	if err := origin.readFixed(x, policies, p.Input); err != nil {
		return nil, err
	}
	if state.body(x, &r); !state.finished() {
		return nil, corrupt("state", p.ID)
	}
	x.Input.Data, x.Version = p.Input, p.Version
	return x, nil
}

// oneText returns one copy of origin and state, which the texts of the record share.
func oneText(origin, state []byte) string {
	var both strings.Builder
	both.Grow(len(origin) + len(state))
	both.Write(origin)
	both.Write(state)
	return both.String()
}

// stateRoom fits the state of most executions.
const stateRoom = 96

// state codes the changing fields except those with a column of their own.
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

// optionalUUID saves the bytes of an absent id.
func (c *coder) optionalUUID(v *base.UUID) {
	present := !v.IsZero()
	c.flag(&present)
	if present {
		c.uuid(v)
	}
}
