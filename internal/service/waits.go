package service

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Service) waits() {
	on(s, wire.ListExecutionSignals, s.listSignals)
	on(s, wire.ListSuspensions, s.listSuspensions)
	on(s, wire.GetSuspension, s.getSuspension)
	on(s, wire.ListExecutionWaitpoints, s.listExecutionWaitpoints)
	on(s, wire.ListWaitpoints, s.listWaitpoints)
	on(s, wire.GetWaitpoint, s.getWaitpoint)
	on(s, wire.ListLinks, s.listLinks)
	on(s, wire.ListSuspended, s.listSuspended)
	on(s, wire.ListApprovals, s.listApprovals)
}

// listSignals lists the signals of an execution with their payloads: callers that return fewer of them remove them (U42).
func (s *Service) listSignals(ctx context.Context, c Caller, r *wire.ListSignalsRequest) (api.Page[api.SignalRecord], error) {
	return page(r.PageFields, SignalOf, func(cursor string, limit *int) ([]core.Signal, string, error) {
		id, err := base.ParseID(r.ID)
		if err != nil {
			return nil, "", err
		}
		query := engine.SignalQuery{Cursor: cursor, Limit: limit}
		if r.Suspension != "" {
			if query.Suspension, err = uuidOf("suspension_id", r.Suspension); err != nil {
				return nil, "", err
			}
		}
		found, err := s.engine.Signals(ctx, c.client(), id, query)
		return found.Items, found.Next, err
	})
}

// listSuspensions lists the waits of an execution (U42).
func (s *Service) listSuspensions(ctx context.Context, c Caller, r *wire.PageByID) (api.Page[api.SuspensionRecord], error) {
	same := func(one api.SuspensionRecord) api.SuspensionRecord { return one }
	return page(r.PageFields, same, func(cursor string, limit *int) ([]api.SuspensionRecord, string, error) {
		id, err := base.ParseID(r.ID)
		if err != nil {
			return nil, "", err
		}
		found, err := s.engine.Suspensions(ctx, c.client(), id, cursor, limit)
		if err != nil {
			return nil, "", err
		}
		all := make([]api.SuspensionRecord, len(found.Items))
		for i := range found.Items {
			if all[i], err = suspensionOf(&found.Items[i]); err != nil {
				return nil, "", err
			}
		}
		return all, found.Next, nil
	})
}

// getSuspension returns the wait that is open or ended last; a zero one if there was none (U42).
func (s *Service) getSuspension(ctx context.Context, c Caller, r *wire.GetSuspensionRequest) (api.SuspensionRecord, error) {
	id, err := base.ParseID(r.ID)
	if err != nil {
		return api.SuspensionRecord{}, err
	}
	found, err := s.engine.Observe(ctx, c.client(), id)
	if err != nil || found == nil {
		return api.SuspensionRecord{}, err
	}
	return suspensionOf(found)
}

// listExecutionWaitpoints lists the waitpoints of an execution (U42).
func (s *Service) listExecutionWaitpoints(ctx context.Context, c Caller, r *wire.ListExecutionWaitpointsRequest) (api.Page[api.Waitpoint], error) {
	all := &wire.ListWaitpointsRequest{PageFields: r.PageFields, ExecutionID: r.ID}
	if r.IncludeClosed {
		all.State = "all"
	}
	return s.listWaitpoints(ctx, c, all)
}

// listWaitpoints lists waitpoints (U79).
func (s *Service) listWaitpoints(ctx context.Context, c Caller, r *wire.ListWaitpointsRequest) (api.Page[api.Waitpoint], error) {
	return page(r.PageFields, waitpointViewOf, func(cursor string, limit *int) ([]core.WaitpointView, string, error) {
		execution, err := givenID(api.ID(r.ExecutionID))
		if err != nil {
			return nil, "", err
		}
		query := engine.WaitpointQuery{Execution: execution, State: r.State, Key: r.WaitpointKey, Cursor: cursor, Limit: limit}
		found, err := s.engine.Waitpoints(ctx, c.client(), query)
		return found.Items, found.Next, err
	})
}

// getWaitpoint returns a waitpoint without its token (U79).
func (s *Service) getWaitpoint(ctx context.Context, c Caller, r *wire.ByWaitpoint) (api.Waitpoint, error) {
	id, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.Waitpoint{}, err
	}
	found, err := s.engine.Waitpoint(ctx, c.client(), id)
	if err != nil {
		return api.Waitpoint{}, err
	}
	return waitpointViewOf(found), nil
}

// listLinks lists all links of a waitpoint: callers that need a part of them select it (U84).
func (s *Service) listLinks(ctx context.Context, c Caller, r *wire.ListLinksRequest) (api.Page[api.ApprovalLink], error) {
	id, err := uuidOf("waitpoint_id", r.Waitpoint)
	if err != nil {
		return api.Page[api.ApprovalLink]{}, err
	}
	found, err := s.engine.Links(ctx, c.client(), id)
	return api.Page[api.ApprovalLink]{Items: each(found, linkViewOf)}, err
}

// listSuspended lists suspended executions (U85).
func (s *Service) listSuspended(ctx context.Context, c Caller, r *wire.ListSuspendedRequest) (api.Page[api.Suspended], error) {
	var reasons []string
	if r.ReasonCode != "" {
		reasons = []string{r.ReasonCode}
	}
	return s.suspended(ctx, c, r.SuspendedFields, r.PageFields, reasons)
}

// forPeople are the reasons of waits that people end.
var forPeople = []string{"waiting_for_approval", "paused_by_budget"}

// listApprovals lists executions that wait for people (U85).
func (s *Service) listApprovals(ctx context.Context, c Caller, r *wire.ListApprovalsRequest) (api.Page[api.Suspended], error) {
	return s.suspended(ctx, c, r.SuspendedFields, r.PageFields, forPeople)
}

func (s *Service) suspended(ctx context.Context, c Caller, f wire.SuspendedFields, p wire.PageFields, reasons []string) (api.Page[api.Suspended], error) {
	return page(p, suspendedOf, func(cursor string, limit *int) ([]engine.SuspendedItem, string, error) {
		flow, err := givenID(api.ID(f.FlowID))
		if err != nil {
			return nil, "", err
		}
		query := engine.SuspendedQuery{Lane: f.Lane, ReasonCodes: reasons, FlowID: flow, Approver: f.Approver, Cursor: cursor, Limit: limit}
		for key, value := range f.Tags {
			if value == nil { // the server has refused it
				continue
			}
			if query.Tags == nil {
				query.Tags = map[string]string{}
			}
			query.Tags[key] = *value
		}
		found, err := s.engine.Suspended(ctx, c.client(), query)
		return found.Items, found.Next, err
	})
}
