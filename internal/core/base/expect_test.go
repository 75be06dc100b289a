package base

import (
	"errors"
	"testing"
)

// asError finds the *Error in err.
func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an error of ours", err)
	}
	return e
}

// expect fails unless err has the code, and with a code the field. "" means no error.
func expect(t *testing.T, err error, code Code, field string) {
	t.Helper()
	if CodeOf(err) != code {
		t.Fatalf("got %v, want code %q", err, code)
	}
	if code == "" {
		return
	}
	if got := asError(t, err).Field; field != "" && got != field {
		t.Fatalf("field %q, want %q (%v)", got, field, err)
	}
}
