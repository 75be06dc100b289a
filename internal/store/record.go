package store

import "github.com/flowfabric/flowfabric/internal/core"

// Versions of the stored formats. A format that changes gets a new number, and the old one stays readable.
const (
	fixedVersion   = 1
	bodyVersion    = 1
	packedVersion  = 1
	historyVersion = 1
	patchVersion   = 1
	commitVersion  = 1
)

// RowOf makes the row of an execution. Input is nil iff x's input is not loaded.
func RowOf(x *core.Execution) Row {
	r := ChangedRowOf(x)
	policy := encodePolicy(x)
	c := writer(fixedVersion, fixedRoom(x, policy), x.CreatedAt)
	c.fixed(x, &policy)
	r.Fixed = c.out
	r.Input = inputOf(x)
	return r
}

// ChangedRowOf makes the row of an execution that is there already: as RowOf, without Fixed and Input, which never change.
func ChangedRowOf(x *core.Execution) Row {
	r := columnsOf(x)
	c := writer(bodyVersion, bodyRoom, x.CreatedAt)
	c.body(x, &r)
	r.Body = c.out
	return r
}

// Execution reads the row back. class is the one that r.Class names. Bytes that cannot be read are code corruption.
func (r *Row) Execution(class *core.Class) (*core.Execution, error) {
	x := r.columns(class)
	if !r.knownState() {
		return nil, corrupt("status", r.ID)
	}
	c := reader(fixedVersion, r.Fixed, x.CreatedAt)
	if err := c.readFixed(x); err != nil {
		return nil, err
	}
	c = reader(bodyVersion, r.Body, r.Created)
	if c.body(x, r); !c.finished() {
		return nil, corrupt("state", r.ID)
	}
	x.Input.Data = r.Input
	return x, nil
}

// inputOf is nil iff the input is not loaded.
func inputOf(x *core.Execution) []byte {
	if x.Input.Data == nil && x.Input.Size == 0 {
		return []byte{}
	}
	return x.Input.Data
}

// columnsOf is the part of the row that is not in its blobs.
func columnsOf(x *core.Execution) Row {
	r := Row{
		ID: x.ID.UUID, N: x.ID.N, Class: x.Class.ID, Created: x.CreatedAt,
		Status: x.Status, Reason: x.Reason, Next: x.Next, Priority: x.Priority, Order: x.OrderKey,
		QueuedAt: x.QueuedAt, StatusSince: x.StatusSince, MutatedAt: x.LastMutationAt, CompletedAt: x.CompletedAt,
		WakeAt: x.WakeAt, TimerAt: x.TimerAt, LeaseEpoch: x.LeaseEpoch,
	}
	switch {
	case x.Lease != nil:
		r.LeaseID, r.AttemptID = x.Lease.ID, x.Lease.AttemptID
		r.LeaseExpires, r.LeaseRenewed, r.LeaseTTL = x.Lease.ExpiresAt, x.Lease.RenewedAt, x.Lease.TTL
	case x.LastLease != nil:
		r.LeaseID, r.AttemptID = x.LastLease.ID, x.LastLease.AttemptID
	case x.Attempt != nil:
		r.AttemptID = x.Attempt.ID
	}
	return r
}

// columns reads columnsOf back.
func (r *Row) columns(class *core.Class) *core.Execution {
	return &core.Execution{
		ID: core.ID{N: r.N, UUID: r.ID}, Class: class, CreatedAt: r.Created,
		Status: r.Status, Reason: r.Reason, Next: r.Next, Priority: r.Priority, OrderKey: r.Order,
		QueuedAt: r.QueuedAt, StatusSince: r.StatusSince, LastMutationAt: r.MutatedAt, CompletedAt: r.CompletedAt,
		WakeAt: r.WakeAt, TimerAt: r.TimerAt, LeaseEpoch: r.LeaseEpoch,
	}
}

func (r *Row) knownState() bool {
	return r.Status != core.StatusNone && known(r.Status.String()) && known(r.Reason.String()) && known(r.Next.String())
}

// Parts of Row.Fixed. Values are stored.
const (
	fixedCreator uint64 = 1 << iota
	fixedKey
	fixedFlow
	fixedParent
	fixedPolicy
)

func encodePolicy(x *core.Execution) []byte {
	if x.Policy == nil {
		return nil
	}
	return x.Policy.Encode()
}

func fixedRoom(x *core.Execution, policy []byte) int {
	return 64 + len(x.Creator) + len(x.IdempotencyKey) + len(policy)
}

// readFixed reads what never changes, to the end.
func (c *coder) readFixed(x *core.Execution) (err error) {
	var policy []byte
	if c.fixed(x, &policy); !c.finished() {
		return corrupt("identity", x.ID.UUID)
	}
	if x.Policy, err = core.DecodePolicy(policy); err != nil {
		return core.Errorf(core.CodeCorruption, "the stored policy of %s cannot be read: %w", x.ID.UUID, err)
	}
	return nil
}

func (c *coder) fixed(x *core.Execution, policy *[]byte) {
	parts := bits(fixedCreator, x.Creator != "") |
		bits(fixedKey, x.IdempotencyKey != "") |
		bits(fixedFlow, x.FlowID != core.ID{}) |
		bits(fixedParent, x.ParentID != core.ID{}) |
		bits(fixedPolicy, *policy != nil)
	c.uint(&parts)
	if parts&fixedCreator != 0 {
		c.text(&x.Creator)
	}
	if parts&fixedKey != 0 {
		c.text(&x.IdempotencyKey)
	}
	if parts&fixedFlow != 0 {
		c.id(&x.FlowID)
	}
	if parts&fixedParent != 0 {
		c.id(&x.ParentID)
	}
	if parts&fixedPolicy != 0 {
		c.bytes(policy)
	}
	c.payload(&x.Input)
}
