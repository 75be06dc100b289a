package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// LaneState opens or closes a lane (S3). Values are stored.
type LaneState uint8

// The states of S3.
const (
	LaneActive LaneState = iota + 1
	LanePaused
	LaneDraining
	LaneDisabled
)

var laneStateNames = [...]string{"", "active", "paused", "draining", "disabled"}

// String is the word of S3.
func (s LaneState) String() string { return base.NameOf(laneStateNames[:], int(s)) }

// ParseLaneState reads the word of S3.
func ParseLaneState(text string) (LaneState, bool) {
	n, ok := base.ValueOf(laneStateNames[:], text)
	return LaneState(n), ok
}

// MarshalText writes the word of S3.
func (s LaneState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word of S3.
func (s *LaneState) UnmarshalText(text []byte) error {
	state, ok := ParseLaneState(string(text))
	if !ok {
		return base.Invalid("state", "%q is not a lane state", text).WithHint("use active, paused, draining or disabled")
	}
	*s = state
	return nil
}

// Accepting reports whether submits and replays may enter the lane (S3).
func (s LaneState) Accepting() bool { return s == LaneActive || s == LanePaused }

// Claimable reports whether work may be taken from the lane (S3).
func (s LaneState) Claimable() bool { return s == LaneActive || s == LaneDraining }

// Lane is a named queue and its settings (S2).
type Lane struct {
	ID       int32 // number under which the store files it
	Name     string
	Settings LaneSettings
	Revision int64
	Since    base.Time // of the present state
	// Counting is true from the moment a cap is set where there was none until the running executions have been counted (S5).
	Counting     bool
	RegisteredBy string // submit, put_lane
}

// LaneSettings are the settings of put_lane (S2). The zero value is the default except for State, which Normalize fills in.
type LaneSettings struct {
	State           LaneState         `json:"state"`
	MaxConcurrent   int               `json:"max_concurrent,omitempty"`
	AgeingMS        base.Millis       `json:"ageing_ms,omitempty"`
	Fairness        string            `json:"fairness,omitempty"` // "" or auto, off, namespace, key
	FairnessWeights map[string]int    `json:"fairness_weights,omitempty"`
	RetentionMS     RetentionByStatus `json:"retention_ms,omitzero"`
	// Retry is the default of submissions that do not state their retries, with the JSON of a policy; nil: there is none.
	Retry *RetryPolicy `json:"default_policy,omitempty"`
}

// RetentionByStatus states how long finished executions are kept, by terminal status; -1 means forever, absent means the next rule of L139.
type RetentionByStatus struct {
	Succeeded *base.Millis `json:"succeeded,omitempty"`
	Failed    *base.Millis `json:"failed,omitempty"`
	Cancelled *base.Millis `json:"cancelled,omitempty"`
	Expired   *base.Millis `json:"expired,omitempty"`
	Skipped   *base.Millis `json:"skipped,omitempty"`
}

// ReadSettings reads the stored settings. A lane that was not changed since its registration has the present defaults, even if off, a former
// default, is stored.
func (l *Lane) ReadSettings(text []byte) error {
	if err := json.Unmarshal(text, &l.Settings); err != nil {
		return base.Errorf(base.CodeCorruption, "the stored settings of lane %s cannot be read: %w", l.Name, err)
	}
	if l.Revision == 0 && l.Settings.Fairness == FairnessOff {
		l.Settings.Fairness = FairnessAuto
	}
	return nil
}

// EncodeLaneSettings encodes the settings as JSON for stores and events.
func EncodeLaneSettings(s LaneSettings) []byte {
	text, _ := json.Marshal(s)
	return text
}

// priorityWeight is the value of one point of priority in a lane without ageing: more than any wait, so that priority comes first and age second
// (S6).
const priorityWeight = 1_000_000_000_000

// RankKey returns the place of x in its lane: lower is served first, ties by UUID (S6). ageing is the lane's setting, 0 when off.
func (x *Execution) RankKey(ageing base.Millis) int64 {
	weight := ageing
	if weight == 0 {
		weight = priorityWeight
	}
	return int64(x.QueuedAt) - int64(x.Priority)*weight
}
