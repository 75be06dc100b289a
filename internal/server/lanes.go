package server

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveLanes() {
	handle(s, wire.ListLanes, s.listLanes)
	handle(s, wire.GetLane, s.getLane)
	handle(s, wire.PutLane, s.putLane)
	lanes := s.client.Lanes()
	handle(s, wire.PauseLane, laneAction(lanes.Pause))
	handle(s, wire.ResumeLane, laneAction(lanes.Resume))
	handle(s, wire.DrainLane, laneAction(lanes.Drain))
	handle(s, wire.DisableLane, laneAction(lanes.Disable))
}

// listLanes lists the lanes by name (U100).
func (s *Server) listLanes(ctx context.Context, r *wire.ListLanesRequest) (answer, error) {
	return pageBy(r.PageFields, func(o flowfabric.PageOptions) (flowfabric.Page[*flowfabric.Lane], error) {
		return s.client.Lanes().Page(ctx, o)
	})
}

// getLane shows a lane (U100).
func (s *Server) getLane(ctx context.Context, r *wire.ByLane) (answer, error) {
	lane, err := s.client.Lanes().Get(ctx, r.Lane)
	if err != nil {
		return answer{}, err
	}
	still := *lane
	still.Rates = flowfabric.LaneRates{} // they change with time alone: what a reader has is not old for that (U17)
	return answer{body: lane, tagged: still}, nil
}

// putLane states all settings of a lane (U100).
func (s *Server) putLane(ctx context.Context, r *wire.PutLaneRequest) (answer, error) {
	b := r.Body
	settings := flowfabric.LaneSettings{
		State: flowfabric.LaneState(b.State), MaxConcurrent: b.MaxConcurrent, Ageing: millis(b.AgeingMS), Fairness: b.Fairness,
		FairnessWeights: b.FairnessWeights, Retention: retentionOf(b.RetentionMS),
	}
	lane, err := s.client.Lanes().Put(ctx, r.Lane, settings, flowfabric.LaneAction{Reason: b.Reason, Revision: revisionOf(r.IfMatch)})
	return shows(lane), err
}

// laneAction sets the state of a lane alone (U100).
func laneAction(
	set func(context.Context, string, ...flowfabric.LaneAction) (*flowfabric.Lane, error),
) func(context.Context, *wire.LaneActionRequest) (answer, error) {
	return func(ctx context.Context, r *wire.LaneActionRequest) (answer, error) {
		lane, err := set(ctx, r.Lane, flowfabric.LaneAction{Reason: r.Body.Reason, Revision: revisionOf(r.IfMatch)})
		return shows(lane), err
	}
}

// revisionOf is the revision of If-Match; nil: whatever it is.
func revisionOf(r *wire.Revision) *int64 { return (*int64)(r) }

func retentionOf(r *wire.Retention) flowfabric.Retention {
	if r == nil {
		return flowfabric.Retention{}
	}
	part := func(ms *int64) time.Duration {
		switch {
		case ms == nil:
			return 0
		case *ms < 0:
			return flowfabric.KeepForever
		default:
			return millis(*ms)
		}
	}
	return flowfabric.Retention{
		Succeeded: part(r.Succeeded), Failed: part(r.Failed), Cancelled: part(r.Cancelled), Expired: part(r.Expired), Skipped: part(r.Skipped),
	}
}
