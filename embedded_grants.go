package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func (e embeddedWork) Grant(ctx context.Context, r GrantRequest) ([]Grant, error) {
	if r.RequestKey == "" {
		r.RequestKey = e.client.requestKey(ctx)
	}
	if r.ExecutionID != "" {
		return e.grantOne(ctx, r)
	}
	request := engine.ClaimRequest{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Lanes: r.Lanes, Max: r.Max, Wait: r.Wait, Capabilities: r.Capabilities,
		Kinds: r.Kinds, Namespaces: r.Namespaces, LaneOrder: r.LaneOrder, GrantTTL: millis(r.GrantTTL), RequestKey: r.RequestKey,
		Repeat: r.Repeat,
	}
	grants, err := untilKnown(ctx, e.client.clock, func() ([]engine.Grant, error) { return e.client.engine.Grant(ctx, e.client.asWorker(ctx), request) })
	if err != nil {
		return nil, err
	}
	return each(grants, grantOf), nil
}

func (e embeddedWork) grantOne(ctx context.Context, r GrantRequest) ([]Grant, error) {
	given, err := parseID(r.ExecutionID)
	if err != nil {
		return nil, err
	}
	lane, err := r.lane()
	if err != nil {
		return nil, err
	}
	request := engine.TargetedRequest{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Capabilities: r.Capabilities, Lane: lane, GrantTTL: millis(r.GrantTTL), RequestKey: r.RequestKey,
	}
	grant, err := untilKnown(ctx, e.client.clock, func() (engine.Grant, error) {
		return e.client.engine.GrantOne(ctx, e.client.asWorker(ctx), given, request)
	})
	if err != nil {
		return nil, err
	}
	return []Grant{grantOf(grant)}, nil
}

// lane is the one that a named execution must be in; "": any.
func (r *GrantRequest) lane() (string, error) {
	switch len(r.Lanes) {
	case 0:
		return "", nil
	case 1:
		return r.Lanes[0], nil
	default:
		return "", newError(core.CodeInvalidArgument, "an execution is in one lane").At("lanes", "name none, or the one that it must be in")
	}
}

func grantOf(g engine.Grant) Grant {
	return Grant{ExecutionID: idOf(g.ID), PartitionKey: g.ID.Tag(), Key: GrantKey{g.Key}, ExpiresAt: g.ExpiresAt.Std()}
}

func (e embeddedWork) ClaimGrant(ctx context.Context, key GrantKey, r GrantClaim) (*Claimed, error) {
	request := engine.GrantClaim{WorkerID: r.WorkerID, InstanceID: r.InstanceID, TTL: millis(r.LeaseTTL)}
	task, err := untilKnown(ctx, e.client.clock, func() (engine.Task, error) {
		return e.client.engine.ClaimGrant(ctx, e.client.asWorker(ctx), key.GrantKey, request)
	})
	if err != nil {
		return nil, err
	}
	return claimedWithPolicy(task), nil
}

func (e embeddedWork) VerifyGrant(ctx context.Context, key GrantKey) error {
	_, err := untilKnown(ctx, e.client.clock, func() (None, error) {
		return None{}, e.client.engine.VerifyGrant(ctx, e.client.asWorker(ctx), key.GrantKey)
	})
	return err
}

func (e embeddedWork) ReturnGrant(ctx context.Context, key GrantKey) error {
	caller := e.client.asWorker(ctx)
	caller.RequestKey = e.client.requestKey(ctx)
	_, err := untilKnown(ctx, e.client.clock, func() (None, error) { return None{}, e.client.engine.ReturnGrant(ctx, caller, key.GrantKey) })
	return err
}
