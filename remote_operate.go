package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// remoteOperate has the commands of operators whose values are no values of package api yet.
type remoteOperate struct{ client *remote }

func (r remoteOperate) Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	request := &wire.OperatorClaimRequest{ByID: path}
	body := &request.Body
	body.ActionFields, body.WorkerID, body.WorkerInstanceID = options.wire(), options.WorkerID, options.InstanceID
	body.LeaseTTLMS, body.Force, body.Encoding = millis(options.LeaseTTL), options.Force, wire.EncodingBytes
	return oneTask(ctx, r.client, wire.ClaimExecution, request, options.RequestKey)
}
