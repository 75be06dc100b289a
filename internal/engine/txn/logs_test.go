package txn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/quiet"
)

func TestU217_commands_over_a_second_are_logged(t *testing.T) {
	t.Parallel()
	now, text := time.Duration(0), &bytes.Buffer{}
	e := &Engine{Meter: newMeter(func() time.Duration { return now }), QuietLog: quiet.New(slog.New(slog.NewTextHandler(text, nil)), nil)}
	batch := []*Request{
		{Command: &OnOne{Op: "cancel"}, began: 0}, {Command: &OnOne{Op: "complete"}, began: time.Second}, {Command: &OnOne{Op: "fail"}, began: 500 * time.Millisecond},
	}
	now = 2 * time.Second
	e.logSlow(batch, nil, nil, base.Errorf(base.CodeStaleLease, "no"))
	got := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(got) != 2 || !strings.HasSuffix(got[0], `level=INFO msg="slow command" command=cancel code=done duration_ms=2000 count=1`) ||
		!strings.HasSuffix(got[1], `command=fail code=stale_lease duration_ms=1500 count=1`) {
		t.Errorf("%s", text)
	}
	text.Reset()
	e.logSlow(batch, base.Errorf(base.CodeTimeout, "lost"))
	if got := strings.Count(text.String(), "code=timeout"); got != 2 {
		t.Errorf("%s", text)
	}
}
