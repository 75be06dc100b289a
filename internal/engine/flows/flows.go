// Package flows keeps graphs of executions: flows and their members, sub-flows, and the children of workers. It follows the ends of members: edges
// are resolved, joins decided, and a flow ends with its last member, in the transaction of the end or in follow-up work (ADR 9).
package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Graphs are graphs of executions: flows and their members, sub-flows, and the children of workers.
type Graphs struct {
	*work.Work
	derives idSecrets
	meter   meter
}

// flowEnds returns the kinds of the events with which a flow ends.
func flowEnds() []string { return []string{"flow.completed", "flow.failed", "flow.cancelled"} }

// New makes the room of flows.
func New(e *work.Work) *Graphs {
	f := &Graphs{Work: e}
	txn.UseRoom(e.Engine, slot, f)
	e.UseFlows(f)
	e.UseVanished(f.vanished)
	e.ListedBy(docFlowMark, 1)
	e.OnReborn(func() { f.derives.known.Store(nil) })
	e.OnPhases(txn.Phases{
		At:     txn.AtGraphs,
		Lock:   lockGraphs,
		Settle: advanceFlows,
		Flush:  writeFlows,
		Needs: func(u *txn.Tx, cmd txn.Command, held store.Lock) bool {
			return held.Doc.Kind == DocFlow && slices.ContainsFunc(flowsOf(u, cmd), func(id base.UUID) bool { return FlowRef(id) == held.Doc })
		},
		WantRemovable: wantBelow,
		Vanished: func(u *txn.Tx, row *txn.Row) bool {
			return row.Exec.Member != nil && row.Ended && flow(u, row.Exec.FlowID.UUID) == nil && u.Doc(FlowRef(row.Exec.FlowID.UUID)) == nil
		},
		WantVanished: func(row *txn.Row, want *store.Want) {
			if row.Exec.Member != nil && row.Exec.Status.Terminal() {
				want.Docs = append(want.Docs, FlowRef(row.Exec.FlowID.UUID))
			}
		},
		Retained: func(u *txn.Tx, row *txn.Row) {
			if f := flow(u, row.Exec.FlowID.UUID); f != nil { // a removal of the flow under way has to check again
				f.Touch(u.Now)
				touchFlow(u, f)
			}
		},
		RowNeeds: func(row *txn.Row, held store.Lock) bool {
			return held.Doc.Kind == DocFlow && row.JustEnded() && FlowRef(row.Exec.FlowID.UUID) == held.Doc
		},
	})
	for _, kind := range flowEnds() {
		e.WakesOn(kind, func(ev *core.Event) base.UUID { return ev.FlowID.UUID })
	}
	f.measure()
	f.registerWork()
	return f
}

// registerWork registers what the follow-up work of the room does.
func (e *Graphs) registerWork() {
	kernel := e.Work.Engine
	kernel.OnTimer(txn.TimerRetain, txn.TimerRule{Label: "retention", Do: e.sweepRetained})
	on := func(kind txn.TaskKind, do func(context.Context, taskArgs) error) {
		txn.OnTask(kernel, kind, func(ctx context.Context, t *txn.FollowUp[taskArgs]) error { return do(ctx, t.Args) })
	}
	on(taskResolveEdges, e.resolveLeft)
	on(taskCancelLosers, e.cancelLosers)
	on(taskCancelFlow, e.cancelMembers)
	on(taskBeginSubflow, e.beginSubflow)
	on(taskEndNode, e.endNode)
	on(taskEndChildren, e.endChildren)
	on(taskSealQuorums, func(ctx context.Context, t taskArgs) error { return e.judgeQuorums(ctx, t.Flow) })
	on(taskRemoveFlow, e.removeFlow)
	txn.OnTask(kernel, limits.TaskSpreadBudget, func(ctx context.Context, t *txn.FollowUp[limits.TaskArgs]) error {
		return e.spreadBudget(ctx, t.Args.Flow, t.Args.Budget)
	})
	txn.OnTask(kernel, work.TaskRetireLane, e.retireLane)
	txn.OnTask(kernel, work.TaskRetireAll, e.retireAll)
}

// taskArgs are the arguments of the follow-up work of the room. Each kind uses some of them.
type taskArgs struct {
	Cursor    string         `json:"cursor,omitempty"` // the list of the children that a parent waits for
	Execution base.UUID      `json:"execution,omitzero"`
	Flow      base.UUID      `json:"flow,omitzero"`
	End       *core.EndedRun `json:"end,omitempty"` // how the execution ended (F27)

	Satisfied bool      `json:"satisfied,omitempty"` // how a wait for children was decided
	Since     base.Time `json:"since,omitzero"`      // when that was
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
