package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// publicCalls are the calls of those who have a token and need no other credential (section 2.4).
var publicCalls = []*Operation{row(SendSignal), row(SendExecutionSignal), row(DeliverCallback), row(OpenLink), row(DecideLink)}

// HeaderToken carries the token of a waitpoint, for those who would not have it in a body (U81).
const HeaderToken = "FlowFabric-Token"

// The calls of those who have a token.
var (
	SendSignal = Call[SendSignalRequest, api.SignalReceipt]{&Operation{
		ID: "send_signal", Rule: "U81", Method: http.MethodPost, Path: "/v1/waitpoints/{waitpoint}/signals", Roles: Token,
		Go: "Client.Signal", Command: "signal", Summary: "Tell waiting work what happened outside", Status: []int{http.StatusOK},
	}}
	SendExecutionSignal = Call[SendExecutionSignalRequest, api.SignalReceipt]{&Operation{
		ID: "send_execution_signal", Rule: "U81", Method: http.MethodPost, Path: "/v1/executions/{id}/signals", Roles: Token,
		Go: "Client.Signal", Command: "signal", Summary: "Tell waiting work what happened, if the waitpoint is of this execution",
		Status: []int{http.StatusOK},
	}}
	DeliverCallback = Call[DeliverCallbackRequest, api.SignalReceipt]{&Operation{
		ID: "deliver_callback", Rule: "U82", Method: http.MethodPost, Path: "/v1/callbacks/{waitpoint}/{token}", Roles: Token,
		NoGo: forSenders, NoCommand: forSenders, Summary: "Take a callback in: its body is the payload of a signal", Status: []int{http.StatusOK},
	}}
	OpenLink = Call[OpenLinkRequest, LinkPage]{&Operation{
		ID: "open_link", Rule: "U86", Method: http.MethodGet, Path: "/approve/{link}/{token}", Roles: Token,
		Go: "Waitpoints.OpenLink", NoCommand: forBrowsers, Summary: "Show what an approval link asks", Status: []int{http.StatusOK},
	}}
	DecideLink = Call[DecideLinkRequest, LinkOutcome]{&Operation{
		ID: "decide_link", Rule: "U86", Method: http.MethodPost, Path: "/approve/{link}/{token}", Roles: Token,
		Go: "Waitpoints.Decide", NoCommand: forBrowsers, Audit: "decide", Summary: "Decide what an approval link asks", Status: []int{http.StatusOK},
	}}
)

// Why there is neither Go nor command for what people and foreign programs are given as an address.
const (
	forSenders  = "it is for senders that can only be given an address"
	forBrowsers = "it is for whoever was sent the link; an operator uses approve and reject"
)

// SendSignalRequest delivers a signal to a waitpoint.
type SendSignalRequest struct {
	Waitpoint string `path:"waitpoint" argument:"waitpoint_id" doc:"Id of the waitpoint."`
	Token     string `header:"FlowFabric-Token" argument:"token" doc:"Token of the waitpoint; it may stand in the body instead."`
	Body      SignalFields
}

// SendExecutionSignalRequest delivers a signal to a waitpoint of an execution.
type SendExecutionSignalRequest struct {
	ID    string `path:"id" argument:"execution_id" doc:"Id of the execution."`
	Token string `header:"FlowFabric-Token" argument:"token" doc:"Token of the waitpoint; it may stand in the body instead."`
	Body  struct {
		WaitpointID string `json:"waitpoint_id" required:"true" doc:"Id of the waitpoint."`
		SignalFields
	}
}

// SignalFields are a signal as it is sent.
type SignalFields struct {
	Token string `json:"token,omitempty" doc:"Token of the waitpoint, unless the header has it."`
	Name  string `json:"name" required:"true" maxLength:"128" doc:"What happened."`
	PayloadFields
	Category       *string `json:"category,omitempty" maxLength:"64" doc:"Kind of signal; external if absent."`
	SourceType     string  `json:"source_type,omitempty" maxLength:"64" doc:"What sends it; external if absent."`
	SourceIdentity string  `json:"source_identity,omitempty" maxLength:"256" doc:"Who sends it, by its own word."`
	CorrelationID  string  `json:"correlation_id,omitempty" maxLength:"128" doc:"Ties it to something outside."`
	IdempotencyKey string  `json:"idempotency_key,omitempty" doc:"The same signal again is a duplicate."`
	SignalID       string  `json:"signal_id,omitempty" doc:"UUID of the signal, which also tells duplicates; minted if absent."`
	SentAt         Time    `json:"sent_at,omitzero" doc:"When it happened, by the sender's clock."`
}

// DeliverCallbackRequest delivers a callback.
type DeliverCallbackRequest struct {
	Waitpoint string  `path:"waitpoint" argument:"waitpoint_id" doc:"Id of the waitpoint."`
	Token     string  `path:"token" doc:"Token of the waitpoint."`
	Name      *string `query:"name" doc:"Name of the signal; callback if absent."`
	WebhookID string  `header:"Webhook-Id" argument:"idempotency_key" doc:"Tells duplicates, as Idempotency-Key does, which goes first."`
	Raw       Raw     `accept:"*/*" doc:"Any body: it is the payload, and its content type is kept."`
}

// OpenLinkRequest asks what a link shows.
type OpenLinkRequest struct {
	Link  string `path:"link" argument:"link_id" doc:"Id of the link."`
	Token string `path:"token" doc:"Token of the link."`
}

// LinkPage is what an approval link shows to whoever holds it (U87).
type LinkPage struct {
	api.ApprovalLink
	Kind       string            `json:"kind" doc:"Kind of the work."`
	Tags       map[string]string `json:"tags,omitempty" doc:"Tags of the work."`
	Asker      string            `json:"asker,omitempty" doc:"Who submitted the work."`
	Needed     int               `json:"needed,omitempty" doc:"How many must say the same; absent when it does not count."`
	Counted    string            `json:"counted,omitempty" doc:"The name of the signal that they must send; absent when any counts."`
	Progress   *int              `json:"progress,omitempty" doc:"So many have; absent when it does not count."`
	TimeoutAt  Time              `json:"timeout_at,omitzero" doc:"When the work stops waiting."`
	ServerTime Time              `json:"server_time,omitzero" doc:"The store's clock."`
}

// MarshalJSON writes all fields; that of the link would write its own alone.
func (p LinkPage) MarshalJSON() ([]byte, error) { return Marshal(&p) }

// UnmarshalJSON reads all fields.
func (p *LinkPage) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, p) }

// DecideLinkRequest decides. A browser sends the same fields as a form.
type DecideLinkRequest struct {
	Link  string `path:"link" argument:"link_id" doc:"Id of the link."`
	Token string `path:"token" doc:"Token of the link."`
	Body  struct {
		Decision string `json:"decision" doc:"Id of a decision that the link offers."`
		Comment  string `json:"comment,omitempty" maxLength:"4096" doc:"Why; some links require it."`
	}
	Raw Raw `accept:"application/x-www-form-urlencoded" doc:"The fields decision and comment, as a form."`
}

// LinkOutcome is the answer to a decision.
type LinkOutcome struct {
	Outcome   string `json:"outcome" enum:"decided,already_decided" doc:"Whether this call decided."`
	Decision  string `json:"decision" doc:"Id of what was decided."`
	DecidedAt Time   `json:"decided_at,omitzero" doc:"When."`
	Effect    string `json:"effect,omitempty" doc:"What the signal did; absent when it was decided before."`
}

// FactLink is the fact of a problem that has the LinkPage of a link which cannot be decided any more.
const FactLink = "link"
