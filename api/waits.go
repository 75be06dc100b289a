package api

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// TimeoutBehavior is what happens to a suspension whose time is over.
type TimeoutBehavior string

// The behaviours at a timeout.
const (
	FailOnTimeout     TimeoutBehavior = "fail"
	CancelOnTimeout   TimeoutBehavior = "cancel"
	ExpireOnTimeout   TimeoutBehavior = "expire"
	ResumeOnTimeout   TimeoutBehavior = "auto_resume_with_timeout_signal" // go on, with a signal named TimeoutSignal
	EscalateOnTimeout TimeoutBehavior = "escalate"                        // wait on, for an operator
)

// Condition says which signals are enough. Package flowfabric has functions that make one: OnSignal, AllOf, AnyOf, CountOf, OperatorOnly and
// TimeoutOnly.
type Condition struct {
	Type        string      `json:"type" required:"true" enum:"single,all_of,any_of,count,operator_only,timeout_only" doc:"What sort of condition it is."` // "": single
	Key         string      `json:"waitpoint_key,omitempty" maxLength:"128" doc:"Of single: the waitpoint; the first one if absent."`
	Name        string      `json:"name,omitempty" maxLength:"128" doc:"Of single and count: name of the signal; any if absent."`
	Members     []Condition `json:"members,omitempty" doc:"Of all_of and any_of: the conditions in it."`
	N           int         `json:"n,omitempty" minimum:"0" doc:"Of count: how many are enough."`
	CountKind   string      `json:"count_kind,omitempty" enum:"distinct_sources,distinct_signals,distinct_waitpoints" doc:"Of count: what is told apart."`
	SourceTypes []string    `json:"source_types,omitzero" minItems:"1" doc:"Of count: only signals of these source types; of all if absent."`
	Keys        []string    `json:"waitpoints,omitempty" doc:"Of count: keys of the waitpoints."`

	emptyKey, emptyName bool // JSON gave an empty text, which the rules refuse
}

// The type of a condition that has none in Go.
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

// countKinds are what a count may tell apart.
var countKinds = []string{"distinct_sources", "distinct_signals", "distinct_waitpoints"}

// CheckJSON refuses fields that another type has, and records which texts were given as empty. An empty list of source types could mean all
// or none: whoever computes the list of those who may approve must not get all by an accident.
func (c *Condition) CheckJSON(given []string) jsonx.Errors {
	known, ok := conditionFields[c.Type]
	switch {
	case c.Type == "":
		return nil // missing_field says so already
	case !ok:
		names := slices.Sorted(maps.Keys(conditionFields))
		return jsonx.Errors{{Code: jsonx.CodeInvalidArgument, Field: "/type", Detail: "there is no such condition", Hint: "use " + strings.Join(names, ", ")}}
	}
	var faults jsonx.Errors
	for _, name := range given {
		if name != "type" && !slices.Contains(known, name) {
			faults = append(faults, &jsonx.Error{Code: jsonx.CodeUnknownField, Field: "/" + name, Detail: c.Type + " has no such field", Hint: jsonx.Hint(name, known)})
		}
	}
	if c.Type == "count" && !slices.Contains(countKinds, c.CountKind) {
		faults = append(faults, &jsonx.Error{Code: jsonx.CodeInvalidArgument, Field: "/count_kind", Detail: "say what is counted", Hint: "use " + strings.Join(countKinds, ", ")})
	}
	if c.SourceTypes != nil && len(c.SourceTypes) == 0 {
		faults = append(faults, &jsonx.Error{Code: jsonx.CodeInvalidArgument, Field: "/source_types", Detail: "the list is empty", Hint: "leave it out to count signals of every source type"})
	}
	c.emptyKey = c.Key == "" && slices.Contains(given, "waitpoint_key")
	c.emptyName = c.Name == "" && slices.Contains(given, "name")
	return faults
}

// Given returns key and name, nil where they are absent. A text that JSON gave as empty is there, for the rules to refuse.
func (c Condition) Given() (key, name *string) {
	if c.Key != "" || c.emptyKey {
		key = &c.Key
	}
	if c.Name != "" || c.emptyName {
		name = &c.Name
	}
	return key, name
}

// SignalRecord is a signal as it was taken in.
type SignalRecord struct {
	ID             string    `json:"signal_id" doc:"Id of the signal."`
	Ordinal        int       `json:"ordinal" doc:"Order of acceptance within the execution, from 1."`
	WaitpointID    string    `json:"waitpoint_id,omitempty" doc:"Where it came."`
	WaitpointKey   string    `json:"waitpoint_key,omitempty" doc:"Key of that waitpoint."`
	Name           string    `json:"name" doc:"What happened."`
	Category       string    `json:"category" doc:"Sort of signal: external, approval, system or another word."`
	SourceType     string    `json:"source_type" doc:"Sort of sender."`
	SourceIdentity string    `json:"source_identity,omitempty" doc:"Who sent it."`
	SourceVerified bool      `json:"source_verified" doc:"Whether the engine knows who it was; else the sender said so."`
	CorrelationID  string    `json:"correlation_id,omitempty" doc:"What the sender called it."`
	SentAt         time.Time `json:"sent_at,omitzero" doc:"When the sender says that it was sent."`
	AcceptedAt     time.Time `json:"accepted_at,omitzero" doc:"When it was taken in."`
	// Payload is what it brought. If it is Omitted, its bytes had no room in this answer: Executions.Signals fetches them.
	Payload Payload `json:"payload,omitempty" spread:"shown" doc:"The payload."`
	Matched bool    `json:"matched" doc:"Whether it counts for the condition."`
	Effect  string  `json:"effect,omitempty" doc:"What it did when it came."`
}

// SuspensionRecord is a suspension as it is kept.
type SuspensionRecord struct {
	ID             string           `json:"suspension_id" doc:"Id of the suspension."`
	RunIndex       int              `json:"run_index" doc:"Run that waited."`
	AttemptIndex   int              `json:"attempt_index" doc:"Attempt that waited."`
	SuspendedAt    time.Time        `json:"suspended_at,omitzero" doc:"When the wait began."`
	ReasonCode     string           `json:"reason_code" doc:"What is waited for."`
	TimeoutAt      time.Time        `json:"timeout_at,omitzero" doc:"When the wait times out."`
	OnTimeout      TimeoutBehavior  `json:"timeout_behavior,omitempty" doc:"What happens then."`
	Until          Condition        `json:"resume_condition" doc:"Which signals are enough."`
	Waitpoints     []BoundWaitpoint `json:"waitpoints" nil:"[]" doc:"The waitpoints, in the order in which they were bound."`
	Cause          string           `json:"cause,omitempty" doc:"How it ended: signal, operator, timeout, early_signals, budget_approved, budget_denied, cancelled or ended; absent while it is open."` // "": it is open
	ClosedAt       time.Time        `json:"closed_at,omitzero" doc:"When it ended."`
	CloserSignalID string           `json:"closer_signal_id,omitempty" doc:"Signal that was the last one needed."`
	By             string           `json:"by,omitempty" doc:"Operator who ended it."`
	EscalatedAt    time.Time        `json:"escalated_at,omitzero" doc:"When it timed out and was left to operators."`
	Signals        []SignalRecord   `json:"signals,omitempty" doc:"The signals that came, in order of acceptance."`
	Continuation   Payload          `json:"continuation,omitempty" spread:"kept" doc:"The continuation."` // Executions.Suspension alone has its bytes
}

// The outcomes of a signal.
const (
	SignalAccepted  = "accepted"
	SignalDuplicate = "duplicate"
)

// SignalReceipt is the answer to a signal.
type SignalReceipt struct {
	Outcome     string `json:"outcome" enum:"accepted,duplicate" doc:"Whether this call delivered it."` // SignalAccepted or SignalDuplicate
	SignalID    string `json:"signal_id" doc:"Id of the signal; of a duplicate that of the first delivery."`
	Effect      string `json:"effect" doc:"What it did; of a duplicate what the first delivery did."`
	SameRequest bool   `json:"same_request,omitempty" doc:"Of a duplicate: name, payload and category are those of the first."`
}

// AppendJSON adds what MarshalJSON writes to a text.
func (r SignalReceipt) AppendJSON(text []byte) ([]byte, error) {
	type fields SignalReceipt
	text, err := jsonx.Append(text, (*fields)(&r))
	if err != nil || r.Outcome != SignalDuplicate || r.SameRequest {
		return text, err
	}
	return append(jsonx.AppendName(text[:len(text)-1], "same_request", ""), "false}"...), nil // a duplicate shows it in any case
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
