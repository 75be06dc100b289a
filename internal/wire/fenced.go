package wire

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// FencedByID names an execution in the path; the lease may stand in the header instead of the body (U27).
type FencedByID struct {
	ByID
	LeaseHeader LeaseRef `header:"FlowFabric-Lease" argument:"lease" doc:"The lease as text, instead of the field lease."`
}

// LeaseField is the lease in the body of a fenced call.
type LeaseField struct {
	Lease LeaseRef `json:"lease,omitzero" doc:"The lease: as the claim gave it, its three fence parts, or the fence as text."`
}

// OverrideFields let an operator end an attempt without a lease.
type OverrideFields struct {
	Override bool   `json:"override,omitempty" doc:"An operator ends the attempt, without a lease."`
	Reason   string `json:"reason,omitempty" maxLength:"1024" doc:"Of an override: why."`
}

// RenewFields renew a lease.
type RenewFields struct {
	TTLMS int64 `json:"ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"The lease's own if absent."`
}

// RenewRequest renews a lease.
type RenewRequest struct {
	FencedByID
	Body struct {
		LeaseField
		RenewFields
	}
}

// Renewed is the answer to a renewal.
type Renewed struct {
	Lease api.Renewal `json:"lease" doc:"The lease after the renewal."`
	Drain bool        `json:"drain" doc:"Take nothing new."`
}

// ProgressFields report progress; what is absent stays as it was.
type ProgressFields struct {
	Percent *int    `json:"percent,omitempty" minimum:"0" maximum:"100" doc:"How much is done."`
	Message *string `json:"message,omitempty" maxLength:"4096" doc:"What is being done."`
}

// ProgressRequest reports progress.
type ProgressRequest struct {
	FencedByID
	Body struct {
		LeaseField
		ProgressFields
	}
}

// Progressed is the answer to a report of progress.
type Progressed struct{}

// CompleteRequest completes. A body that is not JSON is the result itself, with the lease in the header.
type CompleteRequest struct {
	FencedByID
	Body struct {
		LeaseField
		OverrideFields
		ResultField
		UsageField
	}
	Raw Raw `accept:"*/*" doc:"The result itself."`
}

// Result is what the request completes with, from the JSON or the raw body.
func (r *CompleteRequest) Result() api.Payload {
	if r.Raw.ContentType == "" {
		return r.Body.Result
	}
	return api.Bytes(r.Raw.Data, r.Raw.ContentType)
}

// Completed is the answer to complete.
type Completed struct {
	Status string `json:"status" doc:"The status now."`
	Late   bool   `json:"late" doc:"The lease had lapsed, and nobody had taken over."`
}

// FailFields say what went wrong.
type FailFields struct {
	Class    string `json:"class,omitempty" enum:"transient,timeout,infra_crash,permanent,cancelled" doc:"transient if absent."`
	Category string `json:"category,omitempty" maxLength:"64" doc:"Name of the failure; the class's if absent."`
	Message  string `json:"message" required:"true" doc:"What to tell people."`
	DetailField
	RetryAfterMS *int64 `json:"retry_after_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Wait before the retry, instead of the policy's."`
}

// FailRequest fails an attempt.
type FailRequest struct {
	FencedByID
	Body struct {
		LeaseField
		OverrideFields
		FailFields
		UsageField
	}
}

// Failed is the answer to fail.
type Failed struct {
	Outcome string `json:"outcome" enum:"retry_scheduled,failed" doc:"What follows."`
	RetryAt Time   `json:"retry_at,omitzero" doc:"When it is tried again."`
	Reason  string `json:"reason,omitempty" doc:"Why it is not."`
	Late    bool   `json:"late,omitempty" doc:"The lease had lapsed, and nobody had taken over."`
}

// ReleaseRequest gives the work back.
type ReleaseRequest struct {
	FencedByID
	Body struct {
		LeaseField
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"shutdown if absent."`
	}
}

// DelayFields say until when; one of them is needed.
type DelayFields struct {
	DelayMS *int64 `json:"delay_ms,omitempty" oneof:"until" minimum:"0" maximum:"315360000000" doc:"For so long."`
	Until   Time   `json:"until,omitzero" oneof:"until" doc:"Until this moment."`
}

// DelayRequest gives the work back until a moment.
type DelayRequest struct {
	FencedByID
	Body struct {
		LeaseField
		DelayFields
		UsageField
	}
}

// Left is the answer to a command that gave the work back.
type Left struct {
	Status string `json:"status" doc:"The status now."`
	Reason string `json:"reason,omitempty" doc:"Why it waits."`
	Late   bool   `json:"late,omitempty" doc:"The lease had lapsed, and nobody had taken over."`
}

// PutStepRequest remembers the result of a step. A body that is not JSON is the result itself, with the lease in the header.
type PutStepRequest struct {
	FencedByID
	Name string `path:"name" doc:"Name of the step."`
	EncodingField
	Body struct {
		LeaseField
		ResultField
	}
	Raw Raw `accept:"*/*" doc:"The result itself."`
}

// Result is what the request stores, from the JSON or the raw body.
func (r *PutStepRequest) Result() api.Payload {
	if r.Raw.ContentType == "" {
		return r.Body.Result
	}
	return api.Bytes(r.Raw.Data, r.Raw.ContentType)
}

// StepAnswer is the record of a step, and whether this call stored it.
type StepAnswer struct {
	Outcome string `json:"outcome" enum:"stored,exists" doc:"Whether this call stored it."`
	api.StepRecord
}

// MarshalJSON writes both, for encoding/json.
func (a StepAnswer) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&a) }

// UnmarshalJSON reads what MarshalJSON writes.
func (a *StepAnswer) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, a) }
