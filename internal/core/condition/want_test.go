package condition

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// tester is what helpers need of a testing.T or a rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wantCode fails unless err has the code.
func wantCode(t tester, err error, code base.Code) *base.Error {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	var e *base.Error
	errors.As(err, &e)
	return e
}

// must fails if a command is refused.
func must[A any](t tester) func(a A, err error) A {
	return func(a A, err error) A {
		t.Helper()
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return a
	}
}
