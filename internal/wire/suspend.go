package wire

import "github.com/flowfabric/flowfabric/api"

// SuspendFields say what an attempt waits for (U71).
type SuspendFields struct {
	Waitpoints      []api.Binding `json:"waitpoints,omitempty" doc:"Where the signals come, at most 64; the first is the primary one."`
	ReasonCode      string        `json:"reason_code,omitempty" doc:"What is waited for; waiting_for_signal if absent."`
	TimeoutMS       *int64        `json:"timeout_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"The wait times out after so long; the policy's if absent."`
	TimeoutAt       Time          `json:"timeout_at,omitzero" doc:"The wait times out at this moment."`
	TimeoutBehavior string        `json:"timeout_behavior,omitempty" enum:"fail,cancel,expire,auto_resume_with_timeout_signal,escalate" doc:"What happens then; the policy's if absent, else fail."`
	ResumeDelayMS   int64         `json:"resume_delay_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Not taken up for so long after the wait."`
	Continuation    api.Payload   `json:"continuation,omitempty" spread:"sent" doc:"The continuation."`
	SuspensionID    string        `json:"suspension_id,omitempty" doc:"Id that the caller brings."`
}

// WorkKeyField names the work of a call, not the call (U14).
type WorkKeyField struct {
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"256" doc:"Name of the wait or the waitpoint: the same again, also from a later attempt, gets what there is."`
}

// SuspendRequest gives the work back until signals have come.
type SuspendRequest struct {
	FencedByID
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
	Body     struct {
		LeaseField
		ResumeCondition api.Condition `json:"resume_condition" required:"true" doc:"Which signals are enough."`
		SuspendFields
		WorkKeyField
		UsageField
	}
}

// SuspendAnswer is the answer to a suspend: the work is given back, or the wait is passed already and the lease stays.
type SuspendAnswer struct {
	Outcome      string                 `json:"outcome" enum:"suspended,already_satisfied" doc:"Whether the lease was given back."`
	Late         bool                   `json:"late,omitempty" doc:"The lease had lapsed, and nobody had taken over."`
	SuspensionID string                 `json:"suspension_id" doc:"Id of the suspension."`
	Cause        string                 `json:"cause,omitempty" doc:"Of a wait that is passed: how it ended."`
	Signals      []api.SignalRecord     `json:"signals,omitempty" doc:"Of a wait that is passed: the signals that came."`
	TimeoutAt    Time                   `json:"timeout_at,omitzero" doc:"When the wait times out."`
	Waitpoints   []api.SuspendWaitpoint `json:"waitpoints" doc:"The waitpoints in the order of the bindings, with their tokens."`
}

// ExpiryFields are what a new waitpoint may say besides its key (U72).
type ExpiryFields struct {
	ExpiresInMS *int64 `json:"expires_in_ms,omitempty" minimum:"1" maximum:"31536000000" doc:"It closes after so long unless something waits at it; 86400000 if absent."`
	WaitpointID string `json:"waitpoint_id,omitempty" doc:"Id that the caller brings."`
}

// CreateWaitpointRequest makes a waitpoint.
type CreateWaitpointRequest struct {
	FencedByID
	Body struct {
		LeaseField
		WaitpointKey string `json:"waitpoint_key" required:"true" maxLength:"128" doc:"What the work calls it."`
		ExpiryFields
		WorkKeyField
	}
}
