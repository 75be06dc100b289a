package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/flowfabric/flowfabric/api"
)

// Stream writes for people what the attempts of an execution say (U169). Payloads go to Out: byte for byte, on a terminal so that they cannot
// control it. Marks of what the engine did go to Err, each on a line of its own, so that Out has nothing else in it.
type Stream struct {
	StreamOptions
	p       *Printer
	screen  screen
	kind    string // type of the frame before
	partial bool   // the last line that was written has no end yet
	began   bool   // an attempt was begun before
	said    bool   // a payload was written
	newly   bool   // one of the present attempt was
}

// StreamOptions say what a Stream writes.
type StreamOptions struct {
	Every   bool // all attempts are shown: none supersedes what came before
	One     bool // only one attempt is shown, so that its end is the end
	Patches bool // patches of the summary document are written, too
	Painted bool // marks are dimmed
}

// NewStream returns a Stream that writes with p.
func NewStream(p *Printer, o StreamOptions) *Stream { return &Stream{StreamOptions: o, p: p} }

// Said reports whether a payload was written.
func (s *Stream) Said() bool { return s.said }

// Write writes a frame.
func (s *Stream) Write(f *api.Frame) error {
	switch {
	case f.IsControl():
		return s.control(f)
	case f.Mode == api.ModeSummary && !s.Patches:
		return nil
	default:
		return s.payload(f)
	}
}

// End completes the last line of a terminal.
func (s *Stream) End() error {
	err := s.add(s.p.Out, s.screen.end())
	if s.p.Terminal {
		err = s.line()
	}
	return err
}

func (s *Stream) control(f *api.Frame) error {
	switch f.Type {
	case api.AttemptStarted:
		return s.started(f)
	case api.AttemptClosed:
		if f.Reason == "attempt_success" && !s.One {
			return nil // the end of the execution follows
		}
		return s.mark("attempt %d ended: %s", f.Attempt, reasonText(f.Reason))
	case api.FrameGap:
		return s.mark("some frames of attempt %d before %d-%d are no longer kept", f.Attempt, f.Attempt, f.Before)
	default:
		return s.mark("the execution ended: %s", f.Outcome)
	}
}

// started marks an attempt. The first one of an execution is not marked where nothing else was shown before.
func (s *Stream) started(f *api.Frame) error {
	first, superseded := !s.began, s.newly && !s.Every
	s.began, s.newly = true, false
	after := ""
	switch {
	case first && f.Attempt == 0 && !s.Every:
		return nil
	case first && !s.Every:
		after = "; --all prints the attempts before it"
	case superseded:
		after = "; what came before is superseded"
	}
	return s.mark("attempt %d (%s)%s", f.Attempt, f.AttemptType, after)
}

// reasonText is the reason of a close in words.
func reasonText(reason string) string {
	return strings.ReplaceAll(strings.TrimPrefix(reason, "attempt_"), "_", " ")
}

// mark writes a line to Err. A line of the program that has no end yet is ended before: on a terminal in its place, else on Err, where it keeps the two
// apart if both go to one file.
func (s *Stream) mark(format string, args ...any) error {
	if err := s.add(s.p.Out, s.screen.end()); err != nil {
		return err
	}
	if err := s.line(); err != nil {
		return err
	}
	text := Visible("--- " + fmt.Sprintf(format, args...))
	if s.Painted {
		text = dim(text)
	}
	_, err := fmt.Fprintln(s.p.Err, text)
	return err
}

// line ends a line that has no end yet.
func (s *Stream) line() error {
	if !s.partial {
		return nil
	}
	s.partial = false
	to := s.p.Err
	if s.p.Terminal {
		to = s.p.Out
	}
	_, err := io.WriteString(to, "\n")
	return err
}

// payload writes a payload. On a terminal, what is JSON has lines of its own, and what a program wrote to its standard error is dimmed.
func (s *Stream) payload(f *api.Frame) error {
	s.said, s.newly, s.began = true, true, true
	if !s.p.Terminal {
		return s.add(s.p.Out, string(f.Payload.Data))
	}
	if f.Type != s.kind {
		s.kind = f.Type
		if err := s.add(s.p.Out, s.screen.end()); err != nil {
			return err
		}
	}
	apart := strings.HasPrefix(f.Payload.ContentType, "application/json")
	if apart {
		if err := s.line(); err != nil {
			return err
		}
	}
	text := s.screen.text(f.Payload.Data)
	if s.p.Color && f.Type == "stderr" && text != "" {
		s.partial = !strings.HasSuffix(text, "\n")
		_, err := io.WriteString(s.p.Out, dim(text))
		return err
	}
	if err := s.add(s.p.Out, text); err != nil || !apart {
		return err
	}
	return s.line()
}

func (s *Stream) add(to io.Writer, text string) error {
	if text == "" {
		return nil
	}
	s.partial = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(to, text)
	return err
}

// dim makes a text faint. It is not padded, whatever lines it has.
func dim(text string) string { return "\x1b[2m" + text + "\x1b[22m" }
