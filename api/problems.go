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

// Problem is an Error as the HTTP API writes it: every answer of 400 and above (RFC 9457).
type Problem struct {
	Type       string         `json:"type" doc:"/problems/<code>, a page of this server."`
	Title      string         `json:"title" doc:"The code in words."`
	Status     int            `json:"status" doc:"The HTTP status."`
	Detail     string         `json:"detail" doc:"One sentence for people."`
	Code       string         `json:"code" doc:"Stable; match on it."`
	Class      string         `json:"class" doc:"Group of codes."`
	Field      string         `json:"field,omitempty" doc:"The field at fault: JSON pointer, query.name or header.Name."`
	Hint       string         `json:"hint,omitempty" doc:"What to do."`
	Retryable  bool           `json:"retryable" doc:"The same request, unchanged, may succeed later."`
	RetryAfter time.Duration  `json:"retry_after_ms,omitempty" doc:"When to try again, in milliseconds."`
	RequestID  string         `json:"request_id,omitempty" doc:"Stands in logs and audit rows too."`
	Index      *int           `json:"index,omitempty" doc:"Of an atomic batch: the item that was refused."`
	Current    map[string]any `json:"current,omitempty" doc:"Facts that explain the refusal."`
	Errors     []FieldProblem `json:"errors,omitempty" doc:"All faulty fields."`
}

// FieldProblem is one faulty field of many.
type FieldProblem struct {
	Field  string `json:"field" doc:"JSON pointer, query.name or header.Name."`
	Code   string `json:"code" doc:"Stable; match on it."`
	Detail string `json:"detail" doc:"One sentence for people."`
	Hint   string `json:"hint,omitempty" doc:"What to do."`
}

// MarshalJSON writes the problem as the HTTP API does.
func (p Problem) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&p) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *Problem) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// problemPages is where a server explains codes.
const problemPages = "/problems/"

// factIndex is the fact that says which item of an atomic batch was refused. Problems have a field for it (U22).
const factIndex = "index"

// AtIndex says which item of a batch it was whose refusal is that of all of it (U22). Other errors stay what they are.
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

// MarshalJSON writes the problem that a server answers (U11). The causes of failures inside the engine stay there.
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

// Problem is the error as the HTTP API shows it.
func (e *Error) Problem() *Problem {
	problem := &Problem{
		Type: problemPages + e.Code, Title: titleOf(e.Code), Status: base.Code(e.Code).Info().HTTP, Detail: e.shownMessage(),
		Code: e.Code, Class: e.Class, Field: e.Field, Hint: e.Hint, Retryable: e.Retryable, RetryAfter: e.RetryAfter,
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

// Err is the error that the problem shows.
func (p *Problem) Err() *Error {
	e := &Error{
		Code: p.Code, Class: p.Class, Message: p.Detail, Field: p.Field, Hint: p.Hint, RequestID: p.RequestID,
		Retryable: p.Retryable, RetryAfter: p.RetryAfter, Current: wholeNumbers(p.Current),
	}
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

// ProblemOf shows why an item was refused; nil when it was not. The rules call an argument by its name, JSON by its pointer (U11).
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

// titleOf is a code in words.
func titleOf(code string) string {
	words := strings.ReplaceAll(code, "_", " ")
	if words == "" {
		return ""
	}
	words = strings.ToUpper(words[:1]) + words[1:]
	return strings.NewReplacer("json", "JSON", "Api ", "API ").Replace(words)
}

// shownMessage is the message without the text of a database or of Go, which a failure, other than a refusal, may carry (U11).
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

// exactInteger bounds the whole numbers that a float64 holds exactly.
const exactInteger = 1 << 53

// wholeNumbers turns the numbers that JSON reads as float64 into int64 where they are whole.
func wholeNumbers(facts map[string]any) map[string]any {
	for name, fact := range facts {
		if n, ok := fact.(float64); ok && n == math.Trunc(n) && math.Abs(n) < exactInteger {
			facts[name] = int64(n)
		}
	}
	return facts
}
