package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// LaneState says whether a lane accepts submits and starts work.
type LaneState string

// States of a lane.
const (
	LaneActive   LaneState = "active"
	LanePaused   LaneState = "paused"   // accepts submits, starts nothing
	LaneDraining LaneState = "draining" // refuses submits, starts work
	LaneDisabled LaneState = "disabled" // neither
)

// LaneSettings are all settings of a lane. The zero value is the default.
type LaneSettings struct {
	// State is LaneActive if it is "".
	State LaneState `json:"state,omitempty" enum:"active,paused,draining,disabled" doc:"active if absent."`
	// MaxConcurrent is how many executions can run concurrently; 0: no limit.
	MaxConcurrent int `json:"max_concurrent,omitempty" minimum:"0" maximum:"1000000" doc:"Concurrent executions; 0: no limit."`
	// Ageing is the waiting time that one point of priority is worth; 0: priority always wins.
	Ageing time.Duration `json:"ageing_ms,omitempty" minimum:"0" maximum:"1000000000000" doc:"Waiting time that is worth one point of priority; 0: priority always wins."`
	// Fairness is "auto", where namespaces take turns, "off", "namespace" or "key"; "" is "auto".
	Fairness string `json:"fairness,omitempty" enum:"auto,off,namespace,key" doc:"How the lane is shared. auto (default): namespaces take turns, and within a namespace priority and age decide; off: only priority and age; namespace or key: these take turns."`
	// FairnessWeights are shares by key, 1 to 1000; default 1.
	FairnessWeights map[string]int `json:"fairness_weights,omitempty" doc:"Shares by key, 1 to 1000."`
	// Retention is how long finished executions of this lane are kept.
	Retention Retention `json:"retention_ms,omitzero" doc:"How long finished executions are kept."`
	// DefaultPolicy says how executions are retried whose own policy does not; a change applies to later submits. nil: nothing is said.
	DefaultPolicy *DefaultPolicy `json:"default_policy,omitempty" doc:"How executions submitted to it from now on are retried if their own policy does not say so: a policy with a retry_policy and nothing else."`
}

// Lane is a lane with its settings and its executions in the caller's namespaces.
type Lane struct {
	Name string `json:"lane" doc:"Name of the lane."`
	LaneSettings
	Revision     int64          `json:"revision" doc:"Counts the changes of the settings."`
	Since        time.Time      `json:"since,omitzero" doc:"When it was registered."`
	RegisteredBy string         `json:"registered_by,omitempty" doc:"submit or put_lane."`
	Counts       map[Status]int `json:"counts,omitempty" doc:"Executions by status."`
	AtLeast      bool           `json:"at_least,omitempty" doc:"Some count stopped at 10,000."`
	// OldestReadyAt is when the longest-waiting ready execution became ready, of the 100 that were submitted first; zero if none
	// is ready.
	OldestReadyAt time.Time `json:"oldest_ready_at,omitzero" doc:"When the oldest ready execution became ready."`
	// Workers is the number of live instances that claim from it, including draining ones.
	Workers int       `json:"workers" required:"false" doc:"Live instances that claim from it."`
	Rates   LaneRates `json:"rates" required:"false" doc:"Throughput."`
}

// LaneRates are executions per second. Each process counts the events it has seen since its start; shortly after a start the
// averages cover the time since then.
type LaneRates struct {
	Submitted Rate `json:"submitted" doc:"Submitted per second."`
	Started   Rate `json:"started" doc:"Started per second."` // leases acquired
	Completed Rate `json:"completed" doc:"Ended per second."` // with any status
}

// Rate is an average per second over two periods.
type Rate struct {
	OneMinute   float64 `json:"1m" doc:"Over one minute."`
	FiveMinutes float64 `json:"5m" doc:"Over five minutes."`
}

// MarshalJSON writes the lane as the HTTP API shows it.
func (l Lane) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *Lane) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the settings as the HTTP API accepts them.
func (s LaneSettings) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads settings as strictly as the HTTP API does.
func (s *LaneSettings) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
