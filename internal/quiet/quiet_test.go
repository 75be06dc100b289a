package quiet_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/quiet"
)

var begin = time.Unix(1_000_000, 0)

func newLog() (*quiet.Log, *clock.Manual, func() []string) {
	host, text := clock.NewManual(begin), &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return quiet.New(log, host), host, func() []string {
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		text.Reset()
		return lines
	}
}

func TestU217_the_same_failing_thing_is_logged_once_a_minute_with_a_count(t *testing.T) {
	t.Parallel()
	l, host, lines := newLog()
	for second := range 150 {
		host.TurnTo(begin.Add(time.Duration(second) * time.Second))
		l.Warn("it fails", "call", "claim", "error", fmt.Errorf("port %d", 1000+second), "request_id", fmt.Sprint(second))
	}
	want := []string{
		`level=WARN msg="it fails" call=claim error="port 1000" request_id=0 count=1`,
		`level=WARN msg="it fails" call=claim error="port 1060" request_id=60 count=60`,
		`level=WARN msg="it fails" call=claim error="port 1120" request_id=120 count=60`,
	}
	if got := lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestU217_other_things_are_logged_beside_it(t *testing.T) {
	t.Parallel()
	l, _, lines := newLog()
	l.Error("it fails", "execution_id", "1", "error", errors.New("a"))
	l.Error("it fails", "execution_id", "2", "error", errors.New("a"))
	l.Error("it fails", "execution_id", "1", "error", errors.New("b"))
	l.Info("it fails again")
	if got := lines(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func TestU217_many_different_things_of_a_message_count_as_one_in_the_end(t *testing.T) {
	t.Parallel()
	l, host, lines := newLog()
	for i := range 10_000 {
		l.Error("it fails", "execution_id", i)
	}
	if got := lines(); len(got) != 257 {
		t.Errorf("%d lines", len(got))
	}
	host.TurnTo(begin.Add(time.Minute))
	l.Error("it fails", "execution_id", 20_000)
	l.DebugMany(7, "found")
	if got := lines(); len(got) != 2 || !strings.HasSuffix(got[1], "count=7") {
		t.Errorf("%q", got)
	}
}

func TestU217_lines_that_are_not_logged_cost_nothing(t *testing.T) {
	t.Parallel()
	l := quiet.New(slog.New(slog.DiscardHandler), nil)
	l.Warn("it fails")
}
