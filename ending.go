package flowfabric

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Permanent marks err so that no policy retries it: the attempt fails with class permanent. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// RetryAfter marks err so that a retry, if the policy allows one, starts d after the failure instead of after the policy's
// backoff. nil stays nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, d}
}

// Category names the failure, for RetryPolicy.Categories and ByCategory and for people. Categories have 1..64 characters of a-z,
// 0-9, '_', '.', '-': letters are made lower-case, and every other character becomes '_', so that no name is refused when the
// attempt fails. Without Category, and with an empty name, it is handler_error. nil stays nil.
func Category(name string, err error) error {
	if err == nil {
		return nil
	}
	return &categoryError{err, categoryOf(name)}
}

// maxCategory is the longest category (L91).
const maxCategory = 64

// categoryOf makes a text valid as a category.
func categoryOf(name string) string {
	valid := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		default:
			return '_'
		}
	}, name)
	return cmp.Or(valid[:min(len(valid), maxCategory)], categoryHandler)
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

type categoryError struct {
	err  error
	name string
}

func (e *categoryError) Error() string { return e.err.Error() }
func (e *categoryError) Unwrap() error { return e.err }

// The categories that the runtime itself gives (U144).
const (
	categoryHandler  = "handler_error"
	categoryPanic    = "panic"
	categoryDecode   = "decode"
	categoryEncode   = "encode"
	categoryTooLarge = "payload_too_large"
	categoryTimeout  = "timeout"
)

// The failure classes that the runtime itself gives (L91).
const (
	classTransient = api.ClassTransient
	classPermanent = api.ClassPermanent
	classTimeout   = api.ClassTimeout
)

// failureOf reads the marks of a handler's error (U144).
func failureOf(err error) api.WorkItem {
	item := api.WorkItem{Op: api.OpFail, Class: classTransient, Category: categoryHandler, Message: err.Error()}
	var permanent *permanentError
	if errors.As(err, &permanent) {
		item.Class = classPermanent
	}
	var category *categoryError
	if errors.As(err, &category) {
		item.Category = category.name
	}
	var after *retryAfterError
	if errors.As(err, &after) {
		item.RetryAfter = &after.after
	}
	return item
}
