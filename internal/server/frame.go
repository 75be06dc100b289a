package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// exchange is one request on its way to its answer.
type exchange struct {
	w          *answerWriter
	r          *http.Request
	id         string // X-Request-Id
	address    string // of the caller
	mount      string // path below which the server is mounted in another program; "" at the root
	route      *route // nil until it is found
	caller     caller
	by         service.Caller   // for whom operations are performed, see acting
	conditions []wire.Condition // one of which must hold
	under      wire.Condition   // the one that is satisfied
	group      string           // call, poll or sse
	trace      api.TraceContext // that the request came with, or that of its span
	span       api.Span         // nil: none
	code       string           // of the problem that was the answer
	cut        bool             // there is no answer: the connection is cut, so that the client does not take it for a success
	repeated   atomic.Bool      // the request was answered before (U13)
	memory     *bodyMemory
	held       int64 // bytes of it
}

type exchangeKey struct{}

// exchangeOf finds the exchange of a request.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// serveHTTP is the frame around every request: what any answer has, however it comes about.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	watch := clock.Stopwatch()
	x := &exchange{w: &answerWriter{ResponseWriter: w, stall: s.stallLimit}, r: r, id: requestID(r), address: s.addressOf(r), mount: mountOf(r), group: groupCall, trace: traceOf(r.Header), memory: s.memory}
	header := x.w.Header()
	header.Set(wire.HeaderRequestID, x.id)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
	if s.cfg.TLS && namesHost(r) {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
	header.Set("Date", s.on.StoreTime().UTC().Format(http.TimeFormat)) // the store's, not this host's (U6)
	if isApproval(r) {
		guardApproval(header)
	}
	s.metrics.inFlight.With(groupCall).Inc()
	defer s.metrics.inFlight.With(groupCall).Dec()
	defer x.w.boundRest(r)
	defer func() { s.finish(x, watch(), recover()) }()
	defer func() { x.drop(x.held) }()

	x.r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	switch preflight := s.cors(x); {
	case headSize(r) > headLimit:
		s.metrics.rejected("size")
		s.writeProblem(x, tooLargeHead())
	case doubled(r) != "":
		s.writeProblem(x, refuse("invalid_argument", "the header is given more than once").at("header."+doubled(r)).hint("send it once"))
	case preflight:
		x.w.WriteHeader(http.StatusNoContent)
	case !tidy(x.r):
		s.writeProblem(x, refuse("route_not_found", "there is no such route").hint(s.nearest(r.URL.Path)))
	default:
		s.mux.ServeHTTP(x.w, x.r)
	}
}

// checkInstallation refuses a request that is meant for another installation.
func (s *Server) checkInstallation(r *http.Request) error {
	meant := r.Header.Get(wire.HeaderInstallation)
	if meant == "" || meant == s.on.Installation() {
		return nil
	}
	return refuse("wrong_database", "the request is meant for another installation").at("header." + wire.HeaderInstallation).
		hint("name only servers that use one store")
}

// serve checks in the order of U24 what can be checked before the body is read, and lets the handler answer.
func (s *Server) serve(x *exchange) {
	ctx := s.traced(x)
	if err := s.checkInstallation(x.r); err != nil {
		s.writeProblem(x, err)
		return
	}
	release, err := s.admit(ctx, x)
	if err != nil {
		s.writeProblem(x, err)
		return
	}
	defer release()
	if err := x.holdHead(); err != nil {
		s.metrics.rejected("overload")
		s.writeProblem(x, err)
		return
	}
	if !x.route.byToken() { // there the token comes before everything else (W33)
		if x.caller.RequestKey, err = requestKey(x.r); err != nil {
			s.writeProblem(x, err)
			return
		}
		if err := x.checkConditional(); err != nil {
			s.writeProblem(x, err)
			return
		}
	}
	x.by = x.acting()
	a, err := x.route.serve(ctx, x)
	if err != nil {
		s.writeProblem(x, err)
		return
	}
	s.write(ctx, x, a)
}

// acting returns for whom operations are performed: the caller, for this request. What concerns no namespace is not narrowed to
// one.
func (x *exchange) acting() service.Caller {
	by := x.caller.Caller
	by.RequestID, by.Address, by.Repeated, by.Lanes = x.id, x.address, &x.repeated, x.lanes()
	by.Bounded = !x.caller.everywhere
	if slices.Contains(x.conditions, wire.AllNamespaces) || x.caller.open && x.route.ofKeys() {
		by.Namespaces = nil // authorize refuses all other callers; and the first admin key has no creator
	}
	return by
}

// admit checks credential, role, namespace and rate.
func (s *Server) admit(ctx context.Context, x *exchange) (release func(), err error) {
	if x.caller, err = s.authenticate(ctx, x); err != nil {
		return nil, err
	}
	if x.conditions, err = s.authorize(x); err != nil {
		return nil, err
	}
	if err = x.chooseNamespace(); err != nil {
		return nil, err
	}
	if release, err = s.keys.enter(ctx, x.caller.key); err != nil {
		s.metrics.rejected("rate")
		return nil, err
	}
	if err = s.keys.request(ctx, x); err != nil {
		release()
		s.metrics.rejected("rate")
		return nil, err
	}
	return release, nil
}

// slow is the duration above which a call is logged.
const slow = time.Second

// finish counts and logs, and turns a panic into an answer that says nothing of it.
func (s *Server) finish(x *exchange, took time.Duration, panicked any) {
	if panicked != nil {
		if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(panicked)
		}
		s.notes.Error("panic", "request_id", x.id, "trace_id", x.trace.TraceID(), "panic", panicked, "stack", string(debug.Stack()))
		if x.w.status != 0 {
			panic(http.ErrAbortHandler) // half an answer is on its way: the connection must not look whole
		}
		s.writeProblem(x, refuse("internal", "internal error"))
	}
	if x.w.status == 0 {
		s.notes.Error("a route gave no answer", "request_id", x.id, "route", x.routeName())
		s.writeProblem(x, refuse("internal", "internal error"))
	}
	x.endTrace()
	s.metrics.observe(x, took)
	s.log.Debug("request", "request_id", x.id, "trace_id", x.trace.TraceID(), "method", x.r.Method, "route", x.routeName(), "status", x.w.status,
		"code", x.code, "namespace", x.caller.Namespace, "duration_ms", took.Milliseconds())
	if took > slow && x.group == groupCall {
		s.notes.Info("slow request", "request_id", x.id, "trace_id", x.trace.TraceID(), "route", x.routeName(), "duration_ms", took.Milliseconds())
	}
	if x.cut {
		panic(http.ErrAbortHandler) // net/http answers 200 for a handler that returns without a word
	}
}

// routeName is the route as metrics and logs call it: never with an id in it.
func (x *exchange) routeName() string {
	if x.route == nil {
		return "_other"
	}
	return x.route.Path
}

// powers are the headers that identify the caller, the origin and the credentials. If one occurs twice with different values, a
// proxy and this server might each use another of them.
var powers = []string{
	"Authorization", wire.HeaderNamespace, wire.HeaderToken, "FlowFabric-Lease", wire.HeaderIdempotencyKey, "If-Match", "Origin", "Sec-Fetch-Site",
}

// doubled is a header of power that a request has more than once; "": there is none.
func doubled(r *http.Request) string {
	for _, name := range powers {
		if len(r.Header.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// namesHost reports whether Host is a name that browsers may remember something about: not an address, and not this machine's own.
func namesHost(r *http.Request) bool {
	name := (&url.URL{Host: r.Host}).Hostname()
	_, err := netip.ParseAddr(name)
	return err != nil && name != "localhost"
}

// mountOf is what http.StripPrefix took from the path of a request.
func mountOf(r *http.Request) string {
	asked, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	mount, found := strings.CutSuffix(asked.EscapedPath(), r.URL.EscapedPath())
	if !found {
		return ""
	}
	return mount
}

// headSize is the size of a head as it was sent.
func headSize(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("  \r\n\r\n")
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}

// requestID takes the id of a request over, or makes one (U12).
func requestID(r *http.Request) string {
	if id := r.Header.Get(wire.HeaderRequestID); printable(id, ' ') {
		return id
	}
	return rand.Text()
}

// requestKey reads Idempotency-Key (U13); "" when there is none, and for methods that change nothing.
func requestKey(r *http.Request) (string, error) {
	keys := r.Header.Values(wire.HeaderIdempotencyKey)
	switch {
	case len(keys) == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead:
		return "", nil
	case len(keys) > 1 || !printable(keys[0], '!'):
		return "", refuse("invalid_argument", "the key has 1 to 128 characters without blanks").at("header." + wire.HeaderIdempotencyKey)
	}
	return keys[0], nil
}

// isRepeat reports whether the caller says that it has sent the request before.
func (x *exchange) isRepeat() bool { return x.r.Header.Get(wire.HeaderRepeat) == "true" }

// printable reports whether a text has 1 to 128 characters of ASCII from the given one on.
func printable(text string, from byte) bool {
	for i := range len(text) {
		if text[i] < from || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= 128
}
