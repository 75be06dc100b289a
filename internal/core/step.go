package core

// Bounds of steps (L6).
const (
	MaxSteps    = 10_000  // records of an execution, all runs together
	maxStepSize = 1 << 20 // bytes of a result
)

// StepRecord is what an execution remembers of a step it has done (L148). The first write wins; nothing changes it.
type StepRecord struct {
	ExecutionID  ID     `json:"execution_id"`
	RunIndex     int    `json:"run_index"`
	Name         string `json:"name"`
	Ordinal      int    `json:"ordinal"` // counts the records of the execution in order of writing, from 0 (L150)
	AttemptIndex int    `json:"attempt_index"`
	LeaseEpoch   int64  `json:"lease_epoch"`
	CreatedAt    Time   `json:"created_at"`
	ContentType  string `json:"content_type"`
	Result       []byte `json:"-"` // kept beside the record, bit for bit
}

// CheckStepArguments wants a name as a kind, else invalid_argument; a result of at most 1 MiB, else payload_too_large (L149).
func CheckStepArguments(name string, result []byte) error {
	if why := checkGraphic(name, 128); why != "" {
		return refuseText("name", why)
	}
	return checkSize("result", len(result), maxStepSize)
}

// CheckStepCount refuses a new record with step_limit_exceeded when the execution has MaxSteps of them already.
func CheckStepCount(records int) error {
	if records < MaxSteps {
		return nil
	}
	return Errorf(CodeStepLimitExceeded, "the execution has %d step records already", records).With("limit", MaxSteps)
}
