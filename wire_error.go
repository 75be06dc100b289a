package flowfabric

import (
	"errors"
	"maps"
	"math"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// FieldError is one faulty argument of many.
type FieldError struct {
	Field   string
	Code    string
	Message string
	Hint    string
}

// problemPages is where a server explains codes.
const problemPages = "/problems/"

// MarshalJSON writes the problem of RFC 9457 that a server answers (U11). The causes of failures inside the engine stay there.
func (e *Error) MarshalJSON() ([]byte, error) { return wire.Marshal(e.wire()) }

// UnmarshalJSON reads such a problem.
func (e *Error) UnmarshalJSON(text []byte) error {
	problem, err := readAnswer[wire.Problem](text)
	if err != nil {
		return err
	}
	*e = *errorFrom(problem)
	return nil
}

func (e *Error) wire() *wire.Problem {
	problem := &wire.Problem{
		Type: problemPages + e.Code, Title: titleOf(e.Code), Status: core.Code(e.Code).Info().HTTP, Detail: e.shownMessage(),
		Code: e.Code, Class: e.Class, Field: e.Field, Hint: e.Hint, Retryable: e.Retryable, RetryAfterMS: millis(e.RetryAfter),
		RequestID: e.RequestID, Current: e.Current,
	}
	if index, ok := e.Current[factIndex].(int); ok {
		problem.Index, problem.Current = &index, maps.Clone(e.Current)
		delete(problem.Current, factIndex)
	}
	for _, fault := range e.Errors {
		problem.Errors = append(problem.Errors, wire.FieldProblem{Field: fault.Field, Code: fault.Code, Detail: fault.Message, Hint: fault.Hint})
	}
	return problem
}

// factIndex is the fact that tells which item of an atomic batch was refused. Problems have a field for it (U22).
const factIndex = "index"

func errorFrom(p *wire.Problem) *Error {
	e := &Error{
		Code: p.Code, Class: p.Class, Message: p.Detail, Field: p.Field, Hint: p.Hint, RequestID: p.RequestID,
		Retryable: p.Retryable, RetryAfter: duration(p.RetryAfterMS), Current: factsFrom(p.Current),
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
	case e.Code == string(core.CodeInternal):
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

// exactInteger bounds the whole numbers that JSON brings as they are.
const exactInteger = 1 << 53

// factsFrom makes whole numbers of those that JSON reads as others.
func factsFrom(facts map[string]any) map[string]any {
	for name, fact := range facts {
		if n, ok := fact.(float64); ok && n == math.Trunc(n) && math.Abs(n) < exactInteger {
			facts[name] = int64(n)
		}
	}
	return facts
}

// problemOf shows why an item was refused; nil when it was not.
func problemOf(err error) *wire.Problem {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(publicError(err), &e) {
		e = newError(core.CodeTimeout, "the call ended before the answer came: %w", err)
	}
	problem := e.wire()
	if !strings.HasPrefix(problem.Field, "/") && !strings.HasPrefix(problem.Field, "header.") { // the rules call an argument by its name (U11)
		problem.Field = wire.Pointer(problem.Field)
	}
	return problem
}

// refusalFrom is the reverse of problemOf.
func refusalFrom(p *wire.Problem) error {
	if p == nil {
		return nil
	}
	return errorFrom(p)
}

// faultOf shows what is wrong with a request that cannot be written or read; all faults stand in Errors when there are several.
func faultOf(err error) error {
	var all wire.Errors
	var one *wire.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		one = all[0]
	case !errors.As(err, &one):
		return err
	}
	refusal := newError(core.Code(one.Code), "%s", one.Detail).at(one.Field, one.Hint)
	if len(all) > 1 {
		for _, fault := range all {
			refusal.Errors = append(refusal.Errors, FieldError{Field: fault.Field, Code: fault.Code, Message: fault.Detail, Hint: fault.Hint})
		}
	}
	return refusal
}

// unreadable is an answer, or a file with one, that is not in the form of the API.
func unreadable(err error) error {
	return newError(core.CodeInvalidJSON, "this is not the JSON of the API: %w", err)
}
