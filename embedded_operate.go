package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

// embeddedOperate has the commands of operators whose values are no values of package api yet.
type embeddedOperate struct{ client *embedded }

// operation converts what an operator's command carries and gives it a request key, so that it can be repeated.
func (e *embedded) operation(ctx context.Context, id ID, a Action) (core.GivenID, engine.Operator, error) {
	given, err := parseID(id)
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	expect, err := a.Expect.core()
	if err != nil {
		return core.GivenID{}, engine.Operator{}, err
	}
	op := engine.Operator{Reason: a.Reason, RequestKey: a.RequestKey, Expect: expect}
	if op.RequestKey == "" {
		op.RequestKey = e.requestKey(ctx)
	}
	return given, op, nil
}

func (x Expect) core() (core.Expect, error) {
	expect, err := service.ExpectOf(x.wire())
	return expect, publicError(err)
}

// operatorWorker is whom an operator's claim is for unless it says otherwise (S35).
const operatorWorker = "operator"

func (e embeddedOperate) Claim(ctx context.Context, id ID, o ...OperatorClaim) (*Claimed, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, op, err := e.client.operation(ctx, id, options.Action)
	if err != nil {
		return nil, err
	}
	request := engine.TargetedRequest{
		WorkerID: options.WorkerID, InstanceID: options.InstanceID, TTL: millis(options.LeaseTTL),
		RequestKey: op.RequestKey, Force: options.Force, Reason: op.Reason, Expect: op.Expect,
	}
	if request.WorkerID == "" {
		request.WorkerID = operatorWorker
	}
	if request.InstanceID == "" {
		request.InstanceID = operatorWorker
	}
	task, err := untilKnown(ctx, e.client.clock, func() (engine.Task, error) {
		return e.client.engine.OperatorClaim(ctx, e.client.asOperator(ctx), given, request)
	})
	if err != nil {
		return nil, err
	}
	return claimedWithPolicy(task), nil
}
