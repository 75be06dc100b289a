package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// publicCalls are the operations of callers with a token and no other credential (section 2.4).
var publicCalls = []*Operation{row(SendSignal), row(SendExecutionSignal), row(DeliverCallback), row(OpenLink), row(DecideLink)}

// HeaderToken contains the token of a waitpoint, if it is not in the body (U81).
const HeaderToken = "FlowFabric-Token"

// Operations for holders of a token.
var (
	SendSignal = Call[SendSignalRequest, api.SignalReceipt]{&Operation{
		ID: "send_signal", Rule: "U81", Method: http.MethodPost, Path: "/v1/waitpoints/{waitpoint}/signals", Roles: Token,
		Go: "Client.Signal", Command: "signal", Summary: "Send a signal to a waitpoint", Status: []int{http.StatusOK},
	}}
	SendExecutionSignal = Call[SendExecutionSignalRequest, api.SignalReceipt]{&Operation{
		ID: "send_execution_signal", Rule: "U81", Method: http.MethodPost, Path: "/v1/executions/{id}/signals", Roles: Token,
		Go: "Client.Signal", Command: "signal", Summary: "Send a signal, if the waitpoint belongs to this execution",
		Status: []int{http.StatusOK},
	}}
	DeliverCallback = Call[DeliverCallbackRequest, api.SignalReceipt]{&Operation{
		ID: "deliver_callback", Rule: "U82", Method: http.MethodPost, Path: "/v1/callbacks/{waitpoint}/{token}", Roles: Token,
		NoGo: forSenders, NoCommand: forSenders, Summary: "Receive a callback: its body is the payload of a signal", Status: []int{http.StatusOK},
	}}
	OpenLink = Call[OpenLinkRequest, api.LinkPage]{&Operation{
		ID: "open_link", Rule: "U86", Method: http.MethodGet, Path: "/approve/{link}/{token}", Roles: Token,
		Go: "Waitpoints.OpenLink", NoCommand: forBrowsers, Summary: "Show the question of an approval link", Status: []int{http.StatusOK},
	}}
	DecideLink = Call[DecideLinkRequest, api.LinkOutcome]{&Operation{
		ID: "decide_link", Rule: "U86", Method: http.MethodPost, Path: "/approve/{link}/{token}", Roles: Token,
		Go: "Waitpoints.Decide", NoCommand: forBrowsers, Audit: "decide", Summary: "Decide the question of an approval link", Status: []int{http.StatusOK},
	}}
)

// Why there is neither a Go call nor a command for addresses given to people and other programs.
const (
	forSenders  = "it is for senders that accept only a URL"
	forBrowsers = "it is for the recipient of the link; operators use approve and reject"
)

// SendSignalRequest sends a signal to a waitpoint.
type SendSignalRequest struct {
	Waitpoint string `path:"waitpoint" argument:"waitpoint_id" doc:"Id of the waitpoint."`
	Token     string `header:"FlowFabric-Token" argument:"token" doc:"Token of the waitpoint; it can be in the body instead."`
	Body      SignalFields
}

// SendExecutionSignalRequest sends a signal to a waitpoint of an execution.
type SendExecutionSignalRequest struct {
	ID    string `path:"id" argument:"execution_id" doc:"Id of the execution."`
	Token string `header:"FlowFabric-Token" argument:"token" doc:"Token of the waitpoint; it can be in the body instead."`
	Body  struct {
		WaitpointID string `json:"waitpoint_id" required:"true" doc:"Id of the waitpoint."`
		SignalFields
	}
}

// SignalFields are a signal as it is sent.
type SignalFields struct {
	Token string `json:"token,omitempty" doc:"Token of the waitpoint, unless it is in the header."`
	api.Signal
}

// DeliverCallbackRequest delivers a callback.
type DeliverCallbackRequest struct {
	Waitpoint string  `path:"waitpoint" argument:"waitpoint_id" doc:"Id of the waitpoint."`
	Token     string  `path:"token" doc:"Token of the waitpoint."`
	Name      *string `query:"name" doc:"Name of the signal; callback if absent."`
	WebhookID string  `header:"Webhook-Id" argument:"idempotency_key" doc:"Idempotency key; a header Idempotency-Key takes precedence."`
	Raw       Raw     `accept:"*/*" doc:"Any body: it is the payload, and its content type is kept."`
}

// OpenLinkRequest asks what a link shows.
type OpenLinkRequest struct {
	Link  string `path:"link" argument:"link_id" doc:"Id of the link."`
	Token string `path:"token" doc:"Token of the link."`
}

// DecideLinkRequest decides. A browser sends the same fields as a form.
type DecideLinkRequest struct {
	Link  string `path:"link" argument:"link_id" doc:"Id of the link."`
	Token string `path:"token" doc:"Token of the link."`
	Body  struct{ api.LinkDecision }
	Raw   Raw `accept:"application/x-www-form-urlencoded" doc:"The fields decision and comment, as a form."`
}

// FactLink is the fact of a problem with the LinkPage of a link that can no longer be decided.
const FactLink = "link"
