package schedule

import (
	"errors"
	"reflect"
	"strings"
	"time"

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

// at reads an RFC 3339 time, or a date with or without a time of day in UTC.
func at(t tester, text string) base.Time {
	t.Helper()
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if parsed, err := time.Parse(layout, text); err == nil {
			return base.Time(parsed.UnixMilli())
		}
	}
	t.Fatalf("%q is no time", text)
	return 0
}

// valid is a definition with that cron text.
func valid(lines ...string) Definition {
	return Definition{Cron: lines, Action: Action{Kind: ActionExecution, Digest: strings.Repeat("0", 64)}}
}

// inZone is a checked definition of a cron text in a zone.
func inZone(t tester, zone string, lines ...string) *Spec {
	t.Helper()
	d := valid(lines...)
	d.Timezone = zone
	return must[*Spec](t)(Parse(d))
}

// between returns the moments m with from <= m < to.
func between(s *Spec, from, to base.Time) (all []base.Time) {
	for m, ok := s.Next(from - 1); ok && m < to; m, ok = s.Next(m) {
		all = append(all, m)
	}
	return all
}

// texts shows moments in UTC.
func texts(all []base.Time) []string {
	shown := make([]string, len(all))
	for i, m := range all {
		shown[i] = m.Std().Format("2006-01-02T15:04:05")
	}
	return shown
}
