package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// serveTokens are the routes on which a token is the credential (section 2.4).
func (s *Server) serveTokens() {
	s.add(wire.SendSignal.Operation, s.sendSignal)
	s.add(wire.SendExecutionSignal.Operation, s.sendExecutionSignal)
	s.add(wire.DeliverCallback.Operation, s.deliverCallback)
	s.add(wire.OpenLink.Operation, s.openLink)
	s.add(wire.DecideLink.Operation, s.decideLink)
}

// byToken reports whether a token is the credential of the route.
func (r *route) byToken() bool { return r.Roles&wire.Token != 0 }

// authenticateToken lets calls of a route with a token pass without a caller: the engine verifies the token, and an API key sent
// with it is ignored. The page that sends the call does not matter either (U127), nor whether it comes by the public URL of a
// server that is open to this machine.
func (s *Server) authenticateToken(x *exchange) (caller, error) {
	if s.open.now() && !s.atPublicHost(x.r) {
		return caller{anonymous: true}, s.checkHost(x.r)
	}
	return caller{anonymous: true}, nil
}

// tryToken performs what a token permits. From an address with too many wrong tokens valid ones are still accepted, and wrong
// ones get no details any more (U129). They are not counted together with wrong API keys: a sender with an old address must not
// lock out others in its network.
func (s *Server) tryToken(ctx context.Context, x *exchange, do func() error) error {
	blocked, err := s.tokens.try(ctx, x.address, do)
	if code := api.CodeOf(err); code != "invalid_token" && code != "link_not_found" {
		return err
	}
	if blocked {
		s.metrics.rejected("rate")
		return refuse("rate_limited", "too many requests with wrong tokens came from this address").after(failureSpan)
	}
	s.tokens.add(x.address)
	return err
}

// uuidLength is the length of a bare UUID.
const uuidLength = 36

// isUUID reports whether a text is a bare UUID.
func isUUID(text string) bool {
	_, err := api.ParseID(text)
	return err == nil && len(text) == uuidLength
}

// readWhat reads as much of a request as can be decoded, and returns the error of the rest.
func readWhat[Req, Ans any](x *exchange, _ wire.Call[Req, Ans]) (*Req, error) {
	r := new(Req)
	came, fault := x.decode(r)
	if !came { // the body is too large, or did not come whole
		_ = wire.DecodeHead(incoming(x), r) // of two errors the one of the body is reported
	}
	return r, fault
}

// incoming is a request without its body.
func incoming(x *exchange) wire.Incoming {
	return wire.Incoming{PathValue: x.r.PathValue, Query: x.r.URL.RawQuery, Header: x.r.Header}
}

// wholeBody reads a body that is passed on uninterpreted.
func wholeBody(x *exchange) ([]byte, error) {
	controller := http.NewResponseController(x.w)
	x.r.Body = patientReader{x.r.Body, controller, x.w.stall}
	body, err := readBody(x, x.route.body)
	if err == nil { // else the deadline stays: the rest of the body is not waited for
		_ = controller.SetReadDeadline(time.Time{})
	}
	return body, err
}

// approvePrefix is where approval links point to.
const approvePrefix = "/approve/"

func isApproval(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, approvePrefix) }

// guardApproval adds what every answer about a link has, whatever comes of it (W70).
func guardApproval(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex")
	header.Set("Content-Security-Policy", approvePolicy)
	header.Add("Vary", "Accept")
}

// The headers of signals from pages of any origin.
const (
	tokenCORSRequest = "Content-Type, FlowFabric-Token, Idempotency-Key, Traceparent, Tracestate, Baggage, Webhook-Id, X-Request-Id" //nolint:gosec // G101: these are names of headers
	tokenCORSAnswer  = "Idempotency-Replayed, Retry-After, X-Request-Id"                                                             //nolint:gosec // G101: these are names of headers
)

// takesAnyOrigin reports whether the request is, or asks for, a signal or a callback: pages of any origin may send them (U127).
func takesAnyOrigin(r *http.Request) bool {
	method, path := r.Method, strings.TrimSuffix(r.URL.Path, "/")
	if method == http.MethodOptions {
		method = r.Header.Get("Access-Control-Request-Method")
	}
	signals := strings.HasSuffix(path, "/signals") && (strings.HasPrefix(path, "/v1/waitpoints/") || strings.HasPrefix(path, "/v1/executions/"))
	return method == http.MethodPost && (signals || strings.HasPrefix(path, "/v1/callbacks/"))
}

// allowAnyOrigin answers pages of any origin, without credentials, and reports whether the request only asked for that.
func (x *exchange) allowAnyOrigin() (preflight bool) {
	header := x.w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", tokenCORSAnswer)
	if x.r.Method != http.MethodOptions {
		return false
	}
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", tokenCORSRequest)
	header.Set("Access-Control-Max-Age", "600")
	return true
}
