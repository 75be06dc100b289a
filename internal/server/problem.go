package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// codes is the table of codes by name.
var codes = sync.OnceValue(func() map[string]api.CodeInfo {
	byName := map[string]api.CodeInfo{}
	for _, info := range api.Codes() {
		byName[info.Code] = info
	}
	return byName
})

// refusal is an error of the server's own, with what makes it useful.
type refusal struct{ e api.Error }

// refuse makes a refusal of a code.
func refuse(code, detail string) *refusal {
	info := codes()[code]
	return &refusal{api.Error{Code: code, Class: info.Class, Retryable: info.Retryable, Message: detail}}
}

// Error returns code and message.
func (r *refusal) Error() string { return r.e.Error() }

// Unwrap lets errors.As find the Error.
func (r *refusal) Unwrap() error { return &r.e }

// at names the field of the refusal.
func (r *refusal) at(field string) *refusal { r.e.Field = field; return r }

// hint says what to do.
func (r *refusal) hint(text string) *refusal { r.e.Hint = text; return r }

// after says when to try again.
func (r *refusal) after(d time.Duration) *refusal { r.e.RetryAfter = d; return r }

// current adds a fact that explains the refusal.
func (r *refusal) current(name string, value any) *refusal {
	if r.e.Current == nil {
		r.e.Current = map[string]any{}
	}
	r.e.Current[name] = value
	return r
}

// leftBy reports whether the call failed because its caller has gone, or has at least stopped sending: one that has closed its
// half of the connection may still read, and what it reads must not look like an answer.
func (x *exchange) leftBy(err error) bool {
	return errors.Is(err, context.Canceled) && x.r.Context().Err() != nil
}

// writeProblem answers with the problem of an error (U11). The cause of a failure goes to the log and nowhere else.
func (s *Server) writeProblem(x *exchange, err error) {
	if x.leftBy(err) {
		x.w.status, x.cut = statusClientGone, true
		return
	}
	p := s.problemOf(x, err)
	x.code = p.Code
	s.recordRefusal(x.r.Context(), x, p.Code)
	header := x.w.Header()
	if x.r.ContentLength != 0 && headMemoryOf(x.r) > 0 {
		// net/http would read the rest of the body before it closes the connection, and keep the head in memory meanwhile.
		_ = http.NewResponseController(x.w).SetReadDeadline(past)
		header.Set("Connection", "close")
	}
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = max(p.RetryAfter, time.Second)
	}
	if p.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="flowfabric"`)
	}
	text, err := wire.Marshal(p)
	if err != nil {
		s.notes.Error("a problem cannot be written", "request_id", x.id, "code", p.Code, "error", err)
		x.w.WriteHeader(p.Status)
		return
	}
	header.Set("Content-Type", problemContent)
	header.Del("ETag")
	if x.route != nil && x.route.Secret {
		header.Set("Cache-Control", "no-store") // W31
	}
	s.send(x, p.Status, text)
}

// statusClientGone is recorded in metrics for answers that no client waited for.
const statusClientGone = 499

// unplaced is the problem of an error, whose fields are as the rules call them.
func (s *Server) unplaced(x *exchange, err error) *wire.Problem {
	e := s.errorOf(x, err)
	p := e.Problem()
	if p.Status == 0 {
		s.notes.Error("an error has no problem", "request_id", x.id, "code", e.Code, "error", err)
		p = &wire.Problem{Type: "/problems/internal", Title: "Internal", Code: "internal", Class: "internal", Status: http.StatusInternalServerError, Detail: "internal error"}
	}
	p.RequestID, p.Type = x.id, x.mount+p.Type
	return p
}

// problemOf returns the problem of an error for this request. Its fields are places in the request.
func (s *Server) problemOf(x *exchange, err error) *wire.Problem {
	p := s.unplaced(x, err)
	place := x.place
	if p.Index != nil && x.route != nil { // of an atomic batch (U22)
		place = func(field string) string { return underItem(*p.Index, field) }
	}
	return placed(p, place)
}

// underItem is the place of a field of an item in a batch.
func underItem(index int, field string) string {
	if isPlace(field) {
		return field
	}
	return "/items/" + strconv.Itoa(index) + wire.Pointer(field)
}

// itemProblem returns why an item was refused; nil if it was not. Its fields are places in the item.
func (s *Server) itemProblem(x *exchange, err error) *wire.Problem {
	if err == nil {
		return nil
	}
	return placed(s.unplaced(x, err), func(field string) string {
		if isPlace(field) {
			return field
		}
		return wire.Pointer(field)
	})
}

// placed gives the fields of a problem their places.
func placed(p *wire.Problem, place func(field string) string) *wire.Problem {
	p.Field = place(p.Field)
	for i := range p.Errors {
		p.Errors[i].Field = place(p.Errors[i].Field)
	}
	return p
}

// errorOf turns whatever went wrong into an Error of the table.
func (s *Server) errorOf(x *exchange, err error) api.Error {
	var (
		own      *refusal
		faults   wire.Errors
		fault    *wire.Error
		public   *api.Error
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &own):
		return own.e
	case errors.As(err, &faults):
		return faultsOf(faults)
	case errors.As(err, &fault):
		return faultsOf(wire.Errors{fault})
	case errors.As(err, &tooLarge):
		s.metrics.rejected("size")
		return tooLargeBody(tooLarge.Limit).e
	case errors.As(err, &public):
		if public.Class == "internal" {
			s.notes.Error("internal error", "request_id", x.id, "trace_id", x.trace.TraceID(), "route", x.routeName(), "code", public.Code, "error", err)
		}
		if public.Code == "overloaded" {
			s.metrics.rejected("overload")
		}
		return *public
	case errors.Is(err, context.DeadlineExceeded):
		return refuse("timeout", "the outcome is not known").hint("repeat it with the same `Idempotency-Key`").e
	default:
		s.notes.Error("internal error", "request_id", x.id, "trace_id", x.trace.TraceID(), "route", x.routeName(), "code", "internal", "error", err)
		return refuse("internal", "internal error").e
	}
}

func tooLargeBody(limit int64) *refusal {
	return refuse("payload_too_large", "the body of the request is too large").current("limit", limit).
		hint(fmt.Sprintf("send at most %d bytes: keep large data elsewhere and send a reference, or send several requests", limit))
}

func tooLargeHead() *refusal {
	return refuse("payload_too_large", "the head of the request is too large").current("limit", headLimit).
		hint(fmt.Sprintf("send at most %d bytes of path, query and headers", headLimit))
}

// faultsOf is the error of a request that cannot be read.
func faultsOf(faults wire.Errors) api.Error {
	first := faults[0]
	r := refuse(first.Code, first.Detail).at(first.Field).hint(first.Hint)
	if first.Limit > 0 {
		r = r.current("limit", first.Limit)
	}
	e := r.e
	if len(faults) > 1 {
		for _, f := range faults {
			e.Errors = append(e.Errors, api.FieldError{Field: f.Field, Code: f.Code, Message: f.Detail, Hint: f.Hint})
		}
	}
	return e
}

// place returns where in the request a field is (U11). The engine names arguments without their place.
func (x *exchange) place(field string) string {
	if x.route == nil || isPlace(field) {
		return field
	}
	return wire.Place(x.route.Operation, field, x.gives)
}

// asSent names the header where its key stood in for a name that the body does not give (U13): a refusal of that name is one of the header (U11).
func asSent(err error, field, given string) error {
	var refusal *api.Error
	if given != "" || !errors.As(err, &refusal) || refusal.Field != field {
		return err
	}
	sent := *refusal
	sent.Field = "header." + wire.HeaderIdempotencyKey
	return &sent
}

// isPlace reports whether a field already includes its place.
func isPlace(field string) bool {
	head, _, parameter := strings.Cut(field, ".")
	return field == "" || field == "query" || strings.HasPrefix(field, "/") || parameter && slices.Contains([]string{"query", "header", "path"}, head)
}

// gives reports whether the request has a parameter; a name that ends with a dot matches every parameter with that prefix.
func (x *exchange) gives(in, name string) bool {
	if in == "header" {
		return x.r.Header.Get(name) != ""
	}
	for given := range x.r.URL.Query() {
		if given == name || strings.HasSuffix(name, ".") && strings.HasPrefix(given, name) {
			return true
		}
	}
	return false
}
