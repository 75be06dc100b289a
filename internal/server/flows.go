package server

import (
	"context"
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
	pass(s, wire.SealFlow)
	handle(s, wire.CancelFlow, s.cancelFlow)
	pass(s, wire.DeleteFlow)
	pass(s, wire.GetGraph)
	pass(s, wire.ListFlowMembers)
	pass(s, wire.ListFlowEdges)
	pass(s, wire.GetFlowEdge)
	pass(s, wire.GetFlowUsage)
	handle(s, wire.ListFlowEvents, s.listFlowEvents)
	pass(s, wire.GetJoin)
	handle(s, wire.SetJoin, s.setJoin)
	pass(s, wire.PatchFlowTags)
	pass(s, wire.PutFlowTags)
	pass(s, wire.ListChildren)
	deliver(s, wire.ReadInput)
	handle(s, wire.SpawnChildren, s.spawn)
	pass(s, wire.WaitForChildren)
}

// submitFlow submits a graph, makes an empty one, or checks one (U89).
func (s *Server) submitFlow(ctx context.Context, r *wire.SubmitFlowRequest) (answer, error) {
	if r.Body.DryRun {
		checked, err := ask(ctx, s, wire.CheckFlow, r)
		return answer{status: http.StatusOK, body: checked}, err
	}
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, max(nodesIn(r.Body.Nodes), 1)); err != nil {
		return answer{}, err
	}
	run, err := ask(ctx, s, wire.SubmitFlow, r)
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

// extendFlow adds to a graph (U90). Who only submits adds only executions that it submitted itself.
func (s *Server) extendFlow(ctx context.Context, r *wire.ExtendFlowRequest) (answer, error) {
	if x := exchangeOf(ctx); x.under == wire.OwnWork {
		ctx = x.actingAsSubmitter(ctx)
	}
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, nodesIn(r.Body.Nodes)); err != nil {
		return answer{}, err
	}
	run, err := ask(ctx, s, wire.ExtendFlow, r)
	return shows(run), err
}

// spawn starts work below a running execution (U75).
func (s *Server) spawn(ctx context.Context, r *wire.SpawnRequest) (answer, error) {
	if err := s.keys.submit(ctx, exchangeOf(ctx).caller.Namespace, nodesIn(r.Body.Children)); err != nil {
		return answer{}, err
	}
	spawned, err := ask(ctx, s, wire.SpawnChildren, r)
	return shows(spawned), err
}

// listFlows lists flows, newest first (U91). Who only submits sees what it made itself.
func (s *Server) listFlows(ctx context.Context, r *wire.ListFlowsRequest) (answer, error) {
	if x := exchangeOf(ctx); !slices.Contains(x.conditions, wire.Always) {
		ctx = x.actingAsSubmitter(ctx)
	}
	page, err := ask(ctx, s, wire.ListFlows, r)
	return shows(page), err
}

// getFlow returns a flow, or waits for its end (U91).
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
	progress, err := s.cancelled(ctx, r, wait.atMost)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusOK, body: progress}
	if progress.Remaining > 0 {
		a.status = http.StatusAccepted
	}
	return wait.told(a), nil
}

// cancelled cancels a flow and waits as long as the caller and the server do.
func (s *Server) cancelled(ctx context.Context, r *wire.CancelFlowRequest, wait time.Duration) (progress *flowfabric.FlowCancelProgress, err error) {
	now := *r
	now.WaitFields = wire.WaitFields{}
	if wait == 0 {
		return ask(ctx, s, wire.CancelFlow, &now)
	}
	waiting, ms := now, wait.Milliseconds()
	waiting.WaitMS = &ms
	ended, err := s.until(ctx, s.readers, wait+claimSlack, func(ctx context.Context) (err error) {
		progress, err = ask(ctx, s, wire.CancelFlow, &waiting)
		return err
	})
	if !ended {
		return progress, err
	}
	x := exchangeOf(ctx)
	x.caller.RequestKey = "" // a further cancel, which returns the progress
	return ask(x.acting(ctx), s, wire.CancelFlow, &now)
}

// listFlowEvents reads or follows the events of a flow (U91).
func (s *Server) listFlowEvents(ctx context.Context, r *wire.FlowEventsRequest) (answer, error) {
	if _, err := s.client.Flows().Get(ctx, flowfabric.ID(r.ID)); err != nil {
		return answer{}, err
	}
	return s.readEvents(ctx, &wire.EventsRequest{WaitFields: r.WaitFields, PositionFields: r.PositionFields, FlowID: r.ID})
}

// setJoin says how many edges a member needs (U92).
func (s *Server) setJoin(ctx context.Context, r *wire.SetJoinRequest) (answer, error) {
	join, err := ask(ctx, s, wire.SetJoin, r)
	if err != nil || join.Changed {
		return shows(join), err
	}
	return shows(flat{outcomeOnly{"unchanged"}, join}), nil
}
