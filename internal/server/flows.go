package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveFlows() {
	handle(s, wire.SubmitFlow, s.submitFlow)
	handle(s, wire.ListFlows, s.listFlows)
	handle(s, wire.GetFlow, s.getFlow)
	handle(s, wire.ExtendFlow, s.extendFlow)
	handle(s, wire.CancelFlow, s.cancelFlow)
	handle(s, wire.ListFlowEvents, s.listFlowEvents)
	handle(s, wire.SetJoin, s.setJoin)
	deliver(s, wire.ReadInput)
	handle(s, wire.SpawnChildren, s.spawn)
}

// submitFlow submits a graph, makes an empty one, or checks one (U89).
func (s *Server) submitFlow(ctx context.Context, x *exchange, r *wire.SubmitFlowRequest) (answer, error) {
	if r.Body.DryRun {
		checked, err := ask(ctx, s, x.by, wire.CheckFlow, r)
		return answer{status: http.StatusOK, body: checked}, err
	}
	if err := s.keys.submit(ctx, x.caller.Namespace, max(nodesIn(r.Body.Nodes), 1)); err != nil {
		return answer{}, err
	}
	run, err := ask(ctx, s, x.by, wire.SubmitFlow, r)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusCreated, body: run}
	if !run.Created {
		a.status = http.StatusOK
		if err := s.hideFlow(ctx, x, run); err != nil {
			return answer{}, err
		}
	}
	return a.with("Location", "/v1/flows/"+string(run.ID)), nil
}

// hideFlow leaves of a flow that was there before what the caller has submitted itself, unless it may read the flow (U122).
func (s *Server) hideFlow(ctx context.Context, x *exchange, run *api.FlowRun) error {
	for _, c := range wire.Allows(wire.GetFlow.Operation, x.caller.roles) {
		seen := c != wire.OwnWork
		var err error
		if !seen {
			seen, err = s.ownFlow(ctx, x, run.ID)
		}
		if seen || err != nil {
			return err
		}
	}
	v := &run.FlowView
	run.FlowView = api.FlowView{
		ID: v.ID, Partition: v.Partition, Namespace: v.Namespace, Kind: v.Kind, State: v.State, Sealed: v.Sealed, RootID: v.RootID,
		CreatedAt: v.CreatedAt, LastMutationAt: v.CreatedAt,
	}
	return nil
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
func (s *Server) extendFlow(ctx context.Context, x *exchange, r *wire.ExtendFlowRequest) (answer, error) {
	by := x.by
	if x.under == wire.OwnWork {
		by = x.asSubmitter()
	}
	if err := s.keys.submit(ctx, x.caller.Namespace, nodesIn(r.Body.Nodes)); err != nil {
		return answer{}, err
	}
	run, err := ask(ctx, s, by, wire.ExtendFlow, r)
	return shows(run), err
}

// spawn starts work below a running execution (U75).
func (s *Server) spawn(ctx context.Context, x *exchange, r *wire.SpawnRequest) (answer, error) {
	if err := s.keys.submit(ctx, x.caller.Namespace, nodesIn(r.Body.Children)); err != nil {
		return answer{}, err
	}
	spawned, err := ask(ctx, s, x.by, wire.SpawnChildren, r)
	return shows(spawned), err
}

// listFlows lists flows, newest first (U91). Who only submits sees what it made itself.
func (s *Server) listFlows(ctx context.Context, x *exchange, r *wire.ListFlowsRequest) (answer, error) {
	by := x.by
	if !slices.Contains(x.conditions, wire.Always) {
		by = x.asSubmitter()
	}
	page, err := ask(ctx, s, by, wire.ListFlows, r)
	return shows(page), err
}

// getFlow returns a flow, or waits for its end (U91).
func (s *Server) getFlow(ctx context.Context, x *exchange, r *wire.GetFlowRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	id := api.ID(r.ID)
	flow, err := s.flow(ctx, x.by, id, 0)
	if err != nil {
		return answer{}, err
	}
	if wait.atMost > 0 && !flow.State.Terminal() {
		ended, err := s.until(ctx, x, s.readers, wait.atMost, func(ctx context.Context) (err error) {
			flow, err = awaited(ctx, func() (*api.FlowView, error) { return s.flow(ctx, x.by, id, longPoll) },
				func(flow *api.FlowView) bool { return flow.State.Terminal() })
			return err
		})
		if ended {
			flow, err = s.flow(ctx, x.by, id, 0)
		}
		if err != nil {
			return answer{}, err
		}
	}
	return wait.applied(shows(flow)), nil
}

// flow returns a flow; if wait is not 0, once it has ended or the wait is over.
func (s *Server) flow(ctx context.Context, by service.Caller, id api.ID, wait time.Duration) (*api.FlowView, error) {
	return ask(ctx, s, by, wire.GetFlow, &wire.GetFlowRequest{ByFlow: wire.ByFlow{ID: string(id)}, WaitFields: wire.WaitUpTo(wait)})
}

// flowCancelWait is the longest wait of a cancel (U18).
const flowCancelWait = 300 * time.Second

// cancelFlow ends a flow (U93).
func (s *Server) cancelFlow(ctx context.Context, x *exchange, r *wire.CancelFlowRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, flowCancelWait)
	if err != nil {
		return answer{}, err
	}
	progress, err := s.cancelled(ctx, x, r, wait.atMost)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: http.StatusOK, body: progress}
	if progress.Remaining > 0 {
		a.status = http.StatusAccepted
	}
	return wait.applied(a), nil
}

// cancelled cancels a flow and waits as long as the caller and the server do.
func (s *Server) cancelled(ctx context.Context, x *exchange, r *wire.CancelFlowRequest, wait time.Duration) (progress *api.FlowCancelProgress, err error) {
	now := *r
	now.WaitFields = wire.WaitFields{}
	if wait == 0 {
		return ask(ctx, s, x.by, wire.CancelFlow, &now)
	}
	waiting, ms := now, wait.Milliseconds()
	waiting.WaitMS = &ms
	ended, err := s.until(ctx, x, s.readers, wait+claimSlack, func(ctx context.Context) (err error) {
		progress, err = ask(ctx, s, x.by, wire.CancelFlow, &waiting)
		return err
	})
	if !ended {
		return progress, err
	}
	x.caller.RequestKey = "" // a further cancel, which returns the progress
	return ask(ctx, s, x.acting(), wire.CancelFlow, &now)
}

// listFlowEvents reads or follows the events of a flow (U91).
func (s *Server) listFlowEvents(ctx context.Context, x *exchange, r *wire.FlowEventsRequest) (answer, error) {
	if _, err := s.flow(ctx, x.by, api.ID(r.ID), 0); err != nil {
		return answer{}, err
	}
	return s.readEvents(ctx, x, &wire.EventsRequest{WaitFields: r.WaitFields, PositionFields: r.PositionFields, FlowID: r.ID})
}

// setJoin says how many edges a member needs (U92).
func (s *Server) setJoin(ctx context.Context, x *exchange, r *wire.SetJoinRequest) (answer, error) {
	join, err := ask(ctx, s, x.by, wire.SetJoin, r)
	if err != nil || join.Changed {
		return shows(join), err
	}
	return shows(flat{outcomeOnly{"unchanged"}, join}), nil
}
