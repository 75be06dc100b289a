package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

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
	// State is LaneActive if it is "".
	State LaneState `json:"state,omitempty" enum:"active,paused,draining,disabled" doc:"active if absent."`
	// MaxConcurrent is how many executions may run at a time; 0: no cap.
	MaxConcurrent int `json:"max_concurrent,omitempty" minimum:"0" maximum:"1000000" doc:"Executions at a time; 0: no cap."`
	// Ageing is the waiting time that one point of priority is worth; 0: priority always wins.
	Ageing time.Duration `json:"ageing_ms,omitempty" minimum:"0" maximum:"1000000000000" doc:"Waiting that one point of priority is worth; 0: priority always wins."`
	// Fairness is "auto", where namespaces take turns, "off", "namespace" or "key"; "" is "auto".
	Fairness string `json:"fairness,omitempty" enum:"auto,off,namespace,key" doc:"Among whom the lane is shared. auto, if absent: namespaces take turns, and in a namespace priority and age decide; off: priority and age alone."`
	// FairnessWeights are shares by key, 1 to 1000; a key without one has 1.
	FairnessWeights map[string]int `json:"fairness_weights,omitempty" doc:"Shares by key, 1 to 1000."`
	// Retention is how long executions are kept that finish in this lane.
	Retention Retention `json:"retention_ms,omitzero" doc:"How long finished executions are kept."`
}

// Lane is a lane, its settings, and its executions as far as the caller's namespaces are concerned.
type Lane struct {
	Name string `json:"lane" doc:"Name of the lane."`
	LaneSettings
	Revision     int64          `json:"revision" doc:"Counts the changes of the settings."`
	Since        time.Time      `json:"since,omitzero" doc:"When it was registered."`
	RegisteredBy string         `json:"registered_by,omitempty" doc:"submit or put_lane."`
	Counts       map[Status]int `json:"counts,omitempty" doc:"Executions by status."`
	AtLeast      bool           `json:"at_least,omitempty" doc:"Some count stopped at 10 000."`
	// OldestReadyAt is since when the ready execution waits that waits longest, of the 100 that were submitted first; zero: none is ready.
	OldestReadyAt time.Time `json:"oldest_ready_at,omitzero" doc:"Since when the oldest ready execution waits."`
	// Workers counts the live instances that take from it, draining ones included.
	Workers int       `json:"workers" required:"false" doc:"Live instances that take from it."`
	Rates   LaneRates `json:"rates" required:"false" doc:"What goes through it."`
}

// LaneRates are executions per second. Each process counts the events of the log that it follows, from its start on: right after the start
// the averages are over the time since then.
type LaneRates struct {
	Submitted Rate `json:"submitted" doc:"Submitted a second."`
	Started   Rate `json:"started" doc:"Started a second."` // leases acquired
	Completed Rate `json:"completed" doc:"Ended a second."` // in whatever status
}

// Rate is an average per second over two spans.
type Rate struct {
	OneMinute   float64 `json:"1m" doc:"Over one minute."`
	FiveMinutes float64 `json:"5m" doc:"Over five minutes."`
}

// MarshalJSON writes the lane as the HTTP API shows it.
func (l Lane) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *Lane) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the settings as the HTTP API takes them.
func (s LaneSettings) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads settings as strictly as the HTTP API does.
func (s *LaneSettings) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
