package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveFlows() {
	handle(s, wire.SubmitFlow, s.submitFlow)
	handle(s, wire.ListFlows, s.listFlows)
	handle(s, wire.GetFlow, s.getFlow)
	handle(s, wire.ExtendFlow, s.extendFlow)
	handle(s, wire.SealFlow, s.sealFlow)
	handle(s, wire.CancelFlow, s.cancelFlow)
	handle(s, wire.DeleteFlow, s.deleteFlow)
	handle(s, wire.GetGraph, s.getGraph)
	handle(s, wire.ListFlowMembers, s.listMembers)
	handle(s, wire.ListFlowEdges, s.listEdges)
	handle(s, wire.GetFlowEdge, s.getEdge)
	handle(s, wire.GetFlowUsage, s.getFlowUsage)
	handle(s, wire.ListFlowEvents, s.listFlowEvents)
	handle(s, wire.GetJoin, s.getJoin)
	handle(s, wire.SetJoin, s.setJoin)
	handle(s, wire.PatchFlowTags, s.patchFlowTags)
	handle(s, wire.PutFlowTags, s.putFlowTags)
	handle(s, wire.ListChildren, s.listChildren)
	deliver(s, wire.ReadInput)
	handle(s, wire.SpawnChildren, s.spawn)
	handle(s, wire.WaitForChildren, s.waitChildren)
}

// submitFlow hands in a graph, makes an empty one, or checks one (U89).
func (s *Server) submitFlow(ctx context.Context, r *wire.SubmitFlowRequest) (answer, error) {
	var flow flowfabric.Flow
	if err := through(r.Body.FlowSubmission, &flow); err != nil {
		return answer{}, err
	}
	switch {
	case r.Empty && r.Body.DryRun:
		return answer{}, refuse("invalid_argument", "there is nothing to check in an empty flow").at("/dry_run")
	case r.Body.DryRun:
		order, err := s.client.Flows().Check(ctx, flow)
		if order == nil {
			order = []string{}
		}
		return answer{status: http.StatusOK, body: wire.FlowChecked{OK: true, Order: order}}, err
	}
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, max(nodesIn(r.Body.Nodes), 1)); err != nil {
		return answer{}, err
	}
	submit := s.client.Flows().Submit
	if r.Empty {
		submit = s.client.Flows().Create
	}
	run, err := submit(ctx, flow)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated, body: run}
	if !run.Created {
		a.status = http.StatusOK
	}
	return a.with("Location", "/v1/flows/"+string(run.ID)), nil
}

// nodesIn counts the executions that nodes make in the end.
func nodesIn(nodes []wire.FlowNode) int {
	n := len(nodes)
	for i := range nodes {
		if nodes[i].Flow != nil {
			n += nodesIn(nodes[i].Flow.Nodes)
		}
	}
	return n
}

// extendFlow adds to a graph (U90).
func (s *Server) extendFlow(ctx context.Context, r *wire.ExtendFlowRequest) (answer, error) {
	var more flowfabric.FlowExtension
	if err := through(r.Body, &more); err != nil {
		return answer{}, err
	}
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, nodesIn(r.Body.Nodes)); err != nil {
		return answer{}, err
	}
	more.Revision = revisionOf(r.IfMatch)
	run, err := s.client.Flows().Extend(ctx, flowfabric.ID(r.ID), more)
	return shows(run), err
}

// sealFlow says that nothing more comes (U90).
func (s *Server) sealFlow(ctx context.Context, r *wire.SealFlowRequest) (answer, error) {
	run, err := s.client.Flows().Seal(ctx, flowfabric.ID(r.ID), flowfabric.SealOptions{Revision: revisionOf(r.IfMatch)})
	return shows(run), err
}

// listFlows lists flows, newest first (U91). Who only submits sees what it made itself.
func (s *Server) listFlows(ctx context.Context, r *wire.ListFlowsRequest) (answer, error) {
	query := flowfabric.FlowQuery{
		Kind: r.Kind, State: flowfabric.FlowState(r.State), CreatedFrom: r.CreatedFrom.Time, CreatedTo: r.CreatedTo.Time, Creator: r.Creator,
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		value := r.Tags[key]
		if value == nil {
			return answer{}, refuse("invalid_argument", "the tag has no value").at("query.tag." + key).hint("write tag." + key + "=value")
		}
		if query.Tags == nil {
			query.Tags = map[string]string{}
		}
		query.Tags[key] = *value
	}
	if x := exchangeOf(ctx); !slices.Contains(x.conditions, wire.Always) {
		ctx = x.actingAsSubmitter(ctx)
	}
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.FlowView], error) {
		query.PageOptions = o
		return s.client.Flows().Page(ctx, query)
	})
}

// getFlow shows a flow, or waits for its end (U91).
func (s *Server) getFlow(ctx context.Context, r *wire.GetFlowRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	id := flowfabric.ID(r.ID)
	flow, err := s.client.Flows().Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	if wait.atMost > 0 && !flow.State.Terminal() {
		ended, err := s.until(ctx, s.readers, wait.atMost, func(ctx context.Context) (err error) {
			flow, err = s.client.Flows().Wait(ctx, id)
			return err
		})
		if ended {
			flow, err = s.client.Flows().Get(ctx, id)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return wait.told(shows(flow)), nil
}

// flowCancelWait is the longest wait of a cancel (U18).
const flowCancelWait = 300 * time.Second

// cancelFlow ends a flow (U93).
func (s *Server) cancelFlow(ctx context.Context, r *wire.CancelFlowRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, flowCancelWait)
	if err != nil {
		return answer{}, err
	}
	cancel := flowfabric.FlowCancel{Policy: flowfabric.CancelPolicy(r.Body.Policy), Reason: r.Body.Reason, Wait: wait.atMost}
	progress, err := s.cancelled(ctx, flowfabric.ID(r.ID), cancel)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusOK, body: progress}
	if progress.Remaining > 0 {
		a.status = http.StatusAccepted
	}
	return wait.told(a), nil
}

// deleteFlow removes a finished flow (U55).
func (s *Server) deleteFlow(ctx context.Context, r *wire.DeleteFlowRequest) (answer, error) {
	return nothing(), s.client.Flows().Delete(ctx, flowfabric.ID(r.ID), flowfabric.FlowDeletion{Reason: r.Body.Reason, Revision: revisionOf(r.IfMatch)})
}

// cancelled cancels a flow and waits as long as the caller and the server do.
func (s *Server) cancelled(ctx context.Context, id flowfabric.ID, c flowfabric.FlowCancel) (progress flowfabric.FlowCancelProgress, err error) {
	if c.Wait == 0 {
		return s.client.Flows().Cancel(ctx, id, c)
	}
	ended, err := s.until(ctx, s.readers, c.Wait+claimSlack, func(ctx context.Context) (err error) {
		progress, err = s.client.Flows().Cancel(ctx, id, c)
		return err
	})
	if !ended {
		return progress, err
	}
	x := exchangeOf(ctx)
	x.caller.RequestKey = "" // a further cancel, which shows how far it is
	c.Wait = 0
	return s.client.Flows().Cancel(x.acting(ctx), id, c)
}

// getGraph shows the members and the edges between them (U91).
func (s *Server) getGraph(ctx context.Context, r *wire.GetGraphRequest) (answer, error) {
	options := flowfabric.PageOptions{Cursor: r.Cursor}
	if r.Limit != nil {
		if options.Limit = *r.Limit; *r.Limit < 1 {
			return answer{}, refuse("invalid_argument", "a part has at least one member").at("query.limit")
		}
	}
	graph, err := s.client.Flows().GraphPage(ctx, flowfabric.ID(r.ID), options)
	return shows(graph), err
}

// listMembers lists the members by name (U91).
func (s *Server) listMembers(ctx context.Context, r *wire.ListMembersRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.FlowMember], error) {
		return s.client.Flows().MembersPage(ctx, flowfabric.ID(r.ID), flowfabric.MemberQuery{State: r.State, PageOptions: o})
	})
}

// listEdges lists the edges, or those of a member (U91).
func (s *Server) listEdges(ctx context.Context, r *wire.ListEdgesRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[flowfabric.EdgeView], error) {
		return s.client.Flows().EdgesPage(ctx, flowfabric.ID(r.ID), flowfabric.EdgeQuery{From: r.From, To: r.To, PageOptions: o})
	})
}

// getEdge shows one edge (U91).
func (s *Server) getEdge(ctx context.Context, r *wire.GetEdgeRequest) (answer, error) {
	edge, err := s.client.Flows().Edge(ctx, flowfabric.ID(r.ID), r.Edge)
	return shows(edge), err
}

// getFlowUsage shows what the members have used (U91).
func (s *Server) getFlowUsage(ctx context.Context, r *wire.ByFlow) (answer, error) {
	flow, err := s.client.Flows().Get(ctx, flowfabric.ID(r.ID))
	if err != nil {
		return answer{}, err
	}
	usage, err := s.client.Flows().Usage(ctx, flow.ID)
	return shows(wire.FlowUsage{FlowID: string(flow.ID), Usage: usage}), err
}

// listFlowEvents reads or follows the events of a flow (U91).
func (s *Server) listFlowEvents(ctx context.Context, r *wire.FlowEventsRequest) (answer, error) {
	if _, err := s.client.Flows().Get(ctx, flowfabric.ID(r.ID)); err != nil {
		return answer{}, err
	}
	return s.readEvents(ctx, &wire.EventsRequest{WaitFields: r.WaitFields, PositionFields: r.PositionFields, FlowID: r.ID})
}

// getJoin shows what a member waits for (U92).
func (s *Server) getJoin(ctx context.Context, r *wire.ByMember) (answer, error) {
	join, err := s.client.Flows().Join(ctx, flowfabric.ID(r.ID), r.Name)
	return shows(join), err
}

// setJoin says how many edges a member needs (U92).
func (s *Server) setJoin(ctx context.Context, r *wire.SetJoinRequest) (answer, error) {
	join, err := s.client.Flows().SetJoin(ctx, flowfabric.ID(r.ID), r.Name, flowfabric.Join{
		Policy: flowfabric.JoinPolicy(r.Body.Policy), K: r.Body.K, CancelRemaining: r.Body.OnSatisfied == wire.CancelRemaining,
	})
	if err != nil || join.Changed {
		return shows(join), err
	}
	return shows(flat{outcomeOnly{"unchanged"}, join}), nil
}

// patchFlowTags changes tags (U94).
func (s *Server) patchFlowTags(ctx context.Context, r *wire.PatchFlowTagsRequest) (answer, error) {
	return tagsShown(s.client.Flows().SetTags(ctx, flowfabric.ID(r.ID), r.Body))
}

// putFlowTags replaces all tags (U94).
func (s *Server) putFlowTags(ctx context.Context, r *wire.PutFlowTagsRequest) (answer, error) {
	return tagsShown(s.client.Flows().ReplaceTags(ctx, flowfabric.ID(r.ID), r.Body))
}

func tagsShown(tags map[string]string, err error) (answer, error) {
	if tags == nil {
		tags = map[string]string{}
	}
	return shows(wire.Tags{Tags: tags}), err
}
