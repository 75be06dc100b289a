package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteWork) Grant(ctx context.Context, g GrantRequest) ([]Grant, error) {
	var request wire.GrantRequest
	body := &request.Body
	body.WorkerID, body.WorkerInstanceID, body.Namespaces, body.Lanes, body.Kinds = g.WorkerID, g.InstanceID, g.Namespaces, g.Lanes, g.Kinds
	body.Max, body.WaitMS, body.Capabilities, body.LaneOrder = g.Max, millis(g.Wait), g.Capabilities, g.LaneOrder
	body.GrantTTLMS, body.ExecutionID = millis(g.GrantTTL), string(g.ExecutionID)
	if g.ExecutionID != "" {
		if _, err := parseID(g.ExecutionID); err != nil {
			return nil, err
		}
		body.WaitMS = 0
	}
	asked := r.client.clock.Now()
	staying, leave := r.client.stay(ctx)
	defer leave()
	answer, err := call(staying, r.client, wire.GrantWork, &request, sending{key: g.RequestKey, wait: g.Wait, repeat: g.Repeat})
	if err != nil {
		return nil, err
	}
	if len(answer.Grants) == 0 {
		r.client.rest(ctx, asked, g.Wait)
	}
	return each(answer.Grants, grantFrom), nil
}

func (r remoteWork) ClaimGrant(ctx context.Context, key GrantKey, g GrantClaim) (*Claimed, error) {
	var request wire.ClaimGrantRequest
	body := &request.Body
	body.GrantKey, body.WorkerID, body.WorkerInstanceID = key.Reveal(), g.WorkerID, g.InstanceID
	body.LeaseTTLMS, body.Encoding = millis(g.LeaseTTL), wire.EncodingBytes
	return oneTask(ctx, r.client, wire.ClaimGrant, &request, "")
}

func (r remoteWork) VerifyGrant(ctx context.Context, key GrantKey) error {
	var request wire.GrantKeyRequest
	request.Body.GrantKey = key.Reveal()
	_, err := call(ctx, r.client, wire.VerifyGrant, &request, sending{})
	return err
}

func (r remoteWork) ReturnGrant(ctx context.Context, key GrantKey) error {
	var request wire.GrantKeyRequest
	request.Body.GrantKey = key.Reveal()
	_, err := call(ctx, r.client, wire.ReturnGrant, &request, sending{})
	return err
}
