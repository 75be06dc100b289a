package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Waitpoint is a named place where an execution receives signals.
type Waitpoint struct {
	ID               string    `json:"waitpoint_id" doc:"Id of the waitpoint."`
	ExecutionID      ID        `json:"execution_id,omitempty" doc:"Execution of the waitpoint."`
	Namespace        string    `json:"namespace,omitempty" doc:"Namespace of the waitpoint."`
	Key              string    `json:"waitpoint_key" doc:"Its key, chosen by the execution."`
	RunIndex         int       `json:"run_index" doc:"Run that created it."`
	SuspensionID     string    `json:"suspension_id,omitempty" doc:"Suspension that uses or used it."` // "": none
	State            string    `json:"state,omitempty" doc:"pending, active or closed."`
	CloseReason      string    `json:"close_reason,omitempty" doc:"Why it is closed: resumed, timed_out, expired, closed, denied or ended."`
	RequiredNames    []string  `json:"required_signal_names" nil:"[]" doc:"Names of the signals that count; empty: any."`
	MintedAt         time.Time `json:"minted_at,omitzero" doc:"Tokens issued before are invalid."`
	TokenKid         string    `json:"token_kid,omitempty" doc:"Signing key of the first token."`
	TokenFingerprint string    `json:"token_fingerprint,omitempty" doc:"Fingerprint of the first token."`
	CreatedAt        time.Time `json:"created_at,omitzero" doc:"When it was created."`
	ActivatedAt      time.Time `json:"activated_at,omitzero" doc:"When a suspension started to use it."`
	ExpiresAt        time.Time `json:"expires_at,omitzero" doc:"When it closes, or the suspension times out."`
	ClosedAt         time.Time `json:"closed_at,omitzero" doc:"When it closed."`
	SignalCount      int       `json:"signal_count" doc:"Signals received."`
	MatchedSignals   int       `json:"matched_signal_count" doc:"Signals that count."`
	LastSignalAt     time.Time `json:"last_signal_at,omitzero" doc:"When the last signal was received."`
	Links            int       `json:"links" doc:"Number of its approval links."`

	// Token and CallbackURL are set where the waitpoint is created, and by Waitpoints.Token and Reissue: give them to the sender
	// of the signal. Printing, logging and the JSON of this type omit them.
	Token       Token  `json:"-" apart:"true"`
	CallbackURL string `json:"-" apart:"true"`
}

// IssuedWaitpoint is a waitpoint with its token, for callers that may see it. The token is omitted if there is no signing key.
type IssuedWaitpoint struct {
	Waitpoint
	Token       string `json:"token,omitempty" doc:"The credential for signals; give it to the sender."`
	CallbackURL string `json:"callback_url,omitempty" doc:"URL for senders that accept only a URL. It contains the token."`
}

// Issued returns the waitpoint with token and address shown.
func (w Waitpoint) Issued() IssuedWaitpoint {
	issued := IssuedWaitpoint{Waitpoint: w, Token: w.Token.Reveal(), CallbackURL: w.CallbackURL}
	issued.Waitpoint.Token, issued.Waitpoint.CallbackURL = Token{}, ""
	return issued
}

// Concealed returns the waitpoint with its token and address hidden.
func (w IssuedWaitpoint) Concealed() Waitpoint {
	concealed := w.Waitpoint
	concealed.CallbackURL = w.CallbackURL
	if w.Token != "" {
		concealed.Token = TokenOf(w.Token)
	}
	return concealed
}

// CloseResult is the result of closing a waitpoint.
type CloseResult struct {
	Outcome string `json:"outcome" enum:"closed,already_closed" doc:"Whether this call closed it."`
}

// LinkChoice is a button of a link.
type LinkChoice struct {
	ID         string `json:"id" required:"true" maxLength:"64" doc:"Id of the decision."`
	Label      string `json:"label" required:"true" maxLength:"128" doc:"Label of its button."`
	SignalName string `json:"signal_name" required:"true" maxLength:"128" doc:"Name of the signal that it sends."`
}

// ApprovalLink lets one named person decide once. URL is set when the link is created and by Waitpoints.LinkURL; printing,
// logging and the JSON of this type omit it.
type ApprovalLink struct {
	ID              string       `json:"link_id" doc:"Id of the link."`
	WaitpointID     string       `json:"waitpoint_id" doc:"Waitpoint that receives the decision."`
	ExecutionID     ID           `json:"execution_id,omitempty" doc:"Execution of the waitpoint."`
	Approver        string       `json:"approver" doc:"The person who is asked."`
	Title           string       `json:"title,omitempty" doc:"The question in one line."`
	Message         string       `json:"message,omitempty" doc:"The question in full."`
	Choices         []LinkChoice `json:"decisions" nil:"[]" doc:"Possible answers."`
	CommentRequired bool         `json:"comment_required,omitempty" doc:"Whether a comment is required."`
	State           string       `json:"state,omitempty" doc:"open, decided, revoked, expired or closed."` // "" in the answers that show the URL
	CreatedAt       time.Time    `json:"created_at,omitzero" doc:"When it was created."`
	ExpiresAt       time.Time    `json:"expires_at,omitzero" doc:"When it can no longer be decided."`
	Decision        string       `json:"decision,omitempty" doc:"Id of the decision."`
	Comment         string       `json:"comment,omitempty" doc:"Comment of the approver."`
	DecidedAt       time.Time    `json:"decided_at,omitzero" doc:"When it was decided."`

	URL string `json:"-" apart:"true"`
}

// IssuedLink is a link with its address, for callers that may see it.
type IssuedLink struct {
	ApprovalLink
	URL string `json:"url,omitempty" doc:"The address to send to the approver. It contains a token."`
}

// Issued returns the link with its address shown.
func (l ApprovalLink) Issued() IssuedLink {
	issued := IssuedLink{ApprovalLink: l, URL: l.URL}
	issued.ApprovalLink.URL = ""
	return issued
}

// Concealed returns the link with its address hidden.
func (l IssuedLink) Concealed() ApprovalLink {
	concealed := l.ApprovalLink
	concealed.URL = l.URL
	return concealed
}

// Suspended is a suspended execution.
type Suspended struct {
	ExecutionID  ID                 `json:"execution_id" doc:"Id of the execution."`
	SuspensionID string             `json:"suspension_id" doc:"Its open suspension."`
	SuspendedAt  time.Time          `json:"suspended_at,omitzero" doc:"When the suspension began."`
	TimeoutAt    time.Time          `json:"timeout_at,omitzero" doc:"When it times out."`
	ExpiresAt    time.Time          `json:"expires_at,omitzero" doc:"The timeout, or the deadline of the execution if that is earlier."`
	ReasonCode   string             `json:"reason_code" doc:"What it waits for."`
	Waitpoints   []Waitpoint        `json:"waitpoints" nil:"[]" doc:"The open waitpoints."`
	Progress     []NodeProgress     `json:"progress" nil:"[]" doc:"Progress of each part of the condition."`
	Needed       int                `json:"needed,omitempty" doc:"How many equal decisions of different people are needed; absent if the condition does not count."` // 0: no count
	Links        []ApprovalLink     `json:"links" nil:"[]" doc:"Its links, without addresses."`
	Decisions    []PersonalDecision `json:"decisions" nil:"[]" doc:"Decisions of verified persons."`
	Execution    *Execution         `json:"execution,omitempty" doc:"Summary of the execution."`
}

// NodeProgress is the progress of one part of a condition.
type NodeProgress struct {
	Node     Condition `json:"node" doc:"The part: a single or a count."`
	Progress int       `json:"progress" doc:"How many there are."`
	Needed   int       `json:"needed" doc:"How many are needed."`
}

// PersonalDecision is a decision of a verified person.
type PersonalDecision struct {
	By       string    `json:"by" doc:"Who."`
	Decision string    `json:"decision" doc:"Name of the signal."`
	Comment  string    `json:"comment,omitempty" doc:"Comment."`
	At       time.Time `json:"at,omitzero" doc:"When."`
}

// MarshalJSON writes the waitpoint as lists of the HTTP API show it, without token and address.
func (w Waitpoint) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&w) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, including token and address if present.
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

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, including the address if present.
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

// MarshalJSON writes the decision as the HTTP API shows it.
func (d PersonalDecision) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&d) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (d *PersonalDecision) UnmarshalJSON(text []byte) error { return readAnswer(text, d) }
