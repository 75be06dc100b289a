package core

import "encoding/json"

// HistoryShown is how many changes an explanation shows (S57).
const HistoryShown = 20

// StatusChange is one change of status or reason.
type StatusChange struct {
	At     Time
	Status Status
	Reason Reason
	Event  string // kind of the event that told it
}

// toldState is what events tell of the status that they lead to.
type toldState struct {
	Status     string `json:"status"`
	Reason     string `json:"reason"`
	ReasonCode string `json:"reason_code"`
	DelayUntil string `json:"delay_until"`
	RetryAt    string `json:"retry_at"`
}

// ChangesOf reads the changes of status out of the events of one execution, oldest first. Where an event leads to the gate it does not
// say what the gate decided: that is told by what it says of a delay, and by whether somebody held the execution.
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

// statusAfter is the status that an event tells of; StatusNone: it tells of none.
func statusAfter(e *Event, held bool) (Status, Reason) {
	var told toldState
	_ = json.Unmarshal(e.Data.JSON(), &told) // fields of other shapes belong to events that tell of no status
	switch e.Kind {
	case "execution.submitted", "execution.completed":
		status, _ := ParseStatus(told.Status)
		reason, _ := ParseReason(told.Reason)
		return status, reason
	case "execution.ready":
		return Ready, WaitingForWorker
	case "execution.delayed":
		reason, _ := ParseReason(told.Reason)
		return Delayed, reason
	case "execution.blocked":
		reason, _ := ParseReason(told.Reason)
		return Blocked, reason
	case "grant.issued":
		return Granted, WaitingForWorker
	case "lease.acquired":
		return Running, ReasonNone
	case "execution.suspended":
		return Suspended, reasonCodes[told.ReasonCode]
	case "lease.released", "lease.expired", "lease.revoked", "attempt.ended", "grant.ended", "execution.resumed", "execution.replayed":
		return told.gate(e.Kind, held)
	default:
		return StatusNone, ReasonNone
	}
}

// gate is what the gate decided after an event.
func (t *toldState) gate(kind string, held bool) (Status, Reason) {
	switch {
	case kind == "attempt.ended" && t.RetryAt != "":
		return Delayed, WaitingForRetryBackoff
	case kind == "attempt.ended": // of a takeover: the new attempt is told next
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
