// Package flows keeps graphs of executions: flows and their members, sub-flows, and the children of workers. It follows the ends of members: edges
// are resolved, joins decided, and a flow ends with its last member, in the transaction of the end or in follow-up work (ADR 9).
package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Graphs are graphs of executions: flows and their members, sub-flows, and the children of workers.
type Graphs struct{ *work.Work }

// New makes the room of flows.
func New(e *work.Work) *Graphs {
	f := &Graphs{e}
	e.UseGraphs(f)
	e.OnPhases(txn.Phases{
		At:     txn.AtGraphs,
		Lock:   lockGraphs,
		Settle: advanceFlows,
		Flush:  writeFlows,
		Needs: func(u *txn.Tx, cmd txn.Command, held store.Lock) bool {
			locker, ok := cmd.(flowLocker)
			return ok && held.Doc.Kind == txn.DocFlow && slices.ContainsFunc(locker.Flows(u), func(id base.UUID) bool { return txn.FlowRef(id) == held.Doc })
		},
		RowNeeds: func(row *txn.Row, held store.Lock) bool {
			return held.Doc.Kind == txn.DocFlow && row.JustEnded() && txn.FlowRef(row.Exec.FlowID.UUID) == held.Doc
		},
	})
	on := func(kind string, do func(context.Context, txn.FollowUp) error) {
		e.OnTask(kind, func(ctx context.Context, _ store.DocRef, t txn.FollowUp) error { return do(ctx, t) })
	}
	on(txn.TaskResolveEdges, f.resolveLeft)
	on(txn.TaskCancelLosers, f.cancelLosers)
	on(txn.TaskCancelFlow, f.cancelMembers)
	on(txn.TaskBeginSubflow, f.beginSubflow)
	on(txn.TaskEndNode, f.endNode)
	on(txn.TaskEndChildren, f.endChildren)
	on(txn.TaskSealQuorums, func(ctx context.Context, t txn.FollowUp) error { return f.judgeQuorums(ctx, t.Flow) })
	on(txn.TaskRemoveFlow, f.removeFlow)
	on(txn.TaskSpreadBudget, func(ctx context.Context, t txn.FollowUp) error { return f.spreadBudget(ctx, t.Flow, t.Budget) })
	e.OnTask(txn.TaskRetireLane, f.retireLane)
	e.OnTask(txn.TaskRetireAll, f.retireAll)
	return f
}

// Locked returns a flow that the transaction has locked; nil: it does not exist, or is not locked.
func (e *Graphs) Locked(u *txn.Tx, id base.UUID) *core.Flow { return flow(u, id) }

// Touch marks it as changed.
func (e *Graphs) Touch(u *txn.Tx, f *core.Flow) { touchFlow(u, f) }

// Read reads a flow that the caller sees. Codes: flow_not_found.
func (e *Graphs) Read(ctx context.Context, c txn.Caller, id base.GivenID) (*core.Flow, error) {
	return e.ReadFlow(ctx, c, id)
}

// Spread lets a budget reach the members of a flow and of those below it; one that is gone it takes away from them.
func (e *Graphs) Spread(ctx context.Context, flow, budget base.UUID) error {
	return e.spreadBudget(ctx, flow, budget)
}
