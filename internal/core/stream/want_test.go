package stream

import (
	"bytes"
	"errors"
	"reflect"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// tester is what helpers need of a testing.T or a rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// wantCode fails unless err has the code and, if one is given, the field.
func wantCode(t tester, err error, code base.Code, field string) *base.Error {
	t.Helper()
	var e *base.Error
	if !errors.As(err, &e) || e.Code != code || field != "" && e.Field != field {
		t.Fatalf("got %v, want %s of %q", err, code, field)
	}
	return e
}

// must fails if a call is refused.
func must[A any](t tester) func(a A, err error) A {
	return func(a A, err error) A {
		t.Helper()
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return a
	}
}

// want fails unless both are equal.
func want[A any](t tester, what string, got, want A) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

func wantFrames(t tester, what string, got, want []Frame) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d frames %v, want %d %v", what, len(got), seqs(got), len(want), seqs(want))
	}
	for i := range got {
		a, b := got[i], want[i]
		if !bytes.Equal(a.Payload, b.Payload) {
			t.Fatalf("%s: the payload of frame %d was changed", what, a.Seq)
		}
		a.Payload, b.Payload = nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: got %+v, want %+v", what, a, b)
		}
	}
}

func seqs(frames []Frame) (all []int64) {
	for i := range frames {
		all = append(all, frames[i].Seq)
	}
	return all
}

// testPolicy has the defaults.
func testPolicy() *Policy {
	return &Policy{MaxFrames: 10_000, MaxBytes: 64 << 20, OnFull: DropOldest, BestEffort: BestEffortPolicy{TTLMS: 30_000, Floor: 64, Ceiling: 16_384, Alpha: 0.2}}
}

// text is a frame with this payload.
func text(payload string) Draft { return Draft{Payload: []byte(payload)} }

// patch is a summary frame.
func patch(payload string) Draft { return Draft{Mode: Summary, Payload: []byte(payload)} }

// some are frames of a mode with payloads of that size; summary frames have an empty patch.
func some(n int, mode Mode, size int) []Draft {
	all := make([]Draft, n)
	for i := range all {
		all[i] = Draft{Mode: mode, Payload: bytes.Repeat([]byte{byte('a' + i%26)}, size)}
		if mode == Summary {
			all[i].Payload = []byte("{}")
		}
	}
	return all
}
