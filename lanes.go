package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Lanes controls the named queues. A lane begins to exist with the first submit or Put that names it.
type Lanes struct{ via transport.Transport }

// LaneState opens or closes a lane.
type LaneState = api.LaneState

// The states of a lane.
const (
	LaneActive   = api.LaneActive
	LanePaused   = api.LanePaused   // submits enter, nothing is claimed
	LaneDraining = api.LaneDraining // no submits enter, work is claimed
	LaneDisabled = api.LaneDisabled // neither
)

// LaneSettings are all settings of a lane. The zero value is the default.
type LaneSettings = api.LaneSettings

// Lane is a lane, its settings, and its executions as far as the client's namespaces are concerned.
type Lane = api.Lane

// LaneRates are executions per second.
type LaneRates = api.LaneRates

// Rate is an average per second over two spans.
type Rate = api.Rate

// LaneAction is what a command on a lane may carry.
type LaneAction struct {
	Reason     string
	RequestKey string // minted by the client when empty
	// Revision refuses the command with precondition_failed when the lane has another one, and a Put with lane_not_found when
	// there is no lane; nil: whatever it is.
	Revision *int64
}

// List iterates over the lanes by name.
func (l Lanes) List(ctx context.Context) iter.Seq2[*Lane, error] {
	return walk(nil, "", func(cursor string) (Page[*Lane], error) { return l.Page(ctx, PageOptions{Cursor: cursor}) })
}

// Page returns one page of the lanes. Codes: invalid_cursor.
func (l Lanes) Page(ctx context.Context, o ...PageOptions) (Page[*Lane], error) {
	options, err := transport.Single(o)
	if err != nil {
		return Page[*Lane]{}, err
	}
	return value(transport.Call(ctx, l.via, wire.ListLanes, &wire.ListLanesRequest{PageFields: pageFields(options.Limit, options.Cursor)}, transport.Options{}))
}

// Get returns a lane. Codes: lane_not_found.
func (l Lanes) Get(ctx context.Context, name string) (*Lane, error) {
	return transport.Call(ctx, l.via, wire.GetLane, &wire.ByLane{Lane: name}, transport.Options{})
}

// Put states all settings of a lane, creating it if need be. Codes: invalid_argument, precondition_failed, lane_not_found with a Revision of
// one that is not there.
func (l Lanes) Put(ctx context.Context, name string, s LaneSettings, o ...LaneAction) (*Lane, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	s.Retention = s.Retention.Normalized()
	request := &wire.PutLaneRequest{ByLane: wire.ByLane{Lane: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.LaneSettings, request.Body.Reason = s, options.Reason
	return transport.Call(ctx, l.via, wire.PutLane, request, transport.Options{Key: options.RequestKey})
}

// Pause lets submits in and nothing out. Codes: lane_not_found, precondition_failed.
func (l Lanes) Pause(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return l.act(ctx, wire.PauseLane, name, o)
}

// Resume opens the lane again. Codes: lane_not_found, precondition_failed.
func (l Lanes) Resume(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return l.act(ctx, wire.ResumeLane, name, o)
}

// Drain lets work out and no submits in. Codes: lane_not_found, precondition_failed.
func (l Lanes) Drain(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return l.act(ctx, wire.DrainLane, name, o)
}

// Disable closes the lane both ways. Codes: lane_not_found, precondition_failed.
func (l Lanes) Disable(ctx context.Context, name string, o ...LaneAction) (*Lane, error) {
	return l.act(ctx, wire.DisableLane, name, o)
}

func (l Lanes) act(ctx context.Context, call wire.Call[wire.LaneActionRequest, Lane], name string, o []LaneAction) (*Lane, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	request := &wire.LaneActionRequest{ByLane: wire.ByLane{Lane: name}, IfMatch: (*wire.Revision)(options.Revision)}
	request.Body.Reason = options.Reason
	return transport.Call(ctx, l.via, call, request, transport.Options{Key: options.RequestKey})
}
