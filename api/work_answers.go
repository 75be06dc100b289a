package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// WorkAnswer is the result of one command.
type WorkAnswer struct {
	Err     error
	Outcome string      // fail: retry_scheduled, failed; step: stored, exists
	Status  Status      // complete, release, delay
	Reason  string      // fail: why there is no retry; release, delay: the reason of the status
	RetryAt time.Time   // fail
	Late    bool        // the lease had lapsed, but no other worker had taken over
	Renewal Renewal     // renew
	Step    *StepRecord // step: what is stored
	// For suspend, whose Outcome is suspended or already_satisfied; for waitpoint, the new one. After a suspend only ID,
	// ExecutionID, Key, SuspensionID, ExpiresAt, Token and CallbackURL are set: use Waitpoints.Get for the rest.
	SuspensionID string
	Waitpoints   []Waitpoint
	Resume       *Resume // for already_satisfied
	TimeoutAt    time.Time
	Frames       *FrameReceipt // frames
	Usage        *UsageReceipt // usage

	Spawned *SpawnResult // spawn
	// Waited is how the wait of wait_children, or of a spawn that waits, ended; nil while it continues. Outcome is ready or
	// waiting.
	Waited *ChildrenWaited
}

// SpawnResult are the children of a spawn.
type SpawnResult struct {
	IDs     map[string]ID   `json:"children" doc:"Ids of the executions by name."`
	Created int             `json:"created" doc:"How many of them this call created."`
	Wait    *ChildrenWaited `json:"wait,omitempty" doc:"For a spawn that waits: the state of the wait."`
}

// ChildrenWaited is the state of a wait for children.
type ChildrenWaited struct {
	Outcome  string  `json:"outcome" enum:"ready,waiting" doc:"ready: the wait has ended and the lease continues. waiting: the lease has ended; the work is claimed again when the wait ends."`
	State    string  `json:"state,omitempty" enum:"satisfied,impossible,timeout" doc:"For ready: how it ended."`
	Children []Child `json:"children,omitempty" doc:"For ready: the children."`
}

// Outcomes of a wait for children.
const (
	ChildrenReady   = "ready"
	ChildrenWaiting = "waiting"
)

// Outcomes of a suspend.
const (
	WaitSuspended        = "suspended"
	WaitAlreadySatisfied = "already_satisfied"
)

// SuspendWaitpoint is a waitpoint in the answer to a suspend. The token is omitted if there is no signing key.
type SuspendWaitpoint struct {
	WaitpointID  string    `json:"waitpoint_id" doc:"Id of the waitpoint."`
	WaitpointKey string    `json:"waitpoint_key" doc:"Its key, chosen by the execution."`
	Token        string    `json:"token,omitempty" doc:"The credential for signals; give it to the sender."`
	CallbackURL  string    `json:"callback_url,omitempty" doc:"URL for senders that accept only a URL. It contains the token."`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"When the suspension times out."`
}

// Handed returns the waitpoint as the answer to a suspend shows it, with its token and its address.
func (w *Waitpoint) Handed() SuspendWaitpoint {
	return SuspendWaitpoint{WaitpointID: w.ID, WaitpointKey: w.Key, Token: w.Token.Reveal(), CallbackURL: w.CallbackURL, ExpiresAt: w.ExpiresAt}
}

// Concealed returns the waitpoint with its token and address hidden.
func (w SuspendWaitpoint) Concealed(suspensionID string) Waitpoint {
	concealed := Waitpoint{ID: w.WaitpointID, Key: w.WaitpointKey, SuspensionID: suspensionID, ExpiresAt: w.ExpiresAt, CallbackURL: w.CallbackURL}
	if w.Token != "" {
		concealed.Token = TokenOf(w.Token)
	}
	return concealed
}

// WorkAnswerFields is a WorkAnswer as the HTTP API writes it: the fields of all commands.
type WorkAnswerFields struct {
	Lease   *Renewal    `json:"lease,omitempty" doc:"For renew: the renewed lease."`
	Drain   bool        `json:"drain,omitempty" doc:"For renew: claim no new work."`
	Status  string      `json:"status,omitempty" doc:"For complete, release, delay, cancel: the new status."`
	Outcome string      `json:"outcome,omitempty" doc:"For fail, step, suspend, wait_children, and a spawn that waits."`
	Reason  string      `json:"reason,omitempty" doc:"For fail: why there is no retry. For release and delay: the reason of the status."`
	RetryAt time.Time   `json:"retry_at,omitzero" doc:"For fail: when it is retried."`
	Late    bool        `json:"late,omitempty" doc:"The lease had lapsed, but no other worker had taken over."`
	Step    *StepRecord `json:"step,omitempty" doc:"For step: the stored result."`

	SuspensionID string             `json:"suspension_id,omitempty" doc:"For suspend: id of the suspension."`
	Waitpoints   []SuspendWaitpoint `json:"waitpoints,omitempty" doc:"For suspend: the waitpoints in the order of the bindings, with their tokens."`
	Cause        string             `json:"cause,omitempty" doc:"For suspend, if it is already satisfied: how it ended."`
	Signals      []SignalRecord     `json:"signals,omitempty" doc:"For suspend, if it is already satisfied: the signals."`
	TimeoutAt    time.Time          `json:"timeout_at,omitzero" doc:"For suspend: when it times out."`
	Waitpoint    *IssuedWaitpoint   `json:"waitpoint,omitempty" doc:"For waitpoint: the new one, with its token."`

	Frames *FrameReceipt `json:"frames,omitempty" doc:"For frames: the receipt."`
	Usage  *UsageReceipt `json:"usage,omitempty" doc:"For usage: the receipt."`

	Spawned *SpawnResult    `json:"spawned,omitempty" doc:"For spawn: the children."`
	Waited  *ChildrenWaited `json:"waited,omitempty" doc:"For wait_children: the state of the wait."`
}

// fields returns what JSON shows of the answer, without tokens and addresses, which a server adds for callers that may see them.
func (a *WorkAnswer) fields() WorkAnswerFields {
	f := WorkAnswerFields{
		Status: string(a.Status), Outcome: a.Outcome, Reason: a.Reason, RetryAt: a.RetryAt, Late: a.Late, Step: a.Step, Frames: a.Frames, Usage: a.Usage,
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
	case a.Spawned != nil: // it contains the state of the wait
	case a.Waited != nil:
		f.Waited = a.Waited
	case a.Outcome == ChildrenWaiting:
		f.Waited = &ChildrenWaited{Outcome: ChildrenWaiting}
	}
	return f
}

// Answer converts the fields. The continuation of a satisfied suspension is the caller's own and not included.
func (f *WorkAnswerFields) Answer() WorkAnswer {
	a := WorkAnswer{
		Status: Status(f.Status), Outcome: f.Outcome, Reason: f.Reason, RetryAt: f.RetryAt, Late: f.Late, Step: f.Step, Frames: f.Frames, Usage: f.Usage,
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
