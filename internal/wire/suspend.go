package wire

import "github.com/flowfabric/flowfabric/api"

// SuspendFields describe a suspension (U71).
type SuspendFields struct {
	Waitpoints      []api.Binding `json:"waitpoints,omitempty" doc:"Waitpoints that receive the signals, at most 64; the first is the primary one."`
	ReasonCode      string        `json:"reason_code,omitempty" doc:"What it waits for; default waiting_for_signal."`
	TimeoutMS       *int64        `json:"timeout_ms,omitempty" minimum:"0" maximum:"31536000000" doc:"Duration until the timeout; default: the policy's."`
	TimeoutAt       Time          `json:"timeout_at,omitzero" doc:"Time of the timeout."`
	TimeoutBehavior string        `json:"timeout_behavior,omitempty" enum:"fail,cancel,expire,auto_resume_with_timeout_signal,escalate" doc:"What happens at the timeout; default: the policy's, else fail."`
	ResumeDelayMS   int64         `json:"resume_delay_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Delay after the suspension ends."`
	Continuation    api.Payload   `json:"continuation,omitempty" spread:"sent" doc:"The continuation."`
	SuspensionID    string        `json:"suspension_id,omitempty" doc:"Id chosen by the caller."`
}

// WorkKeyField identifies the work of a call, not the call (U14).
type WorkKeyField struct {
	IdempotencyKey string `json:"idempotency_key,omitempty" maxLength:"256" doc:"Identifies the suspension or waitpoint: a repeat, even from a later attempt, returns the existing one."`
}

// SuspendRequest gives the work back until signals arrive.
type SuspendRequest struct {
	FencedByID
	Encoding Encoding `query:"encoding" enum:"bytes" doc:"bytes shows payloads as base64."`
	Body     struct {
		LeaseField
		ResumeCondition api.Condition `json:"resume_condition" required:"true" doc:"Condition that ends it."`
		SuspendFields
		WorkKeyField
		UsageField
	}
}

// SuspendAnswer is the result of a suspend: the work was given back, or the condition is satisfied already and the lease
// continues.
type SuspendAnswer struct {
	Outcome      string                 `json:"outcome" enum:"suspended,already_satisfied" doc:"Whether the lease was given back."`
	Late         bool                   `json:"late,omitempty" doc:"The lease had lapsed, but no other worker had taken over."`
	SuspensionID string                 `json:"suspension_id" doc:"Id of the suspension."`
	Cause        string                 `json:"cause,omitempty" doc:"If already satisfied: how it ended."`
	Signals      []api.SignalRecord     `json:"signals,omitempty" doc:"If already satisfied: the signals."`
	TimeoutAt    Time                   `json:"timeout_at,omitzero" doc:"When it times out."`
	Waitpoints   []api.SuspendWaitpoint `json:"waitpoints" doc:"The waitpoints in the order of the bindings, with their tokens."`
}

// ExpiryFields are further options of a new waitpoint (U72).
type ExpiryFields struct {
	ExpiresInMS *int64 `json:"expires_in_ms,omitempty" minimum:"1" maximum:"31536000000" doc:"Closes after this time unless a suspension uses it; default 86400000."`
	WaitpointID string `json:"waitpoint_id,omitempty" doc:"Id chosen by the caller."`
}

// CreateWaitpointRequest creates a waitpoint.
type CreateWaitpointRequest struct {
	FencedByID
	Body struct {
		LeaseField
		WaitpointKey string `json:"waitpoint_key" required:"true" maxLength:"128" doc:"Its key."`
		ExpiryFields
		WorkKeyField
	}
}
