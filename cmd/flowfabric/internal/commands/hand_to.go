package commands

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// revoke takes a lease away, and hands the execution to the instance of --hand-to.
func revoke(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, f *verbFlags) (outcome, error) {
	to, err := f.handTo(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	answer, err := c.Operate().Revoke(ctx, id, ops.RevokeOptions{Action: f.action(), Hold: f.hold, Handoff: to})
	if err != nil {
		return outcome{}, err
	}
	return revoked(id, answer), nil
}

// handTo returns the registered data of the instance that takes over; nil if none was named.
func (f *verbFlags) handTo(ctx context.Context, c *flowfabric.Client) (*api.Handoff, error) {
	if f.instanceID == "" {
		if f.given("grant-ttl") {
			return nil, show.Invalid("--grant-ttl", "name the instance with --hand-to", "a grant needs an instance")
		}
		return nil, nil
	}
	worker, err := c.Workers().Get(ctx, f.instanceID)
	if err != nil {
		return nil, err
	}
	return &api.Handoff{WorkerID: worker.WorkerID, InstanceID: worker.InstanceID, Capabilities: worker.Capabilities, GrantTTL: f.grantTTL}, nil
}

// revoked shows the answer with the grant key, which the caller must pass to the worker.
func revoked(id flowfabric.ID, answer api.Revocation) outcome {
	shown := answer.Revealed()
	text := answer.Outcome
	switch {
	case answer.HandToErr != nil:
		text += ", not handed over: " + answer.HandToErr.Error()
	case answer.Grant != nil:
		text += ", grant " + shown.Grant.GrantKey
	}
	return outcome{id, text, shown}
}
