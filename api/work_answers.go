package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// WorkAnswer is the answer to one command.
type WorkAnswer struct {
	Err     error
	Outcome string      // fail: retry_scheduled, failed; step: stored, exists
	Status  Status      // complete, release, delay
	Reason  string      // fail: why there is no retry; release, delay: why it waits
	RetryAt time.Time   // fail
	Late    bool        // the lease had lapsed, and nobody had taken over
	Renewal Renewal     // renew
	Step    *StepRecord // step: what is stored
	// Of suspend, whose Outcome is suspended or already_satisfied; of waitpoint the one that was made. Of those of a suspend count ID,
	// ExecutionID, Key, SuspensionID, ExpiresAt, Token and CallbackURL: Waitpoints.Get shows the rest.
	SuspensionID string
	Waitpoints   []Waitpoint
	Resume       *Resume // of already_satisfied
	TimeoutAt    time.Time
	Usage        *UsageReceipt // usage

	Spawned *Spawned // spawn
	// Waited is how the wait of wait_children, or of a spawn that waits, ended; nil while it lasts. Outcome is ready or waiting.
	Waited *ChildrenWaited
}

// Spawned are the children that a spawn named.
type Spawned struct {
	IDs     map[string]ID   `json:"children" doc:"Ids of the executions by name."`
	Created int             `json:"created" doc:"How many of them this call made."`
	Wait    *ChildrenWaited `json:"wait,omitempty" doc:"Of a spawn that waits: how that is."`
}

// ChildrenWaited is how a wait for children is.
type ChildrenWaited struct {
	Outcome  string  `json:"outcome" enum:"ready,waiting" doc:"ready: the wait is over and the lease goes on. waiting: the lease has ended; the work is claimed again when the wait is over."`
	State    string  `json:"state,omitempty" enum:"satisfied,impossible,timeout" doc:"Of ready: how it ended."`
	Children []Child `json:"children,omitempty" doc:"Of ready: the children."`
}

// The outcomes of a wait for children.
const (
	ChildrenReady   = "ready"
	ChildrenWaiting = "waiting"
)

// The outcomes of a suspend.
const (
	WaitSuspended        = "suspended"
	WaitAlreadySatisfied = "already_satisfied"
)

// SuspendWaitpoint is a waitpoint as the answer to a suspend shows it: what is to be handed out. Without a key that signs the token is
// left out.
type SuspendWaitpoint struct {
	WaitpointID  string    `json:"waitpoint_id" doc:"Id of the waitpoint."`
	WaitpointKey string    `json:"waitpoint_key" doc:"What the work calls it."`
	Token        string    `json:"token,omitempty" doc:"The credential of a signal; give it to whoever is to signal."`
	CallbackURL  string    `json:"callback_url,omitempty" doc:"Address for senders that can only be given one. It holds the token."`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"When the wait times out."`
}

// Handed is the waitpoint as the answer to a suspend shows it, with its token and its address.
func (w *Waitpoint) Handed() SuspendWaitpoint {
	return SuspendWaitpoint{WaitpointID: w.ID, WaitpointKey: w.Key, Token: w.Token.Reveal(), CallbackURL: w.CallbackURL, ExpiresAt: w.ExpiresAt}
}

// Concealed is the waitpoint with its token and its address, which it shows to nobody.
func (w SuspendWaitpoint) Concealed(suspensionID string) Waitpoint {
	concealed := Waitpoint{ID: w.WaitpointID, Key: w.WaitpointKey, SuspensionID: suspensionID, ExpiresAt: w.ExpiresAt, CallbackURL: w.CallbackURL}
	if w.Token != "" {
		concealed.Token = TokenOf(w.Token)
	}
	return concealed
}

// WorkAnswerFields is a WorkAnswer as the HTTP API writes it: the fields of the answer to the command's own call.
type WorkAnswerFields struct {
	Lease   *Renewal    `json:"lease,omitempty" doc:"Of renew: the lease after it."`
	Drain   bool        `json:"drain,omitempty" doc:"Of renew: take nothing new."`
	Status  string      `json:"status,omitempty" doc:"Of complete, release, delay, cancel: the status now."`
	Outcome string      `json:"outcome,omitempty" doc:"Of fail, step, suspend, wait_children, and of a spawn that waits."`
	Reason  string      `json:"reason,omitempty" doc:"Of fail: why there is no retry. Of release and delay: why it waits."`
	RetryAt time.Time   `json:"retry_at,omitzero" doc:"Of fail: when it is tried again."`
	Late    bool        `json:"late,omitempty" doc:"The lease had lapsed, and nobody had taken over."`
	Step    *StepRecord `json:"step,omitempty" doc:"Of step: what is stored."`

	SuspensionID string             `json:"suspension_id,omitempty" doc:"Of suspend: id of the suspension."`
	Waitpoints   []SuspendWaitpoint `json:"waitpoints,omitempty" doc:"Of suspend: the waitpoints in the order of the bindings, with their tokens."`
	Cause        string             `json:"cause,omitempty" doc:"Of suspend, when the wait is passed: how it ended."`
	Signals      []SignalRecord     `json:"signals,omitempty" doc:"Of suspend, when the wait is passed: the signals that came."`
	TimeoutAt    time.Time          `json:"timeout_at,omitzero" doc:"Of suspend: when the wait times out."`
	Waitpoint    *IssuedWaitpoint   `json:"waitpoint,omitempty" doc:"Of waitpoint: the one that was made, with its token."`

	Usage *UsageReceipt `json:"usage,omitempty" doc:"Of usage: what came of it."`

	Spawned *Spawned        `json:"spawned,omitempty" doc:"Of spawn: the children."`
	Waited  *ChildrenWaited `json:"waited,omitempty" doc:"Of wait_children: how it is."`
}

// fields are what JSON shows of the answer: neither tokens nor addresses, which a server adds for who may see them.
func (a *WorkAnswer) fields() WorkAnswerFields {
	f := WorkAnswerFields{
		Status: string(a.Status), Outcome: a.Outcome, Reason: a.Reason, RetryAt: a.RetryAt, Late: a.Late, Step: a.Step, Usage: a.Usage,
		SuspensionID: a.SuspensionID, TimeoutAt: a.TimeoutAt, Spawned: a.Spawned,
	}
	if a.Renewal.TTL != 0 {
		f.Lease, f.Drain = &a.Renewal, a.Renewal.Drain
	}
	switch {
	case a.SuspensionID != "":
		for i := range a.Waitpoints {
			w := &a.Waitpoints[i]
			f.Waitpoints = append(f.Waitpoints, SuspendWaitpoint{WaitpointID: w.ID, WaitpointKey: w.Key, ExpiresAt: w.ExpiresAt})
		}
	case len(a.Waitpoints) > 0:
		f.Waitpoint = &IssuedWaitpoint{Waitpoint: a.Waitpoints[0]}
	}
	if a.Resume != nil {
		f.Cause, f.Signals = a.Resume.Cause, a.Resume.Signals
	}
	switch {
	case a.Spawned != nil: // it says how the wait is
	case a.Waited != nil:
		f.Waited = a.Waited
	case a.Outcome == ChildrenWaiting:
		f.Waited = &ChildrenWaited{Outcome: ChildrenWaiting}
	}
	return f
}

// Answer is the answer that the fields show. The continuation of a wait that is passed is the caller's own, and not among them.
func (f *WorkAnswerFields) Answer() WorkAnswer {
	a := WorkAnswer{
		Status: Status(f.Status), Outcome: f.Outcome, Reason: f.Reason, RetryAt: f.RetryAt, Late: f.Late, Step: f.Step, Usage: f.Usage,
		SuspensionID: f.SuspensionID, TimeoutAt: f.TimeoutAt, Spawned: f.Spawned,
	}
	if f.Lease != nil {
		a.Renewal = *f.Lease
		a.Renewal.Drain = f.Drain
	}
	for _, w := range f.Waitpoints {
		a.Waitpoints = append(a.Waitpoints, w.Concealed(f.SuspensionID))
	}
	if f.Waitpoint != nil {
		a.Waitpoints = []Waitpoint{f.Waitpoint.Concealed()}
	}
	if f.Outcome == WaitAlreadySatisfied {
		a.Resume = &Resume{SuspensionID: f.SuspensionID, Cause: f.Cause, Signals: f.Signals}
		if a.Resume.Signals == nil {
			a.Resume.Signals = []SignalRecord{}
		}
	}
	waited := f.Waited
	if f.Spawned != nil {
		waited = f.Spawned.Wait
	}
	if waited != nil && waited.Outcome == ChildrenReady {
		a.Waited = waited
	}
	return a
}

// MarshalJSON writes the waitpoint as the HTTP API shows it, with token and address.
func (w SuspendWaitpoint) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *SuspendWaitpoint) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }

// MarshalJSON writes the fields as the HTTP API shows them.
func (f WorkAnswerFields) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&f) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (f *WorkAnswerFields) UnmarshalJSON(text []byte) error { return readAnswer(text, f) }

// MarshalJSON writes the answer as a work batch of the HTTP API shows it, without index and ok.
func (a WorkAnswer) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (a WorkAnswer) AppendJSON(text []byte) ([]byte, error) {
	if a.Err != nil {
		return jsonx.Append(text, &refusedItem{ProblemOf(a.Err)})
	}
	shown := a.fields()
	return jsonx.Append(text, &shown)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (a *WorkAnswer) UnmarshalJSON(text []byte) error {
	var read struct {
		refusedItem
		WorkAnswerFields
	}
	err := readAnswer(text, &read)
	*a = read.Answer()
	a.Err = read.Error.Refusal()
	return err
}
