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

// act runs an operator's command on one execution until its outcome is known.
func (e embeddedOperate) act(ctx context.Context, id ID, a Action, do func(core.GivenID, engine.Operator) (engine.View, error)) (*Execution, error) {
	given, op, err := e.client.operation(ctx, id, a)
	if err != nil {
		return nil, err
	}
	view, err := untilKnown(ctx, e.client.clock, func() (engine.View, error) { return do(given, op) })
	if err != nil {
		return nil, err
	}
	return service.ExecutionOf(view), nil
}
