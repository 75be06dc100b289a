package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of commands under leases (U77).

// MarshalJSON writes the answer as a work batch of the HTTP API shows it, without index and ok (U77).
func (a WorkAnswer) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (a WorkAnswer) AppendJSON(text []byte) ([]byte, error) {
	w := a.wire()
	return appendItem(text, &w, a.Err)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *WorkAnswer) UnmarshalJSON(text []byte) error {
	w, refusal, err := readItem[wire.WorkAnswer](text)
	*a = workAnswerFrom(&w)
	a.Err = refusal
	return err
}

func (a *WorkAnswer) wire() wire.WorkAnswer {
	w := wire.WorkAnswer{Status: string(a.Status), Outcome: a.Outcome, Reason: a.Reason, RetryAt: wireTime(a.RetryAt), Late: a.Late, Usage: a.Usage}
	if a.Renewal.TTL != 0 {
		w.Lease, w.Drain = &a.Renewal, a.Renewal.Drain
	}
	w.Step = a.Step
	a.waitInto(&w)
	a.childrenInto(&w)
	return w
}

// waitInto adds what a command about a wait answers; without tokens and addresses, which whoever may show them adds.
func (a *WorkAnswer) waitInto(w *wire.WorkAnswer) {
	w.SuspensionID, w.TimeoutAt = a.SuspensionID, wireTime(a.TimeoutAt)
	for i := range a.Waitpoints {
		if a.SuspensionID == "" {
			w.Waitpoint = &api.IssuedWaitpoint{Waitpoint: a.Waitpoints[i]}
			break // it is the one that was made
		}
		w.Waitpoints = append(w.Waitpoints, suspendWire(&a.Waitpoints[i]))
	}
	if a.Resume != nil {
		w.Cause, w.Signals = a.Resume.Cause, signals(a.Resume.Signals)
	}
}

func workAnswerFrom(w *wire.WorkAnswer) WorkAnswer {
	a := WorkAnswer{
		Status: Status(w.Status), Outcome: w.Outcome, Reason: w.Reason, RetryAt: w.RetryAt.Time, Late: w.Late, Usage: w.Usage,
	}
	if w.Lease != nil {
		a.Renewal = *w.Lease
		a.Renewal.Drain = w.Drain
	}
	a.Step = w.Step
	a.waitFrom(w)
	a.childrenFrom(w)
	return a
}

// waitFrom reads what a command about a wait answered. The continuation of a wait that is passed is the caller's own.
func (a *WorkAnswer) waitFrom(w *wire.WorkAnswer) {
	a.SuspensionID, a.TimeoutAt = w.SuspensionID, w.TimeoutAt.Time
	for _, waitpoint := range w.Waitpoints {
		a.Waitpoints = append(a.Waitpoints, suspendFrom(waitpoint, w.SuspensionID))
	}
	if w.Waitpoint != nil {
		a.Waitpoints = []Waitpoint{w.Waitpoint.Concealed()}
	}
	if w.Outcome == outcomeSatisfied {
		a.Resume = &Resume{SuspensionID: w.SuspensionID, Cause: w.Cause, Signals: signals(w.Signals)}
	}
}
