package wire

import (
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// ResumeCondition says which signals are enough (U29).
type ResumeCondition struct {
	Type         string            `json:"type" required:"true" enum:"single,all_of,any_of,count,operator_only,timeout_only" doc:"What sort of condition it is."`
	WaitpointKey *string           `json:"waitpoint_key,omitempty" maxLength:"128" doc:"Of single: the waitpoint; the first one if absent."`
	Name         *string           `json:"name,omitempty" maxLength:"128" doc:"Of single and count: name of the signal; any if absent."`
	Members      []ResumeCondition `json:"members,omitempty" doc:"Of all_of and any_of: the conditions in it."`
	N            int               `json:"n,omitempty" minimum:"0" doc:"Of count: how many are enough."`
	CountKind    string            `json:"count_kind,omitempty" enum:"distinct_sources,distinct_signals,distinct_waitpoints" doc:"Of count: what is told apart."`
	SourceTypes  []string          `json:"source_types,omitzero" minItems:"1" doc:"Of count: only signals of these source types; of all if absent."`
	Waitpoints   []string          `json:"waitpoints,omitempty" doc:"Of count: keys of the waitpoints."`
}

// conditionFields are the fields of each type of condition.
var conditionFields = map[string][]string{
	"single":        {"waitpoint_key", "name"},
	"all_of":        {"members"},
	"any_of":        {"members"},
	"count":         {"n", "count_kind", "name", "source_types", "waitpoints"},
	"operator_only": {},
	"timeout_only":  {},
}

// countKinds are what a count may tell apart.
var countKinds = []string{"distinct_sources", "distinct_signals", "distinct_waitpoints"}

// CheckJSON refuses fields that another type has. An empty list of source types could mean all or none: whoever computes the list of
// those who may approve must not get all by an accident.
func (c *ResumeCondition) CheckJSON(given []string) Errors {
	known, ok := conditionFields[c.Type]
	switch {
	case c.Type == "":
		return nil // missing_field says so already
	case !ok:
		names := slices.Sorted(maps.Keys(conditionFields))
		return Errors{{Code: jsonx.CodeInvalidArgument, Field: "/type", Detail: "there is no such condition", Hint: "use " + strings.Join(names, ", ")}}
	}
	var faults Errors
	for _, name := range given {
		if name != "type" && !slices.Contains(known, name) {
			faults = append(faults, &Error{Code: jsonx.CodeUnknownField, Field: "/" + name, Detail: c.Type + " has no such field", Hint: jsonx.Hint(name, known)})
		}
	}
	if c.Type == "count" && !slices.Contains(countKinds, c.CountKind) {
		faults = append(faults, &Error{Code: jsonx.CodeInvalidArgument, Field: "/count_kind", Detail: "say what is counted", Hint: "use " + strings.Join(countKinds, ", ")})
	}
	if c.SourceTypes != nil && len(c.SourceTypes) == 0 {
		faults = append(faults, &Error{Code: jsonx.CodeInvalidArgument, Field: "/source_types", Detail: "the list is empty", Hint: "leave it out to count signals of every source type"})
	}
	return faults
}

// Binding is a waitpoint of a suspension: one that it makes, or a pending one that it adopts (U29).
type Binding struct {
	Fresh      *FreshWaitpoint   `json:"fresh,omitempty" oneof:"binding" doc:"A new waitpoint."`
	UsePending *PendingWaitpoint `json:"use_pending,omitempty" oneof:"binding" doc:"One that was made before, with its token and its signals."`
}

// FreshWaitpoint is a waitpoint that a suspension makes.
type FreshWaitpoint struct {
	WaitpointKey *string `json:"waitpoint_key,omitempty" maxLength:"128" doc:"Its key; the condition's if absent."`
	WaitpointID  string  `json:"waitpoint_id,omitempty" doc:"Id that the caller brings."`
}

// PendingWaitpoint is a waitpoint that a suspension adopts.
type PendingWaitpoint struct {
	WaitpointID string `json:"waitpoint_id" required:"true" doc:"Its id."`
}

// CheckJSON wants one of the two.
func (*Binding) CheckJSON(given []string) Errors {
	if len(given) > 0 {
		return nil
	}
	return Errors{{Code: jsonx.CodeMissingField, Field: "/fresh", Detail: "a binding is fresh or use_pending", Hint: `give {"fresh":{}} or {"use_pending":{"waitpoint_id":"..."}}`}}
}

// Waitpoint is an address at which work waits for signals, without its token (U30).
type Waitpoint struct {
	WaitpointID         string   `json:"waitpoint_id" doc:"Id of the waitpoint."`
	ExecutionID         string   `json:"execution_id,omitempty" doc:"Execution that waits or may wait at it."`
	Namespace           string   `json:"namespace,omitempty" doc:"Namespace that it belongs to."`
	WaitpointKey        string   `json:"waitpoint_key" doc:"What the work calls it."`
	RunIndex            int      `json:"run_index" doc:"Run that made it."`
	SuspensionID        string   `json:"suspension_id,omitempty" doc:"Suspension that it is or was bound to."`
	State               string   `json:"state,omitempty" doc:"pending, active or closed."`
	CloseReason         string   `json:"close_reason,omitempty" doc:"Why it is closed: resumed, timed_out, expired, closed, denied or ended."`
	RequiredSignalNames []string `json:"required_signal_names" doc:"Names of the signals that are waited for; none: any."`
	MintedAt            Time     `json:"minted_at,omitzero" doc:"Tokens from before are dead."`
	TokenKid            string   `json:"token_kid,omitempty" doc:"Key of the token first handed out."`
	TokenFingerprint    string   `json:"token_fingerprint,omitempty" doc:"Fingerprint of the token first handed out."`
	CreatedAt           Time     `json:"created_at,omitzero" doc:"When it was made."`
	ActivatedAt         Time     `json:"activated_at,omitzero" doc:"When the work began to wait at it."`
	ExpiresAt           Time     `json:"expires_at,omitzero" doc:"When it closes, or the wait times out."`
	ClosedAt            Time     `json:"closed_at,omitzero" doc:"When it closed."`
	SignalCount         int      `json:"signal_count" doc:"Signals that came."`
	MatchedSignalCount  int      `json:"matched_signal_count" doc:"Those of them that count."`
	LastSignalAt        Time     `json:"last_signal_at,omitzero" doc:"When the last one came."`
	Links               int      `json:"links" doc:"Approval links that were made for it."`
}

// IssuedWaitpoint is a waitpoint as it is shown to whoever may know its token (U30). Without a key that signs the token is left out.
type IssuedWaitpoint struct {
	Waitpoint
	Token       string `json:"token,omitempty" doc:"The credential of a signal; give it to whoever is to signal."`
	CallbackURL string `json:"callback_url,omitempty" doc:"Address for senders that can only be given one. It holds the token."`
}

// Signal is a signal as it was taken in (U30).
type Signal struct {
	SignalID       string `json:"signal_id" doc:"Id of the signal."`
	Ordinal        int    `json:"ordinal" doc:"Order of acceptance within the execution, from 1."`
	WaitpointID    string `json:"waitpoint_id,omitempty" doc:"Where it came."`
	WaitpointKey   string `json:"waitpoint_key,omitempty" doc:"Key of that waitpoint."`
	Name           string `json:"name" doc:"What happened."`
	Category       string `json:"category" doc:"Sort of signal: external, approval, system or another word."`
	SourceType     string `json:"source_type" doc:"Sort of sender."`
	SourceIdentity string `json:"source_identity,omitempty" doc:"Who sent it."`
	SourceVerified bool   `json:"source_verified" doc:"Whether the engine knows who it was; else the sender said so."`
	CorrelationID  string `json:"correlation_id,omitempty" doc:"What the sender called it."`
	SentAt         Time   `json:"sent_at,omitzero" doc:"When the sender says that it was sent."`
	AcceptedAt     Time   `json:"accepted_at,omitzero" doc:"When it was taken in."`
	PayloadShown
	Matched bool   `json:"matched" doc:"Whether it counts for the condition."`
	Effect  string `json:"effect,omitempty" doc:"What it did when it came."`
}

// Suspension is a wait of an execution (U42).
type Suspension struct {
	SuspensionID    string               `json:"suspension_id" doc:"Id of the suspension."`
	RunIndex        int                  `json:"run_index" doc:"Run that waited."`
	AttemptIndex    int                  `json:"attempt_index" doc:"Attempt that waited."`
	SuspendedAt     Time                 `json:"suspended_at,omitzero" doc:"When the wait began."`
	ReasonCode      string               `json:"reason_code" doc:"What is waited for."`
	TimeoutAt       Time                 `json:"timeout_at,omitzero" doc:"When the wait times out."`
	TimeoutBehavior string               `json:"timeout_behavior,omitempty" doc:"What happens then."`
	ResumeCondition ResumeCondition      `json:"resume_condition" doc:"Which signals are enough."`
	Waitpoints      []api.BoundWaitpoint `json:"waitpoints" doc:"The waitpoints, in the order in which they were bound."`
	Cause           string               `json:"cause,omitempty" doc:"How it ended: signal, operator, timeout, early_signals, budget_approved, budget_denied, cancelled or ended; absent while it is open."`
	ClosedAt        Time                 `json:"closed_at,omitzero" doc:"When it ended."`
	CloserSignalID  string               `json:"closer_signal_id,omitempty" doc:"Signal that was the last one needed."`
	By              string               `json:"by,omitempty" doc:"Operator who ended it."`
	EscalatedAt     Time                 `json:"escalated_at,omitzero" doc:"When it timed out and was left to operators."`
	Signals         []Signal             `json:"signals,omitempty" doc:"The signals that came, in order of acceptance."`
	ContinuationShown
}

// NoSuspension is the answer about an execution that was never suspended in its present run.
type NoSuspension struct{}

// Resumed is how the wait ended after which a task goes on (U28).
type Resumed struct {
	SuspensionID string   `json:"suspension_id,omitempty" doc:"The suspension that ended; absent after a wait for children."`
	Cause        string   `json:"cause" doc:"How it ended: signal, operator, timeout, early_signals or budget_approved; of a wait for children children, children_impossible or children_timeout."`
	Signals      []Signal `json:"signals" doc:"The signals that came, in order of acceptance."`
	Children     []Child  `json:"children,omitempty" doc:"After a wait for children: those that it waited for."`
	ContinuationShown
}

// Link is an approval link without its address (U84).
type Link struct {
	LinkID          string       `json:"link_id" doc:"Id of the link."`
	WaitpointID     string       `json:"waitpoint_id" doc:"Waitpoint that the decision goes to."`
	ExecutionID     string       `json:"execution_id,omitempty" doc:"Execution that waits for it."`
	Approver        string       `json:"approver" doc:"Who is asked."`
	Title           string       `json:"title,omitempty" doc:"What is asked, in a line."`
	Message         string       `json:"message,omitempty" doc:"What is asked, in full."`
	Decisions       []LinkChoice `json:"decisions" doc:"What can be answered."`
	CommentRequired bool         `json:"comment_required,omitempty" doc:"A decision needs a comment."`
	State           string       `json:"state,omitempty" doc:"open, decided, revoked, expired or closed."`
	CreatedAt       Time         `json:"created_at,omitzero" doc:"When it was made."`
	ExpiresAt       Time         `json:"expires_at,omitzero" doc:"When it can no longer be decided."`
	Decision        string       `json:"decision,omitempty" doc:"Id of the decision that was made."`
	Comment         string       `json:"comment,omitempty" doc:"What the approver wrote."`
	DecidedAt       Time         `json:"decided_at,omitzero" doc:"When it was decided."`
}

// LinkChoice is a decision that a link offers.
type LinkChoice struct {
	ID         string `json:"id" required:"true" maxLength:"64" doc:"Id of the decision."`
	Label      string `json:"label" required:"true" maxLength:"128" doc:"What its button says."`
	SignalName string `json:"signal_name" required:"true" maxLength:"128" doc:"Name of the signal that it sends."`
}

// IssuedLink is a link as it is shown to whoever may know its address.
type IssuedLink struct {
	Link
	URL string `json:"url,omitempty" doc:"The address to send to the approver. It holds a token."`
}

// Suspended is an execution that waits (U85).
type Suspended struct {
	ExecutionID  string             `json:"execution_id" doc:"Id of the execution."`
	SuspensionID string             `json:"suspension_id" doc:"Its open suspension."`
	SuspendedAt  Time               `json:"suspended_at,omitzero" doc:"When the wait began."`
	TimeoutAt    Time               `json:"timeout_at,omitzero" doc:"When the wait times out."`
	ExpiresAt    Time               `json:"expires_at,omitzero" doc:"When it is too late: the timeout, or the deadline of the execution if that is earlier."`
	ReasonCode   string             `json:"reason_code" doc:"What is waited for."`
	Waitpoints   []Waitpoint        `json:"waitpoints" doc:"The waitpoints that are open."`
	Progress     []NodeProgress     `json:"progress" doc:"How far each part of the condition is."`
	Needed       int                `json:"needed,omitempty" doc:"How many different people must say the same; absent: the condition does not count."`
	Links        []Link             `json:"links" doc:"Links that were made, without their addresses."`
	Decisions    []PersonalDecision `json:"decisions" doc:"What was said by people whom the engine knows."`
	Execution    *api.Execution     `json:"execution,omitempty" doc:"The execution in summary."`
}

// NodeProgress is how far one part of a condition is.
type NodeProgress struct {
	Node     ResumeCondition `json:"node" doc:"The part: a single or a count."`
	Progress int             `json:"progress" doc:"So many there are."`
	Needed   int             `json:"needed" doc:"So many are enough."`
}

// PersonalDecision is what somebody said.
type PersonalDecision struct {
	By       string `json:"by" doc:"Who."`
	Decision string `json:"decision" doc:"Name of the signal."`
	Comment  string `json:"comment,omitempty" doc:"What was written with it."`
	At       Time   `json:"at,omitzero" doc:"When."`
}

// SignalReceipt is the answer to a signal (U52, U81).
type SignalReceipt struct {
	Outcome     string `json:"outcome" enum:"accepted,duplicate" doc:"Whether this call delivered it."`
	SignalID    string `json:"signal_id" doc:"Id of the signal; of a duplicate that of the first delivery."`
	Effect      string `json:"effect" doc:"What it did; of a duplicate what the first delivery did."`
	SameRequest *bool  `json:"same_request,omitempty" doc:"Of a duplicate: name, payload and category are those of the first."`
}
