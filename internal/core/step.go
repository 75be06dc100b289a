package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Bounds of steps (L6).
const (
	MaxSteps    = 10_000  // records of an execution over all runs
	maxStepSize = 1 << 20 // bytes of a result
)

// StepRecord is the record of a completed step (L148). The first write wins; it is never changed.
type StepRecord struct {
	ExecutionID  base.ID   `json:"execution_id"`
	RunIndex     int       `json:"run_index"`
	Name         string    `json:"name"`
	Ordinal      int       `json:"ordinal"` // number of the record within the execution, in order of writing, from 0 (L150)
	AttemptIndex int       `json:"attempt_index"`
	LeaseEpoch   int64     `json:"lease_epoch"`
	CreatedAt    base.Time `json:"created_at"`
	ContentType  string    `json:"content_type"`
	Result       []byte    `json:"-"` // stored beside the record, byte for byte
	Size         int       `json:"-"` // of a result that was left out
}

// CheckStepArguments requires a name with the form of a kind, else invalid_argument; a result of at most 1 MiB, else payload_too_large (L149).
func CheckStepArguments(name string, result []byte) error {
	if why := base.CheckGraphic(name, 128); why != "" {
		return base.RefuseText("name", why)
	}
	return base.CheckSize("result", len(result), maxStepSize)
}

// CheckStepCount refuses a new record with step_limit_exceeded if the execution already has MaxSteps.
func CheckStepCount(records int) error {
	if records < MaxSteps {
		return nil
	}
	return base.Errorf(base.CodeStepLimitExceeded, "the execution has %d step records already", records).With("limit", MaxSteps)
}
