package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Waitpoint is an address at which work waits for signals.
type Waitpoint struct {
	ID               string    `json:"waitpoint_id" doc:"Id of the waitpoint."`
	ExecutionID      ID        `json:"execution_id,omitempty" doc:"Execution that waits or may wait at it."`
	Namespace        string    `json:"namespace,omitempty" doc:"Namespace that it belongs to."`
	Key              string    `json:"waitpoint_key" doc:"What the work calls it."`
	RunIndex         int       `json:"run_index" doc:"Run that made it."`
	SuspensionID     string    `json:"suspension_id,omitempty" doc:"Suspension that it is or was bound to."` // "": none
	State            string    `json:"state,omitempty" doc:"pending, active or closed."`
	CloseReason      string    `json:"close_reason,omitempty" doc:"Why it is closed: resumed, timed_out, expired, closed, denied or ended."`
	RequiredNames    []string  `json:"required_signal_names" nil:"[]" doc:"Names of the signals that are waited for; none: any."`
	MintedAt         time.Time `json:"minted_at,omitzero" doc:"Tokens from before are dead."`
	TokenKid         string    `json:"token_kid,omitempty" doc:"Key of the token first handed out."`
	TokenFingerprint string    `json:"token_fingerprint,omitempty" doc:"Fingerprint of the token first handed out."`
	CreatedAt        time.Time `json:"created_at,omitzero" doc:"When it was made."`
	ActivatedAt      time.Time `json:"activated_at,omitzero" doc:"When the work began to wait at it."`
	ExpiresAt        time.Time `json:"expires_at,omitzero" doc:"When it closes, or the wait times out."`
	ClosedAt         time.Time `json:"closed_at,omitzero" doc:"When it closed."`
	SignalCount      int       `json:"signal_count" doc:"Signals that came."`
	MatchedSignals   int       `json:"matched_signal_count" doc:"Those of them that count."`
	LastSignalAt     time.Time `json:"last_signal_at,omitzero" doc:"When the last one came."`
	Links            int       `json:"links" doc:"Approval links that were made for it."`

	// Token and CallbackURL are shown to whoever makes the waitpoint, and by Waitpoints.Token and Reissue: give them to whoever is to
	// signal. Neither is written by a print, a log line or the JSON of this type.
	Token       Token  `json:"-" apart:"true"`
	CallbackURL string `json:"-" apart:"true"`
}

// IssuedWaitpoint is a waitpoint as it is shown to whoever may know its token. Without a key that signs the token is left out.
type IssuedWaitpoint struct {
	Waitpoint
	Token       string `json:"token,omitempty" doc:"The credential of a signal; give it to whoever is to signal."`
	CallbackURL string `json:"callback_url,omitempty" doc:"Address for senders that can only be given one. It holds the token."`
}

// Issued shows token and address of the waitpoint.
func (w Waitpoint) Issued() IssuedWaitpoint {
	issued := IssuedWaitpoint{Waitpoint: w, Token: w.Token.Reveal(), CallbackURL: w.CallbackURL}
	issued.Waitpoint.Token, issued.Waitpoint.CallbackURL = Token{}, ""
	return issued
}

// Concealed is the waitpoint with its token and its address, which it shows to nobody.
func (w IssuedWaitpoint) Concealed() Waitpoint {
	concealed := w.Waitpoint
	concealed.CallbackURL = w.CallbackURL
	if w.Token != "" {
		concealed.Token = TokenOf(w.Token)
	}
	return concealed
}

// CloseResult is the answer to a close of a waitpoint.
type CloseResult struct {
	Outcome string `json:"outcome" enum:"closed,already_closed" doc:"Whether this call closed it."`
}

// LinkChoice is a button of a link.
type LinkChoice struct {
	ID         string `json:"id" required:"true" maxLength:"64" doc:"Id of the decision."`
	Label      string `json:"label" required:"true" maxLength:"128" doc:"What its button says."`
	SignalName string `json:"signal_name" required:"true" maxLength:"128" doc:"Name of the signal that it sends."`
}

// ApprovalLink lets one named person decide once. URL is shown when the link is made and by Waitpoints.LinkURL; neither a print, a log
// line nor the JSON of this type shows it.
type ApprovalLink struct {
	ID              string       `json:"link_id" doc:"Id of the link."`
	WaitpointID     string       `json:"waitpoint_id" doc:"Waitpoint that the decision goes to."`
	ExecutionID     ID           `json:"execution_id,omitempty" doc:"Execution that waits for it."`
	Approver        string       `json:"approver" doc:"Who is asked."`
	Title           string       `json:"title,omitempty" doc:"What is asked, in a line."`
	Message         string       `json:"message,omitempty" doc:"What is asked, in full."`
	Choices         []LinkChoice `json:"decisions" nil:"[]" doc:"What can be answered."`
	CommentRequired bool         `json:"comment_required,omitempty" doc:"A decision needs a comment."`
	State           string       `json:"state,omitempty" doc:"open, decided, revoked, expired or closed."` // "" in the answers that show the URL
	CreatedAt       time.Time    `json:"created_at,omitzero" doc:"When it was made."`
	ExpiresAt       time.Time    `json:"expires_at,omitzero" doc:"When it can no longer be decided."`
	Decision        string       `json:"decision,omitempty" doc:"Id of the decision that was made."`
	Comment         string       `json:"comment,omitempty" doc:"What the approver wrote."`
	DecidedAt       time.Time    `json:"decided_at,omitzero" doc:"When it was decided."`

	URL string `json:"-" apart:"true"`
}

// IssuedLink is a link as it is shown to whoever may know its address.
type IssuedLink struct {
	ApprovalLink
	URL string `json:"url,omitempty" doc:"The address to send to the approver. It holds a token."`
}

// Issued shows the address of the link.
func (l ApprovalLink) Issued() IssuedLink {
	issued := IssuedLink{ApprovalLink: l, URL: l.URL}
	issued.ApprovalLink.URL = ""
	return issued
}

// Concealed is the link with its address, which it shows to nobody.
func (l IssuedLink) Concealed() ApprovalLink {
	concealed := l.ApprovalLink
	concealed.URL = l.URL
	return concealed
}

// Suspended is an execution that waits.
type Suspended struct {
	ExecutionID  ID                 `json:"execution_id" doc:"Id of the execution."`
	SuspensionID string             `json:"suspension_id" doc:"Its open suspension."`
	SuspendedAt  time.Time          `json:"suspended_at,omitzero" doc:"When the wait began."`
	TimeoutAt    time.Time          `json:"timeout_at,omitzero" doc:"When the wait times out."`
	ExpiresAt    time.Time          `json:"expires_at,omitzero" doc:"When it is too late: the timeout, or the deadline of the execution if that is earlier."`
	ReasonCode   string             `json:"reason_code" doc:"What is waited for."`
	Waitpoints   []Waitpoint        `json:"waitpoints" nil:"[]" doc:"The waitpoints that are open."`
	Progress     []NodeProgress     `json:"progress" nil:"[]" doc:"How far each part of the condition is."`
	Needed       int                `json:"needed,omitempty" doc:"How many different people must say the same; absent: the condition does not count."` // 0: it does not count
	Links        []ApprovalLink     `json:"links" nil:"[]" doc:"Links that were made, without their addresses."`
	Decisions    []PersonalDecision `json:"decisions" nil:"[]" doc:"What was said by people whom the engine knows."`
	Execution    *Execution         `json:"execution,omitempty" doc:"The execution in summary."`
}

// NodeProgress is how far one part of a condition is.
type NodeProgress struct {
	Node     Condition `json:"node" doc:"The part: a single or a count."`
	Progress int       `json:"progress" doc:"So many there are."`
	Needed   int       `json:"needed" doc:"So many are enough."`
}

// PersonalDecision is what somebody said whom the engine knows.
type PersonalDecision struct {
	By       string    `json:"by" doc:"Who."`
	Decision string    `json:"decision" doc:"Name of the signal."`
	Comment  string    `json:"comment,omitempty" doc:"What was written with it."`
	At       time.Time `json:"at,omitzero" doc:"When."`
}

// MarshalJSON writes the waitpoint as lists of the HTTP API show it, without token and address.
func (w Waitpoint) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, with token and address where an answer has them.
func (w *Waitpoint) UnmarshalJSON(text []byte) error {
	var issued IssuedWaitpoint
	err := readAnswer(text, &issued)
	*w = issued.Concealed()
	return err
}

// MarshalJSON writes the waitpoint as the HTTP API shows it, with token and address.
func (w IssuedWaitpoint) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (w *IssuedWaitpoint) UnmarshalJSON(text []byte) error { return readAnswer(text, w) }

// MarshalJSON writes the link as lists of the HTTP API show it, without its address.
func (l ApprovalLink) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, with the address where an answer has it.
func (l *ApprovalLink) UnmarshalJSON(text []byte) error {
	var issued IssuedLink
	err := readAnswer(text, &issued)
	*l = issued.Concealed()
	return err
}

// MarshalJSON writes the link as the HTTP API shows it, with its address.
func (l IssuedLink) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&l) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (l *IssuedLink) UnmarshalJSON(text []byte) error { return readAnswer(text, l) }

// MarshalJSON writes the entry as the HTTP API shows it.
func (s Suspended) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *Suspended) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// UnmarshalJSON reads what the HTTP API writes.
func (n *NodeProgress) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }

// MarshalJSON writes what was said, as the HTTP API shows it.
func (d PersonalDecision) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&d) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (d *PersonalDecision) UnmarshalJSON(text []byte) error { return readAnswer(text, d) }
