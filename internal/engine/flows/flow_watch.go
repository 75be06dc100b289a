package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What tests do by hand that follow-up work does: nothing else needs it.

// EndChildren is the follow-up work that the end of a parent leaves for its children.
func (e *Graphs) EndChildren(ctx context.Context, parent base.GivenID, flow base.ID) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{parent.UUID}})
	if err != nil {
		return err
	}
	return e.endChildren(ctx, taskArgs{Execution: parent.UUID, Flow: flow.UUID, End: endOf(loaded.Executions[parent.UUID])})
}

// EndNode tells a flow node once more that its sub-flow has ended, as a second process does that has the same follow-up work (S64).
func (e *Graphs) EndNode(ctx context.Context, sub base.ID) error {
	return e.endNode(ctx, taskArgs{Flow: sub.UUID})
}

// FailNode is what a process does that has seen a flow node and cannot make its sub-flow.
func (e *Graphs) FailNode(ctx context.Context, seen *core.Execution, why error) error {
	return e.failNode(ctx, seen, why)
}
