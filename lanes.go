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
	// Page gives one page of the lanes. Codes: invalid_cursor.
	Page(ctx context.Context, o ...PageOptions) (Page[*Lane], error)
	// Get shows a lane. Codes: lane_not_found.
	Get(ctx context.Context, name string) (*Lane, error)
	// Put states all settings of a lane, creating it if need be. Codes: invalid_argument, precondition_failed.
	Put(ctx context.Context, name string, s LaneSettings, o ...LaneAction) (*Lane, error)
	// Pause lets submits in and nothing out. Codes of the four: lane_not_found, precondition_failed.
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
	Fairness        string         // "auto": namespaces take turns; "off", "namespace" or "key"
	FairnessWeights map[string]int // shares by key, 1..1000; 1 each
	Retention       Retention      // of what finishes in this lane
}

// LaneAction is what a command on a lane may carry.
type LaneAction struct {
	Reason     string
	RequestKey string // minted by the client when empty
	// Revision refuses the command with precondition_failed when the lane has another one, and a Put with lane_not_found when
	// there is no lane; nil: whatever it is.
	Revision *int64
}

// Lane is a lane, its settings, and what goes on in it as far as the client's namespaces are concerned.
type Lane struct {
	Name         string
	Settings     LaneSettings
	Revision     int64 // counts the changes of the settings
	Since        time.Time
	RegisteredBy string // submit, put_lane
	Counts       map[Status]int
	AtLeast      bool // some count stopped at 10 000

	// OldestReadyAt is since when the ready execution waits that waits longest, of the 100 that were submitted first; zero: none
	// is ready.
	OldestReadyAt time.Time
	Workers       int // live instances that take from it, draining ones included
	Rates         LaneRates
}

// LaneRates are executions a second. Each process counts what passes in the event log that it follows, from its start on: right
// after that the averages are over the time since then.
type LaneRates struct {
	Submitted Rate
	Started   Rate // leases acquired
	Completed Rate // ended, however
}

// Rate is an average a second over two spans.
type Rate struct {
	OneMinute   float64
	FiveMinutes float64
}
