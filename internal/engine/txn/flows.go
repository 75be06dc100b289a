package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Graphs are graphs of executions: flows and their members, sub-flows, and the children of workers.
type Graphs struct{ *Engine }

// NewGraphs makes the room of flows.
func NewGraphs(e *Engine) *Graphs {
	f := &Graphs{e}
	e.UseGraphs(f)
	e.OnPhases(Phases{
		Lock:   func(ctx context.Context, u *Tx, batch []*request) error { return u.lockGraphs(ctx, batch) },
		Settle: func(ctx context.Context, u *Tx) error { return u.advanceFlows(ctx) },
		Flush:  func(u *Tx) { u.writeFlows() },
		Needs: func(u *Tx, cmd command, held store.Lock) bool {
			locker, ok := cmd.(flowLocker)
			return ok && held.Doc.Kind == DocFlow && slices.ContainsFunc(locker.Flows(u), func(id core.UUID) bool { return FlowRef(id) == held.Doc })
		},
		RowNeeds: func(row *Row, held store.Lock) bool {
			return held.Doc.Kind == DocFlow && row.JustEnded() && FlowRef(row.Exec.FlowID.UUID) == held.Doc
		},
	})
	on := func(kind string, do func(context.Context, task) error) {
		e.OnTask(kind, func(ctx context.Context, _ store.DocRef, t task) error { return do(ctx, t) })
	}
	on(taskResolveEdges, f.resolveLeft)
	on(taskCancelLosers, f.cancelLosers)
	on(taskCancelFlow, f.cancelMembers)
	on(taskBeginSubflow, f.beginSubflow)
	on(taskEndNode, f.endNode)
	on(taskEndChildren, f.endChildren)
	on(taskSealQuorums, func(ctx context.Context, t task) error { return f.judgeQuorums(ctx, t.Flow) })
	on(taskRemoveFlow, f.removeFlow)
	on(taskSpreadBudget, func(ctx context.Context, t task) error { return f.spreadBudget(ctx, t.Flow, t.Budget) })
	e.OnTask(taskRetireLane, f.retireLane)
	e.OnTask(taskRetireAll, f.retireAll)
	return f
}

// Locked returns a flow that the transaction has locked; nil: it does not exist, or is not locked.
func (e *Graphs) Locked(u *Tx, id core.UUID) *core.Flow { return u.flow(id) }

// Touch marks it as changed.
func (e *Graphs) Touch(u *Tx, f *core.Flow) { u.touchFlow(f) }

// Read reads a flow that the caller sees. Codes: flow_not_found.
func (e *Graphs) Read(ctx context.Context, c Caller, id core.GivenID) (*core.Flow, error) {
	return e.ReadFlow(ctx, c, id)
}

// Spread lets a budget reach the members of a flow and of those below it; one that is gone it takes away from them.
func (e *Graphs) Spread(ctx context.Context, flow, budget core.UUID) error {
	return e.spreadBudget(ctx, flow, budget)
}

// flowsOf returns the room, for what is done in a transaction.
func flowsOf(u *Tx) *Graphs { return u.Engine.graphs.(*Graphs) }
