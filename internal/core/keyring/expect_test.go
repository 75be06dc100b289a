package keyring

import (
	"errors"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// asError finds the *Error in err.
func asError(t *testing.T, err error) *base.Error {
	t.Helper()
	var e *base.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an error of ours", err)
	}
	return e
}

// expect fails unless err has the code, and with a code the field. "" means no error.
func expect(t *testing.T, err error, code base.Code, field string) {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("got %v, want code %q", err, code)
	}
	if code == "" {
		return
	}
	if got := asError(t, err).Field; field != "" && got != field {
		t.Fatalf("field %q, want %q (%v)", got, field, err)
	}
}
