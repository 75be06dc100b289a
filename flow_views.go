package flowfabric

import (
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

// Graphs as readers see them.

func flowOf(f *core.Flow) FlowView {
	v := FlowView{
		ID: idOf(f.ID), Partition: int(f.ID.N), Namespace: f.Namespace, Kind: f.Kind, State: FlowState(f.State), Sealed: f.Sealed, Revision: f.Revision, Nodes: f.Nodes, Edges: f.Edges,
		Output: f.Output, ParentID: idOf(f.Parent), RootID: idOf(f.Root), Depth: f.Depth, Tags: maps.Clone(f.Tags), Creator: f.Creator,
		CreatedAt: f.CreatedAt.Std(), LastMutationAt: f.LastMutationAt.Std(), EndedAt: f.EndedAt.Std(),
	}
	if c := f.Cancel; c != nil {
		v.Cancelled = &FlowCancellation{Policy: CancelPolicy(c.Policy), Reason: c.Reason, By: c.By, At: c.RequestedAt.Std()}
	}
	return v
}

func flowViewOf(v engine.FlowView) *FlowView {
	shown := flowOf(v.Flow)
	shown.Phase, shown.Counts, shown.Joins = v.Phase, v.Counts, v.Joins
	return &shown
}

func flowRunOf(a engine.FlowAnswer) *FlowRun {
	run := &FlowRun{FlowView: flowOf(a.Flow), Members: make(map[string]ID, len(a.Members)), Created: a.Created}
	for name, id := range a.Members {
		run.Members[name] = idOf(id)
	}
	return run
}

func memberOf(m engine.MemberView) FlowMember {
	x := m.Execution
	public, _ := core.Derive(x, m.Lane)
	shown := FlowMember{
		ID: idOf(x.ID), Kind: x.Class.Kind, Lane: x.Class.Lane, Status: Status(x.Status.String()), Reason: service.ReasonText(x.Reason), PublicState: public,
		RunIndex: x.RunIndex(), StartedAt: x.StartedAt.Std(), EndedAt: x.CompletedAt.Std(), Join: service.JoinOf(m.Join),
		DeletedAt: m.DeletedAt.Std(),
	}
	if x.Member != nil {
		shown.Name, shown.Optional, shown.SubFlow = x.Member.Name, x.Member.MayFail, x.Member.Subflow
	}
	return shown
}

func edgeOf(e core.Edge) EdgeView {
	v := EdgeView{
		Edge:   Edge{ID: e.ID.String(), From: e.From.Name, To: e.To.Name, Kind: EdgeKind(e.Kind), Pass: e.Pass},
		FromID: idOf(e.From.ID), ToID: idOf(e.To.ID), State: string(e.State), ResolvedAt: e.Resolved.Std(),
	}
	if e.End != nil {
		v.Outcome, v.Run = Status(e.End.Status.String()), e.End.Run
	}
	return v
}

func cancelProgressOf(a engine.CancelFlowAnswer) FlowCancelProgress {
	return FlowCancelProgress{
		State: FlowState(a.State), Policy: CancelPolicy(a.Policy), Reason: a.Reason, Cancelled: a.Cancelled, FinishedBefore: a.FinishedBefore,
		Remaining: a.Remaining, AlreadyTerminal: a.AlreadyTerminal,
	}
}
