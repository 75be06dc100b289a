package service

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// fenceOf parses the three parts of a fence; absent ones are left for validation to refuse (fence_required, partial_fence).
func fenceOf(l wire.LeaseRef) (core.Fence, error) {
	fence := core.Fence{Epoch: l.Epoch}
	for _, part := range []struct {
		name string
		text string
		into *base.UUID
	}{{"lease_id", l.LeaseID, &fence.LeaseID}, {"attempt_id", l.AttemptID, &fence.AttemptID}} {
		parsed, ok := base.ParseUUID(part.text)
		if !ok && part.text != "" {
			return core.Fence{}, base.Errorf(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(part.text)).
				WithField("lease." + part.name).WithHint("hand the lease back as the claim gave it")
		}
		*part.into = parsed
	}
	return fence, nil
}

// fenced holds what commands under leases have in common: an execution and a fence (U27).
func fenced(r wire.FencedByID, body wire.LeaseField) (base.GivenID, core.Fence, error) {
	lease, err := wire.PickLease(body.Lease, r.LeaseHeader)
	if err != nil {
		return base.GivenID{}, core.Fence{}, api.FaultsError(err)
	}
	id, err := base.ParseID(r.ID)
	if err != nil {
		return id, core.Fence{}, err
	}
	fence, err := fenceOf(lease)
	return id, fence, err
}

// holder returns the acting caller: the worker that has the lease, or without a lease an operator, who has no fence.
func (c *Caller) holder(body wire.LeaseField, head wire.LeaseHeaderField) (engine.Caller, *core.Fence, error) {
	lease, err := wire.PickLease(body.Lease, head.LeaseHeader)
	switch {
	case err != nil:
		return engine.Caller{}, nil, api.FaultsError(err)
	case lease.IsZero():
		return c.operator(), nil, nil
	}
	fence, err := fenceOf(lease)
	return c.worker(), &fence, err
}
