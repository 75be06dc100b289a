package show

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

func said(text string) api.Frame {
	return api.Frame{ID: "0-1", Type: "data", Mode: api.ModeDurable, Payload: api.Text(text)}
}

func of(kind string, f api.Frame) api.Frame {
	f.Type = kind
	return f
}

func started(attempt int, kind string) api.Frame {
	f := api.Frame{Attempt: attempt, Type: api.AttemptStarted, AttemptType: kind}
	if before := attempt - 1; before >= 0 {
		f.Supersedes = &before
	}
	return f
}

func closed(attempt int, reason string) api.Frame {
	return api.Frame{Attempt: attempt, Type: api.AttemptClosed, Reason: reason}
}

var ended = api.Frame{Type: api.StreamClosed, Outcome: "success"}

// streamed is what frames look like.
func streamed(t *testing.T, p Printer, o StreamOptions, frames []api.Frame) (out, errs string) {
	t.Helper()
	var outs, marks strings.Builder
	p.Out, p.Err = &outs, &marks
	s := NewStream(&p, o)
	for i := range frames {
		if err := s.Write(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	return outs.String(), marks.String()
}

func TestU169_a_pipe_gets_the_bytes_of_payloads_and_nothing_else(t *testing.T) {
	t.Parallel()
	patch := api.Frame{Type: "data", Mode: api.ModeSummary, Payload: api.Bytes([]byte(`{"a":1}`), "application/json")}
	const binary = "\x00\xff\x1b[2J\r\n\xe2\x82"
	frames := []api.Frame{
		started(0, "initial"), said("one "), of("stderr", said(binary)), patch, said("\xac\n"), closed(0, "attempt_failure"),
		started(1, "retry"), said("two"), closed(1, "attempt_success"), ended,
	}
	out, errs := streamed(t, Printer{}, StreamOptions{}, frames)
	if want := "one " + binary + "\xac\ntwo"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	if want := "--- attempt 0 ended: failure\n--- attempt 1 (retry); what came before is superseded\n\n--- the execution ended: success\n"; errs != want {
		t.Errorf("marks %q, want %q", errs, want)
	}
	if out, _ := streamed(t, Printer{}, StreamOptions{Patches: true}, frames[3:4]); out != `{"a":1}` {
		t.Errorf("a patch that was asked for: %q", out)
	}
}

func TestU169_marks_say_what_the_engine_did(t *testing.T) {
	t.Parallel()
	gap := api.Frame{Attempt: 2, Type: api.FrameGap, Before: 17}
	for name, c := range map[string]struct {
		options StreamOptions
		frames  []api.Frame
		want    string
	}{
		"the first attempt is not marked":     {StreamOptions{}, []api.Frame{started(0, "initial"), closed(0, "attempt_success"), ended}, "--- the execution ended: success\n"},
		"a reader who came late":              {StreamOptions{}, []api.Frame{started(2, "reclaim")}, "--- attempt 2 (reclaim); --all prints the attempts before it\n"},
		"a reader who continues":              {StreamOptions{}, []api.Frame{said("a\n"), started(1, "retry")}, "--- attempt 1 (retry); what came before is superseded\n"},
		"an attempt that said nothing before": {StreamOptions{}, []api.Frame{started(0, "initial"), started(1, "retry")}, "--- attempt 1 (retry)\n"},
		"every attempt": {
			StreamOptions{Every: true},
			[]api.Frame{started(0, "initial"), said("a\n"), closed(0, "reclaimed"), started(1, "reclaim")},
			"--- attempt 0 (initial)\n--- attempt 0 ended: reclaimed\n--- attempt 1 (reclaim)\n",
		},
		"one attempt": {StreamOptions{One: true}, []api.Frame{said("a\n"), closed(0, "attempt_success")}, "--- attempt 0 ended: success\n"},
		"a gap":       {StreamOptions{}, []api.Frame{gap}, "--- some frames of attempt 2 before 2-17 are no longer kept\n"},
		"dimmed":      {StreamOptions{Painted: true}, []api.Frame{gap}, "\x1b[2m--- some frames of attempt 2 before 2-17 are no longer kept\x1b[22m\n"},
	} {
		if _, got := streamed(t, Printer{}, c.options, c.frames); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestU169_what_programs_write_does_not_control_a_terminal(t *testing.T) {
	t.Parallel()
	object := api.Frame{Type: "data", Payload: api.Bytes([]byte(`{"a":1}`), "application/json")}
	for name, c := range map[string]struct {
		frames []api.Frame
		want   string
	}{
		"an escape":                       {[]api.Frame{said("\x1b[2Ja\u202e\n")}, `\x1b[2Ja\u202e` + "\n"},
		"a character in two frames":       {[]api.Frame{said("10 \xe2"), said("\x82"), said("\xac\n")}, "10 €\n"},
		"a control in two frames":         {[]api.Frame{said("\xc2"), said("\x9b2J\n")}, `\x9b2J` + "\n"},
		"a character without an end":      {[]api.Frame{said("10 \xe2\x82")}, "10 \uFFFD\n"},
		"one that another type cuts off":  {[]api.Frame{said("\xe2\x82"), of("log", said("\xac\n"))}, "\uFFFD\uFFFD\n"},
		"lines of Windows":                {[]api.Frame{said("a\r\nb\r"), said("\nc\n")}, "a\nb\nc\n"},
		"a return to overwrite the line":  {[]api.Frame{said("10%\r20%\r"), said("30%")}, "10%\n20%\n30%\n"},
		"bytes that are no text":          {[]api.Frame{said("\xff\x00\n")}, "\uFFFD" + `\x00` + "\n"},
		"JSON has lines of its own":       {[]api.Frame{said("a"), object, object}, "a\n{\"a\":1}\n{\"a\":1}\n"},
		"a line that has no end yet":      {[]api.Frame{said("a"), started(1, "retry"), said("b")}, "a\nb\n"},
		"standard error without a colour": {[]api.Frame{of("stderr", said("a\nb\n"))}, "a\nb\n"},
	} {
		if got, _ := streamed(t, Printer{Terminal: true}, StreamOptions{}, c.frames); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	dimmed, _ := streamed(t, Printer{Terminal: true, Color: true}, StreamOptions{}, []api.Frame{of("stderr", said("a\x1b\nb")), said("c")})
	if want := "\x1b[2ma\\x1b\nb\x1b[22mc\n"; dimmed != want {
		t.Errorf("%q, want %q", dimmed, want)
	}
}
