package api

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// TimeoutBehavior is what happens when a suspension times out.
type TimeoutBehavior string

// Behaviours at a timeout.
const (
	FailOnTimeout     TimeoutBehavior = "fail"
	CancelOnTimeout   TimeoutBehavior = "cancel"
	ExpireOnTimeout   TimeoutBehavior = "expire"
	ResumeOnTimeout   TimeoutBehavior = "auto_resume_with_timeout_signal" // resume, with a signal named TimeoutSignal
	EscalateOnTimeout TimeoutBehavior = "escalate"                        // keep waiting, for an operator
)

// Condition says which signals end a suspension. Functions of package flowfabric make one: OnSignal, AllOf, AnyOf, CountOf,
// OperatorOnly and TimeoutOnly.
type Condition struct {
	Type        string      `json:"type" required:"true" enum:"single,all_of,any_of,count,operator_only,timeout_only" doc:"Type of the condition."` // "": single
	Key         string      `json:"waitpoint_key,omitempty" maxLength:"128" doc:"For single: the waitpoint; the first one if absent."`
	Name        string      `json:"name,omitempty" maxLength:"128" doc:"For single and count: name of the signal; any if absent."`
	Members     []Condition `json:"members,omitempty" doc:"For all_of and any_of: the nested conditions."`
	N           int         `json:"n,omitempty" minimum:"0" doc:"For count: the required number."`
	CountKind   string      `json:"count_kind,omitempty" enum:"distinct_sources,distinct_signals,distinct_waitpoints" doc:"For count: what must be distinct."`
	SourceTypes []string    `json:"source_types,omitzero" minItems:"1" doc:"For count: only signals of these source types; all if absent."`
	Keys        []string    `json:"waitpoints,omitempty" doc:"For count: keys of the waitpoints."`

	emptyKey, emptyName bool // JSON gave an empty text, which the rules refuse
}

// The type of a condition without a type in Go.
const conditionSingle = "single"

// conditionFields are the fields of each type of condition.
var conditionFields = map[string][]string{
	conditionSingle: {"waitpoint_key", "name"},
	"all_of":        {"members"},
	"any_of":        {"members"},
	"count":         {"n", "count_kind", "name", "source_types", "waitpoints"},
	"operator_only": {},
	"timeout_only":  {},
}

// countKinds are what a count can distinguish.
var countKinds = []string{"distinct_sources", "distinct_signals", "distinct_waitpoints"}

// CheckJSON refuses fields of other types, and records which texts were given as empty. An empty list of source types is refused
// because it could mean all or none: a computed list of approvers that is empty by accident must not admit everyone.
func (c *Condition) CheckJSON(given []string) jsonx.Errors {
	known, ok := conditionFields[c.Type]
	switch {
	case c.Type == "":
		return nil // missing_field reports it
	case !ok:
		names := slices.Sorted(maps.Keys(conditionFields))
		return jsonx.Errors{{Code: jsonx.CodeInvalidArgument, Field: "/type", Detail: "unknown condition", Hint: "use " + strings.Join(names, ", ")}}
	}
	var faults jsonx.Errors
	for _, name := range given {
		if name != "type" && !slices.Contains(known, name) {
			faults = append(faults, &jsonx.Error{Code: jsonx.CodeUnknownField, Field: "/" + name, Detail: c.Type + " has no such field", Hint: jsonx.Hint(name, known)})
		}
	}
	if c.Type == "count" && !slices.Contains(countKinds, c.CountKind) {
		faults = append(faults, &jsonx.Error{Code: jsonx.CodeInvalidArgument, Field: "/count_kind", Detail: "count_kind is required", Hint: "use " + strings.Join(countKinds, ", ")})
	}
	if c.SourceTypes != nil && len(c.SourceTypes) == 0 {
		faults = append(faults, &jsonx.Error{Code: jsonx.CodeInvalidArgument, Field: "/source_types", Detail: "the list is empty", Hint: "omit it to count signals of every source type"})
	}
	c.emptyKey = c.Key == "" && slices.Contains(given, "waitpoint_key")
	c.emptyName = c.Name == "" && slices.Contains(given, "name")
	return faults
}

// Given returns key and name, nil if absent. A text that was given as empty in JSON is returned, so that it is refused.
func (c Condition) Given() (key, name *string) {
	if c.Key != "" || c.emptyKey {
		key = &c.Key
	}
	if c.Name != "" || c.emptyName {
		name = &c.Name
	}
	return key, name
}

// SignalRecord is an accepted signal.
type SignalRecord struct {
	ID             string    `json:"signal_id" doc:"Id of the signal."`
	Ordinal        int       `json:"ordinal" doc:"Order of acceptance within the execution, from 1."`
	WaitpointID    string    `json:"waitpoint_id,omitempty" doc:"Waitpoint that received it."`
	WaitpointKey   string    `json:"waitpoint_key,omitempty" doc:"Key of that waitpoint."`
	Name           string    `json:"name" doc:"Name of the signal."`
	Category       string    `json:"category" doc:"Category: external, approval, system or another word."`
	SourceType     string    `json:"source_type" doc:"Type of the sender."`
	SourceIdentity string    `json:"source_identity,omitempty" doc:"Identity of the sender."`
	SourceVerified bool      `json:"source_verified" doc:"Whether the engine verified the sender; otherwise it is the sender's claim."`
	CorrelationID  string    `json:"correlation_id,omitempty" doc:"Correlation id of the sender."`
	SentAt         time.Time `json:"sent_at,omitzero" doc:"When it was sent, according to the sender."`
	AcceptedAt     time.Time `json:"accepted_at,omitzero" doc:"When it was accepted."`
	// Payload is the payload of the signal. If it is Omitted, it did not fit into this answer: use Executions.Signals.
	Payload Payload `json:"payload,omitempty" spread:"shown" doc:"The payload."`
	Matched bool    `json:"matched" doc:"Whether it counts for the condition."`
	Effect  string  `json:"effect,omitempty" doc:"Its effect when it was accepted."`
}

// SuspensionRecord is a stored suspension.
type SuspensionRecord struct {
	ID             string           `json:"suspension_id" doc:"Id of the suspension."`
	RunIndex       int              `json:"run_index" doc:"Run that was suspended."`
	AttemptIndex   int              `json:"attempt_index" doc:"Attempt that was suspended."`
	SuspendedAt    time.Time        `json:"suspended_at,omitzero" doc:"When the suspension began."`
	ReasonCode     string           `json:"reason_code" doc:"What it waits for."`
	TimeoutAt      time.Time        `json:"timeout_at,omitzero" doc:"When it times out."`
	OnTimeout      TimeoutBehavior  `json:"timeout_behavior,omitempty" doc:"What happens then."`
	Until          Condition        `json:"resume_condition" doc:"Condition that ends it."`
	Waitpoints     []BoundWaitpoint `json:"waitpoints" nil:"[]" doc:"The waitpoints, in the order of binding."`
	Cause          string           `json:"cause,omitempty" doc:"How it ended: signal, operator, timeout, early_signals, budget_approved, budget_denied, cancelled or ended; absent while it is open."` // "": it is open
	ClosedAt       time.Time        `json:"closed_at,omitzero" doc:"When it ended."`
	CloserSignalID string           `json:"closer_signal_id,omitempty" doc:"Signal that satisfied the condition."`
	By             string           `json:"by,omitempty" doc:"Operator who ended it."`
	EscalatedAt    time.Time        `json:"escalated_at,omitzero" doc:"When it timed out and was escalated to operators."`
	Signals        []SignalRecord   `json:"signals,omitempty" doc:"Signals received, in order of acceptance."`
	Continuation   Payload          `json:"continuation,omitempty" spread:"kept" doc:"The continuation."` // only Executions.Suspension loads its bytes
}

// Outcomes of a signal.
const (
	SignalAccepted  = "accepted"
	SignalDuplicate = "duplicate"
)

// SignalReceipt is the result of sending a signal.
type SignalReceipt struct {
	Outcome     string `json:"outcome" enum:"accepted,duplicate" doc:"Whether this call delivered it."` // SignalAccepted or SignalDuplicate
	SignalID    string `json:"signal_id" doc:"Id of the signal; for a duplicate, of the first one."`
	Effect      string `json:"effect" doc:"Its effect; for a duplicate, the effect of the first one."`
	SameRequest bool   `json:"same_request,omitempty" doc:"For a duplicate: name, payload and category equal those of the first."`
}

// AppendJSON adds what MarshalJSON writes to a text.
func (r SignalReceipt) AppendJSON(text []byte) ([]byte, error) {
	type fields SignalReceipt
	text, err := jsonx.Append(text, (*fields)(&r))
	if err != nil || r.Outcome != SignalDuplicate || r.SameRequest {
		return text, err
	}
	return append(jsonx.AppendName(text[:len(text)-1], "same_request", ""), "false}"...), nil // always shown for a duplicate
}

// AppendJSON adds what MarshalJSON writes to a text.
func (c Condition) AppendJSON(text []byte) ([]byte, error) {
	written := struct {
		Type        string      `json:"type"`
		Key         *string     `json:"waitpoint_key,omitempty"`
		Name        *string     `json:"name,omitempty"`
		Members     []Condition `json:"members,omitempty"`
		N           int         `json:"n,omitempty"`
		CountKind   string      `json:"count_kind,omitempty"`
		SourceTypes []string    `json:"source_types,omitzero"`
		Keys        []string    `json:"waitpoints,omitempty"`
	}{cmp.Or(c.Type, conditionSingle), nil, nil, c.Members, c.N, c.CountKind, c.SourceTypes, c.Keys}
	written.Key, written.Name = c.Given()
	return jsonx.Append(text, &written)
}

// MarshalJSON writes the condition as the HTTP API shows it.
func (c Condition) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// UnmarshalJSON reads a condition as strictly as the HTTP API does.
func (c *Condition) UnmarshalJSON(text []byte) error { return readRequest(text, c) }

// MarshalJSON writes the signal as the HTTP API shows it.
func (s SignalRecord) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *SignalRecord) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// MarshalJSON writes the suspension as the HTTP API shows it.
func (s SuspensionRecord) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *SuspensionRecord) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// MarshalJSON writes the receipt as the HTTP API shows it.
func (r SignalReceipt) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *SignalReceipt) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }
