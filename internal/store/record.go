package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Versions of the stored formats. A format that changes gets a new number, and the old version stays readable.
const (
	rowVersion     = 1
	historyVersion = 1
	patchVersion   = 1
	commitVersion  = 1
	edgeVersion    = 1
	flowVersion    = 1
)

// columns holds the plain fields of an execution while it is converted to or from a row.
type columns struct {
	ID      base.UUID
	N       uint8
	Class   int32
	Created base.Time

	Status       core.Status
	Reason       core.Reason
	Next         core.Next
	Priority     int
	Order        int64
	QueuedAt     base.Time
	StatusSince  base.Time
	MutatedAt    base.Time
	CompletedAt  base.Time
	WakeAt       base.Time
	TimerAt      base.Time
	LeaseEpoch   int64
	LeaseID      base.UUID // of the lease, or of the last one
	AttemptID    base.UUID
	LeaseExpires base.Time
	LeaseRenewed base.Time
	LeaseTTL     base.Millis
}

// inputOf returns nil iff the input is not loaded.
func inputOf(x *core.Execution) []byte {
	if x.Input.Data == nil && x.Input.Size == 0 {
		return []byte{}
	}
	return x.Input.Data
}

// columnsOf copies the plain fields of an execution.
func columnsOf(x *core.Execution) columns {
	r := columns{
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

// execution is the inverse of columnsOf.
func (r *columns) execution(class *core.Class) *core.Execution {
	return &core.Execution{
		ID: base.ID{N: r.N, UUID: r.ID}, Class: class, CreatedAt: r.Created,
		Status: r.Status, Reason: r.Reason, Next: r.Next, Priority: r.Priority, OrderKey: r.Order,
		QueuedAt: r.QueuedAt, StatusSince: r.StatusSince, LastMutationAt: r.MutatedAt, CompletedAt: r.CompletedAt,
		WakeAt: r.WakeAt, TimerAt: r.TimerAt, LeaseEpoch: r.LeaseEpoch,
	}
}

func (r *columns) knownState() bool {
	return r.Status != core.StatusNone && known(r.Status.String()) && known(r.Reason.String()) && known(r.Next.String())
}

// Parts of Row.Origin. Values are stored.
const (
	fixedCreator uint64 = 1 << iota
	fixedKey
	fixedFlow
	fixedParent
	fixedPolicy
	fixedTrace
	fixedInputSum
	fixedCreatorKey
	// No data follows the bits below, so that versions that do not know them read the rest: to them, the submission stated the retries.
	fixedRetryDefault
	fixedRetryOfLane
	fixedRetryCountLeftOut
	fixedRetryMaxLeftOut
)

func encodePolicy(x *core.Execution) []byte {
	if x.Policy == nil {
		return nil
	}
	return x.Policy.Encode()
}

func fixedRoom(x *core.Execution, policy []byte) int {
	room := 64 + len(x.Creator) + len(x.CreatorKey) + len(x.IdempotencyKey) + len(policy)
	if x.Trace != nil {
		room += 8 + len(x.Trace.Parent) + len(x.Trace.State) + len(x.Trace.Baggage)
	}
	return room
}

// readFixed reads the immutable part to its end. input is nil if it is not loaded.
func (c *coder) readFixed(x *core.Execution, policies *Policies, input []byte) (err error) {
	var policy []byte
	var sum uint32
	summed := c.fixed(x, &policy, &sum)
	switch {
	case !c.finished():
		return corrupt("identity", x.ID.UUID)
	case summed && input != nil && sum != sumOf(input):
		return damaged("input", x.ID.UUID)
	}
	if x.Policy, err = policies.decode(policy); err != nil {
		return base.Errorf(base.CodeCorruption, "the stored policy of %s cannot be read: %w", x.ID.UUID, err)
	}
	return nil
}

// retryOf returns what of the retry policy is a default.
func retryOf(parts uint64) (origin core.RetryOrigin, leftOut core.RetryMembers) {
	switch {
	case parts&fixedRetryDefault != 0:
		origin = core.RetryDefault
	case parts&fixedRetryOfLane != 0:
		origin = core.RetryOfLane
	}
	if parts&fixedRetryCountLeftOut != 0 {
		leftOut |= core.RetryCountLeftOut
	}
	if parts&fixedRetryMaxLeftOut != 0 {
		leftOut |= core.RetryMaxLeftOut
	}
	return origin, leftOut
}

// fixed codes the immutable part. inputSum is the checksum of the input; summed reports whether there is one.
func (c *coder) fixed(x *core.Execution, policy *[]byte, inputSum *uint32) (summed bool) {
	parts := bits(fixedCreator, x.Creator != "") |
		bits(fixedKey, x.IdempotencyKey != "") |
		bits(fixedFlow, x.FlowID != base.ID{} && (x.Member == nil || !x.Member.Late)) |
		bits(fixedParent, x.ParentID != base.ID{}) |
		bits(fixedPolicy, *policy != nil) |
		bits(fixedTrace, x.Trace != nil) |
		bits(fixedCreatorKey, x.CreatorKey != "") |
		bits(fixedRetryDefault, x.RetryOrigin == core.RetryDefault) |
		bits(fixedRetryOfLane, x.RetryOrigin == core.RetryOfLane) |
		bits(fixedRetryCountLeftOut, x.RetryLeftOut&core.RetryCountLeftOut != 0) |
		bits(fixedRetryMaxLeftOut, x.RetryLeftOut&core.RetryMaxLeftOut != 0) |
		fixedInputSum
	c.uint(&parts)
	if c.reading {
		x.RetryOrigin, x.RetryLeftOut = retryOf(parts)
	}
	if parts&fixedCreator != 0 {
		c.text(&x.Creator)
	}
	if parts&fixedCreatorKey != 0 {
		c.text(&x.CreatorKey)
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
	if parts&fixedTrace != 0 {
		c.trace(present(c, &x.Trace))
	}
	c.payload(&x.Input)
	if summed = parts&fixedInputSum != 0; summed {
		c.sum(inputSum)
	}
	return summed
}
