package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CompleteAnswer is the answer to complete (L89).
type CompleteAnswer struct {
	Status   Status
	Late     bool // the lease had lapsed before (L36)
	Repeated bool // the answer recorded for the first call (L34); not recorded itself
}

// FailAnswer is the answer to fail (L90).
type FailAnswer struct {
	Outcome  string    // retry_scheduled or failed
	RetryAt  base.Time // of retry_scheduled
	Reason   Reason    // of failed
	Late     bool
	Repeated bool
}

// The outcomes of fail (L90).
const (
	OutcomeRetryScheduled = "retry_scheduled"
	OutcomeFailed         = "failed"
)

// LeaveAnswer is the answer to the commands that hand x back: delay and release (L95, L98).
type LeaveAnswer struct {
	Status     Status
	Reason     Reason
	DelayUntil base.Time
	Late       bool
	Repeated   bool
}

// recordedAnswer is the stored form of every answer of a lease-ending command.
type recordedAnswer struct {
	Status     string    `json:"status"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason"`
	RetryAt    base.Time `json:"retry_at"`
	DelayUntil base.Time `json:"delay_until"`
	Late       bool      `json:"late"`
	Suspension int       `json:"suspension"` // of suspend: its number, under which everything else of the answer is stored
}

// answerRoom is a buffer size that fits every answer.
const answerRoom = 128

// readAnswer decodes the answer that was recorded for the first call.
func readAnswer(record *LeaseRecord) (a recordedAnswer, status Status, reason Reason, err error) {
	if cause := json.Unmarshal(record.Answer, &a); cause != nil {
		err = base.Errorf(base.CodeCorruption, "the recorded answer of epoch %d of %s cannot be read: %w", record.Epoch, record.ExecutionID, cause).
			With("record", record.ExecutionID.String()).With("field", "answer")
		return a, StatusNone, ReasonNone, err
	}
	status, _ = ParseStatus(a.Status)
	reason, _ = ParseReason(a.Reason)
	return a, status, reason, nil
}

func (a CompleteAnswer) encode() json.RawMessage {
	o := base.NewObject(answerRoom)
	o.Str("status", a.Status.String())
	o.FlagIf("late", a.Late)
	return o.Done()
}

func repeatComplete(record *LeaseRecord) (CompleteAnswer, error) {
	a, status, _, err := readAnswer(record)
	return CompleteAnswer{Status: status, Late: a.Late, Repeated: true}, err
}

func (a FailAnswer) encode() json.RawMessage {
	o := base.NewObject(answerRoom)
	o.Str("outcome", a.Outcome)
	o.Moment("retry_at", a.RetryAt)
	if a.Reason != ReasonNone {
		o.Str("reason", a.Reason.String())
	}
	o.FlagIf("late", a.Late)
	return o.Done()
}

func repeatFail(record *LeaseRecord) (FailAnswer, error) {
	a, _, reason, err := readAnswer(record)
	return FailAnswer{Outcome: a.Outcome, RetryAt: a.RetryAt, Reason: reason, Late: a.Late, Repeated: true}, err
}

func (a LeaveAnswer) encode() json.RawMessage {
	o := base.NewObject(answerRoom)
	o.Str("status", a.Status.String())
	o.Str("reason", a.Reason.String())
	o.Moment("delay_until", a.DelayUntil)
	o.FlagIf("late", a.Late)
	return o.Done()
}

func repeatLeave(record *LeaseRecord) (LeaveAnswer, error) {
	a, status, reason, err := readAnswer(record)
	return LeaveAnswer{Status: status, Reason: reason, DelayUntil: a.DelayUntil, Late: a.Late, Repeated: true}, err
}
