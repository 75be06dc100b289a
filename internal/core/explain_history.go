package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// HistoryShown is the number of changes in an explanation (S57).
const HistoryShown = 20

// StatusChange is one change of status or reason.
type StatusChange struct {
	At     base.Time
	Status Status
	Reason Reason
	Event  string // kind of the event that reported it
}

// loggedState is the part of an event's data that describes the resulting status.
type loggedState struct {
	Status     string `json:"status"`
	Reason     string `json:"reason"`
	ReasonCode string `json:"reason_code"`
	DelayUntil string `json:"delay_until"`
	RetryAt    string `json:"retry_at"`
}

// ChangesOf derives the changes of status from the events of one execution, oldest first. An event that leads to the gate does not contain the
// gate's decision: it is derived from the delay in the event and from whether the execution was on hold.
func ChangesOf(events []Event) (changes []StatusChange) {
	held := false
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case "execution.held":
			held = true
		case "execution.hold_released":
			held = false
		default:
			if status, reason := statusAfter(e, held); status != StatusNone {
				changes = append(changes, StatusChange{At: e.At, Status: status, Reason: reason, Event: e.Kind})
			}
		}
	}
	return changes[max(0, len(changes)-HistoryShown):]
}

// statusAfter returns the status that follows from an event; StatusNone if the event does not change it.
func statusAfter(e *Event, held bool) (Status, Reason) {
	var logged loggedState
	_ = json.Unmarshal(e.Data.JSON(), &logged) // fields of other types belong to events without a status
	switch e.Kind {
	case "execution.submitted", "execution.completed":
		status, _ := ParseStatus(logged.Status)
		reason, _ := ParseReason(logged.Reason)
		return status, reason
	case "execution.ready":
		return Ready, WaitingForWorker
	case "execution.delayed":
		reason, _ := ParseReason(logged.Reason)
		return Delayed, reason
	case "execution.blocked":
		reason, _ := ParseReason(logged.Reason)
		return Blocked, reason
	case "grant.issued":
		return Granted, WaitingForWorker
	case "lease.acquired":
		return Running, ReasonNone
	case "execution.suspended":
		return Suspended, reasonCodes[logged.ReasonCode]
	case "lease.released", "lease.expired", "lease.revoked", "attempt.ended", "grant.ended", "execution.resumed", "execution.replayed":
		return logged.gate(e.Kind, held)
	default:
		return StatusNone, ReasonNone
	}
}

// gate returns what the gate decided after an event.
func (t *loggedState) gate(kind string, held bool) (Status, Reason) {
	switch {
	case kind == "attempt.ended" && t.RetryAt != "":
		return Delayed, WaitingForRetryBackoff
	case kind == "attempt.ended": // of a takeover: the event of the new attempt follows
		return StatusNone, ReasonNone
	case t.DelayUntil != "" && kind == "execution.resumed":
		return Delayed, WaitingForResumeDelay
	case t.DelayUntil != "":
		return Delayed, WaitingForDelay
	case held:
		return Blocked, PausedByOperator
	default:
		return Ready, WaitingForWorker
	}
}
