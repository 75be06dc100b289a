package service

import (
	"maps"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func flowOf(f *core.Flow) *api.FlowView {
	v := &api.FlowView{
		ID: idOf(f.ID), Partition: int(f.ID.N), Namespace: f.Namespace, Kind: f.Kind, State: api.FlowState(f.State), Sealed: f.Sealed, Revision: f.Revision,
		Nodes: f.Nodes, Edges: f.Edges, Output: f.Output, ParentID: idOf(f.Parent), RootID: idOf(f.Root), Depth: f.Depth, Tags: maps.Clone(f.Tags),
		Creator: f.Creator, CreatedAt: f.CreatedAt.Std(), LastMutationAt: f.LastMutationAt.Std(), EndedAt: f.EndedAt.Std(),
	}
	if c := f.Cancel; c != nil {
		v.Cancelled = &api.FlowCancellation{Policy: api.CancelPolicy(c.Policy), Reason: c.Reason, By: c.By, At: c.RequestedAt.Std()}
	}
	return v
}

func flowViewOf(v engine.FlowView) api.FlowView {
	shown := flowOf(v.Flow)
	shown.Phase, shown.Counts, shown.Joins = v.Phase, v.Counts, v.Joins
	return *shown
}

func flowRunOf(a engine.FlowAnswer) api.FlowRun {
	run := api.FlowRun{FlowView: *flowOf(a.Flow), Members: make(map[string]api.ID, len(a.Members)), Created: a.Created}
	for name, id := range a.Members {
		run.Members[name] = idOf(id)
	}
	return run
}

func memberOf(m engine.MemberView) api.FlowMember {
	x := m.Execution
	public, _ := core.Derive(x, m.Lane)
	shown := api.FlowMember{
		ID: idOf(x.ID), Kind: x.Class.Kind, Lane: x.Class.Lane, Status: api.Status(x.Status.String()), Reason: ReasonText(x.Reason), PublicState: public,
		RunIndex: x.RunIndex(), StartedAt: x.StartedAt.Std(), EndedAt: x.CompletedAt.Std(), Join: JoinOf(m.Join), DeletedAt: m.DeletedAt.Std(),
	}
	if x.Member != nil {
		shown.Name, shown.Optional, shown.SubFlow = x.Member.Name, x.Member.MayFail, x.Member.Subflow
	}
	return shown
}

func edgeOf(e core.Edge) api.EdgeView {
	v := api.EdgeView{
		ID: e.ID.String(), From: e.From.Name, FromID: idOf(e.From.ID), To: e.To.Name, ToID: idOf(e.To.ID), Kind: api.EdgeKind(e.Kind), Pass: e.Pass,
		State: string(e.State), ResolvedAt: e.Resolved.Std(),
	}
	if e.End != nil {
		v.Outcome, v.Run = api.Status(e.End.Status.String()), e.End.Run
	}
	return v
}

func cancelProgressOf(a engine.CancelFlowAnswer) api.FlowCancelProgress {
	return api.FlowCancelProgress{
		State: api.FlowState(a.State), Policy: api.CancelPolicy(a.Policy), Reason: a.Reason, Cancelled: a.Cancelled, FinishedBefore: a.FinishedBefore,
		Remaining: a.Remaining, AlreadyTerminal: a.AlreadyTerminal,
	}
}

// childOf converts a child as its parent sees it.
func childOf(c engine.ChildView) api.Child {
	child := api.Child{Name: c.Name, ID: idOf(c.ID), FailureReason: c.FailureReason}
	if c.Outcome != core.StatusNone {
		child.Outcome = api.Status(c.Outcome.String())
	}
	if c.Result != nil {
		child.HasResult, child.ResultType, child.ResultSize = true, c.Result.ContentType, c.Result.Size
	}
	return child
}
