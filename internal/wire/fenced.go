package wire

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// FencedByID identifies an execution in the path; the lease can be in the header instead of the body (U27).
type FencedByID struct {
	ByID
	LeaseHeader LeaseRef `header:"FlowFabric-Lease" argument:"lease" doc:"The lease as text, instead of the field lease."`
}

// LeaseField is the lease in the body of a fenced call.
type LeaseField struct {
	Lease LeaseRef `json:"lease,omitzero" doc:"The lease: as returned by the claim, only its three fence parts, or the fence as text."`
}

// OverrideFields let an operator end an attempt without a lease.
type OverrideFields struct {
	Override bool   `json:"override,omitempty" doc:"An operator ends the attempt without a lease."`
	Reason   string `json:"reason,omitempty" maxLength:"1024" doc:"For an override: reason."`
}

// RenewFields renew a lease.
type RenewFields struct {
	TTLMS int64 `json:"ttl_ms,omitempty" minimum:"500" maximum:"86400000" doc:"Default: the lease's own duration."`
}

// RenewRequest renews a lease.
type RenewRequest struct {
	FencedByID
	Body struct {
		LeaseField
		RenewFields
	}
}

// Renewed is the result of a renewal.
type Renewed struct {
	Lease api.Renewal `json:"lease" doc:"The renewed lease."`
	Drain bool        `json:"drain" doc:"Claim no new work."`
}

// ProgressFields report progress; absent fields are not changed.
type ProgressFields struct {
	Percent *int    `json:"percent,omitempty" minimum:"0" maximum:"100" doc:"Percentage done."`
	Message *string `json:"message,omitempty" maxLength:"4096" doc:"Current activity."`
}

// ProgressRequest reports progress.
type ProgressRequest struct {
	FencedByID
	Body struct {
		LeaseField
		ProgressFields
	}
}

// Progressed is the empty answer to a progress report.
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
	Raw Raw `accept:"*/*" doc:"The result."`
}

// Result returns the result from the JSON or the raw body.
func (r *CompleteRequest) Result() api.Payload {
	if r.Raw.ContentType == "" {
		return r.Body.Result
	}
	return api.Bytes(r.Raw.Data, r.Raw.ContentType)
}

// Completed is the answer to complete.
type Completed struct {
	Status string `json:"status" doc:"The new status."`
	Late   bool   `json:"late" doc:"The lease had lapsed, but no other worker had taken over."`
}

// FailFields describe the failure.
type FailFields struct {
	Class    string `json:"class,omitempty" enum:"transient,timeout,infra_crash,permanent,cancelled" doc:"Default transient."`
	Category string `json:"category,omitempty" maxLength:"64" doc:"Name of the failure; default: the class."`
	Message  string `json:"message" required:"true" doc:"Message for people."`
	DetailField
	RetryAfterMS  *int64             `json:"retry_after_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Delay before the retry, instead of the policy's."`
	DefaultPolicy *api.DefaultPolicy `json:"default_policy,omitempty" doc:"The default of the worker, used from now on if the submission does not say how it is retried: a policy with a retry_policy and nothing else."`
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

// Failed is the result of fail.
type Failed struct {
	Outcome string `json:"outcome" enum:"retry_scheduled,failed" doc:"What follows."`
	RetryAt Time   `json:"retry_at,omitzero" doc:"When it is retried."`
	Reason  string `json:"reason,omitempty" doc:"Why it is not retried."`
	Late    bool   `json:"late,omitempty" doc:"The lease had lapsed, but no other worker had taken over."`
}

// ReleaseRequest gives the work back.
type ReleaseRequest struct {
	FencedByID
	Body struct {
		LeaseField
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Default shutdown."`
	}
}

// DelayFields give a duration or a time; one of them is required.
type DelayFields struct {
	DelayMS *int64 `json:"delay_ms,omitempty" oneof:"until" minimum:"0" maximum:"315360000000" doc:"For this duration."`
	Until   Time   `json:"until,omitzero" oneof:"until" doc:"Until this time."`
}

// DelayRequest gives the work back until a later time.
type DelayRequest struct {
	FencedByID
	Body struct {
		LeaseField
		DelayFields
		UsageField
	}
}

// Left is the result of a command that gave the work back.
type Left struct {
	Status string `json:"status" doc:"The new status."`
	Reason string `json:"reason,omitempty" doc:"Reason of the status."`
	Late   bool   `json:"late,omitempty" doc:"The lease had lapsed, but no other worker had taken over."`
}

// PutStepRequest stores the result of a step. A body that is not JSON is the result itself, with the lease in the header.
type PutStepRequest struct {
	FencedByID
	Name string `path:"name" doc:"Name of the step."`
	EncodingField
	Body struct {
		LeaseField
		ResultField
	}
	Raw Raw `accept:"*/*" doc:"The result."`
}

// Result returns the result from the JSON or the raw body.
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
