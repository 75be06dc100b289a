package api

import (
	"errors"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Problem is an Error as the HTTP API writes it: every response with a status of 400 and above (RFC 9457).
type Problem struct {
	Type       string         `json:"type" doc:"/problems/<code>, a page of this server."`
	Title      string         `json:"title" doc:"The code as words."`
	Status     int            `json:"status" doc:"The HTTP status."`
	Detail     string         `json:"detail" doc:"One sentence."`
	Code       string         `json:"code" doc:"Stable; match on it."`
	Class      string         `json:"class" doc:"Group of codes."`
	Field      string         `json:"field,omitempty" doc:"The invalid field: JSON pointer, query.name or header.Name."`
	Hint       string         `json:"hint,omitempty" doc:"What to do."`
	Retryable  bool           `json:"retryable" doc:"The same request, unchanged, may succeed later."`
	RetryAfter time.Duration  `json:"retry_after_ms,omitempty" doc:"When to retry, in milliseconds."`
	RequestID  string         `json:"request_id,omitempty" doc:"Id of the request, as in logs and the audit log."`
	Index      *int           `json:"index,omitempty" doc:"In an atomic batch: the refused item."`
	Current    map[string]any `json:"current,omitempty" doc:"Facts that explain the refusal."`
	Errors     []FieldProblem `json:"errors,omitempty" doc:"All invalid fields."`
}

// FieldProblem is one of several invalid fields.
type FieldProblem struct {
	Field  string `json:"field" doc:"JSON pointer, query.name or header.Name."`
	Code   string `json:"code" doc:"Stable; match on it."`
	Detail string `json:"detail" doc:"One sentence."`
	Hint   string `json:"hint,omitempty" doc:"What to do."`
}

// MarshalJSON writes the problem as the HTTP API does.
func (p Problem) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&p) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *Problem) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// problemPages is the path of the pages that explain codes.
const problemPages = "/problems/"

// factIndex is the fact with the index of a refused item of an atomic batch. Problems have a field for it (U22).
const factIndex = "index"

// AtIndex records which item of a batch was refused (U22). Other errors are returned unchanged.
func AtIndex(err error, index int) error {
	var refusal *Error
	if !errors.As(AsError(err), &refusal) {
		return err
	}
	named := *refusal
	named.Current = maps.Clone(refusal.Current)
	if named.Current == nil {
		named.Current = map[string]any{}
	}
	named.Current[factIndex] = index
	return &named
}

// MarshalJSON writes the problem that a server answers (U11), without internal causes.
func (e *Error) MarshalJSON() ([]byte, error) { return jsonx.Marshal(e.Problem()) }

// UnmarshalJSON reads such a problem.
func (e *Error) UnmarshalJSON(text []byte) error {
	var problem Problem
	if err := readAnswer(text, &problem); err != nil {
		return err
	}
	*e = *problem.Err()
	return nil
}

// Problem returns the error as the HTTP API shows it.
func (e *Error) Problem() *Problem {
	problem := &Problem{
		Type: problemPages + e.Code, Title: titleOf(e.Code), Status: base.Code(e.Code).Info().HTTP, Detail: e.shownMessage(),
		Code: e.Code, Class: e.Class, Field: e.Field, Hint: e.sentHint(), Retryable: e.Retryable, RetryAfter: e.RetryAfter,
		RequestID: e.RequestID, Current: e.Current,
	}
	if index, ok := e.Current[factIndex].(int); ok {
		problem.Index, problem.Current = &index, maps.Clone(e.Current)
		delete(problem.Current, factIndex)
	}
	for _, fault := range e.Errors {
		problem.Errors = append(problem.Errors, FieldProblem{Field: fault.Field, Code: fault.Code, Detail: fault.Message, Hint: fault.Hint})
	}
	return problem
}

// Err returns the problem as an Error.
func (p *Problem) Err() *Error {
	e := &Error{
		Code: p.Code, Class: p.Class, Message: p.Detail, Field: p.Field, RequestID: p.RequestID,
		Retryable: p.Retryable, RetryAfter: p.RetryAfter, Current: wholeNumbers(p.Current),
	}
	e.setHint(p.Hint)
	if p.Index != nil {
		if e.Current == nil {
			e.Current = map[string]any{}
		}
		e.Current[factIndex] = *p.Index
	}
	for _, fault := range p.Errors {
		e.Errors = append(e.Errors, FieldError{Field: fault.Field, Code: fault.Code, Message: fault.Detail, Hint: fault.Hint})
	}
	return e
}

// ProblemOf converts the error of an item; nil if there is none. It also converts the argument's name to a JSON pointer (U11).
func ProblemOf(err error) *Problem {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(AsError(err), &e) {
		e = Errorf(string(base.CodeTimeout), "the call ended before the answer came: %w", err)
	}
	problem := e.Problem()
	if !strings.HasPrefix(problem.Field, "/") && !strings.HasPrefix(problem.Field, "header.") {
		problem.Field = jsonx.Pointer(problem.Field)
	}
	return problem
}

// Refusal is the reverse of ProblemOf.
func (p *Problem) Refusal() error {
	if p == nil {
		return nil
	}
	return p.Err()
}

// titleOf converts a code to words.
func titleOf(code string) string {
	words := strings.ReplaceAll(code, "_", " ")
	if words == "" {
		return ""
	}
	words = strings.ToUpper(words[:1]) + words[1:]
	return strings.NewReplacer("json", "JSON", "Api ", "API ").Replace(words)
}

// shownMessage is the message without internal text of a database or of Go (U11).
func (e *Error) shownMessage() string {
	switch {
	case e.Code == string(base.CodeInternal):
		return "internal error"
	case e.Class != "internal" && e.Class != "unavailable":
		return e.Message
	}
	message := e.Message
	for cause := e.cause; cause != nil; cause = errors.Unwrap(cause) {
		message = strings.TrimSuffix(message, ": "+cause.Error())
	}
	return message
}

// exactInteger is the largest whole number range that a float64 represents exactly.
const exactInteger = 1 << 53

// wholeNumbers converts whole float64 numbers to int64.
func wholeNumbers(facts map[string]any) map[string]any {
	for name, fact := range facts {
		if n, ok := fact.(float64); ok && n == math.Trunc(n) && math.Abs(n) < exactInteger {
			facts[name] = int64(n)
		}
	}
	return facts
}
