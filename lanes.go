package flowfabric

import (
	"context"
	"iter"
	"time"
)

// Lanes steers the named queues. A lane begins to exist with the first submit or Put that names it.
type Lanes interface {
	// List walks the lanes by name.
	List(ctx context.Context) iter.Seq2[*Lane, error]
	// Get shows a lane. Codes: lane_not_found.
	Get(ctx context.Context, name string) (*Lane, error)
	// Put states all settings of a lane, creating it if need be. Codes: invalid_argument, stale_version.
	Put(ctx context.Context, name string, s LaneSettings, o ...LaneAction) (*Lane, error)
	// Pause lets submits in and nothing out. Codes of the four: lane_not_found.
	Pause(ctx context.Context, name string, o ...LaneAction) (*Lane, error)
	// Resume opens the lane again.
	Resume(ctx context.Context, name string, o ...LaneAction) (*Lane, error)
	// Drain lets work out and no submits in.
	Drain(ctx context.Context, name string, o ...LaneAction) (*Lane, error)
	// Disable closes the lane both ways.
	Disable(ctx context.Context, name string, o ...LaneAction) (*Lane, error)

	sealed()
}

// LaneState opens or closes a lane.
type LaneState string

// The states of a lane.
const (
	LaneActive   LaneState = "active"
	LanePaused   LaneState = "paused"   // submits enter, nothing is claimed
	LaneDraining LaneState = "draining" // no submits enter, work is claimed
	LaneDisabled LaneState = "disabled" // neither
)

// LaneSettings are all settings of a lane. The zero value is the default.
type LaneSettings struct {
	State           LaneState      // "active"
	MaxConcurrent   int            // executions at a time; 0: no cap
	Ageing          time.Duration  // the waiting that one point of priority is worth; 0: priority always wins
	Fairness        string         // "off", "namespace" or "key"
	FairnessWeights map[string]int // shares by key, 1..1000; 1 each
	Retention       Retention      // of what finishes in this lane
}

// LaneAction is what a command on a lane may carry.
type LaneAction struct {
	Reason     string
	RequestKey string // minted by the client when empty
}

// Lane is a lane, its settings and how many executions it has.
type Lane struct {
	Name         string
	Settings     LaneSettings
	Revision     int64 // counts the changes of the settings
	Since        time.Time
	RegisteredBy string // submit, put_lane
	Counts       map[Status]int
	AtLeast      bool // some count stopped at 10 000
}
