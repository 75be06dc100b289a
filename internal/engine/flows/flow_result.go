package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Result returns the result of a succeeded execution (L123), or nil if it has none.
func (e *Graphs) Result(ctx context.Context, c txn.Caller, id base.GivenID) (*core.Payload, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}, Results: true})
	switch {
	case err != nil:
		return nil, err
	case x.Status == core.Succeeded && !x.ResultOf.IsZero():
		return e.resultOfOther(ctx, x)
	case !x.Status.Terminal():
		return nil, base.Errorf(base.CodeExecutionNotTerminal, "the execution is %s", x.Status).With("status", x.Status.String())
	case x.Status != core.Succeeded:
		err := base.Errorf(base.CodeExecutionNotSucceeded, "the execution ended %s", x.Status).
			With("status", x.Status.String()).With("reason", x.Reason.String())
		if x.Failure != nil {
			err.With("failure", *x.Failure)
		}
		return nil, err
	}
	return x.Result, nil
}

// resultOfOther reads the result of a flow node: that of a member of its sub-flow (F47).
func (e *Graphs) resultOfOther(ctx context.Context, x *core.Execution) (*core.Payload, error) {
	in := &core.NamedInput{Name: "result", Result: x.EndedRun().Result}
	if err := e.fillInputs(ctx, []*core.NamedInput{in}); err != nil {
		return nil, err
	}
	return &core.Payload{ContentType: in.Result.ContentType, Size: in.Result.Size, Data: in.Data}, nil
}
