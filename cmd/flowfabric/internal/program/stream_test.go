package program

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored is a stream that takes frames as the server does: a call of the last number is a repeat.
type stored struct {
	mu     sync.Mutex
	text   strings.Builder
	frames []api.NewFrame
	last   int64
	calls  int
	answer func(call int) error                // before anything is stored; nil: all is well
	lose   func(call int) error                // after it was stored
	hang   func(ctx context.Context, call int) // before the answer
	most   int                                 // bytes of the largest call
}

func (s *stored) send(ctx context.Context, frames []api.NewFrame, seq int64) error {
	s.mu.Lock()
	s.calls++
	call := s.calls
	s.mu.Unlock()
	if s.hang != nil {
		s.hang(ctx, call)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		if err := s.answer(call); err != nil {
			return err
		}
	}
	if seq < s.last {
		return fmt.Errorf("call %d has the number %d after %d", call, seq, s.last)
	}
	if seq > s.last {
		size := 0
		for _, f := range frames {
			s.text.Write(f.Payload.Data)
			size += len(f.Payload.Data)
		}
		s.last, s.frames, s.most = seq, append(s.frames, frames...), max(s.most, size)
	}
	if s.lose != nil {
		return s.lose(call)
	}
	return nil
}

func (s *stored) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *stored) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// speaking runs what is sent to a stream in a bubble of virtual time. finish returns when all is stored, or false.
func speaking(t *testing.T, s *stored, do func(l *lines, finish func() bool)) (refused []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := newLines(s.send, func(err error) { refused = append(refused, err) })
		go l.run(ctx)
		do(l, func() bool { return l.close(lastCalls, cancel) })
		l.close(0, cancel)
	})
	return refused
}

func write(t *testing.T, l *lines, text string) {
	t.Helper()
	if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("%d bytes were taken of %d: %v", n, len(text), err)
	}
}

var away = &api.Error{Code: "store_unavailable", Class: "unavailable"}

func TestU175_what_a_program_writes_is_sent_within_a_tenth_of_a_second(t *testing.T) {
	t.Parallel()
	s := &stored{}
	speaking(t, s, func(l *lines, finish func() bool) {
		for _, token := range []string{"a", " €", " line\n"} {
			before := s.got()
			write(t, l, token)
			time.Sleep(100 * time.Millisecond) // of the bubble
			if got := s.got(); got != before+token {
				t.Errorf("%q after %q", got, token)
			}
		}
		began := time.Now()
		write(t, l, "last words")
		if !finish() || !strings.HasSuffix(s.got(), "last words") || time.Since(began) > 0 {
			t.Errorf("%q after %s", s.got(), time.Since(began))
		}
	})
	for _, f := range s.frames {
		if f.Type != "stderr" || f.Mode != "" || f.Payload.ContentType != api.Text("").ContentType {
			t.Errorf("%+v", f)
		}
	}
}

func TestU175_a_character_is_not_cut_and_bytes_are_sent_as_they_are(t *testing.T) {
	t.Parallel()
	s := &stored{}
	speaking(t, s, func(l *lines, finish func() bool) {
		write(t, l, "10 \xe2\x82")
		time.Sleep(time.Minute)
		if calls := s.called(); calls > 1 || s.got() != "10 " {
			t.Errorf("%d calls, %q", calls, s.got())
		}
		write(t, l, "\xac\n")
		time.Sleep(time.Second)
		write(t, l, "\xff\x00\n")
		time.Sleep(time.Second)
		write(t, l, "\xe2")
		finish()
	})
	want := []string{"10 ", "€\n", "\xff\x00\n", "\xe2"}
	if len(s.frames) != len(want) {
		t.Fatalf("%d frames: %q", len(s.frames), s.got())
	}
	for i, f := range s.frames {
		if text := string(f.Payload.Data); text != want[i] || (f.Payload.ContentType == "application/octet-stream") != (i > 1) {
			t.Errorf("%q, %s", text, f.Payload.ContentType)
		}
	}
}

func TestU175_a_flood_slows_the_program_and_takes_no_memory(t *testing.T) {
	t.Parallel()
	s := &stored{}
	var sent strings.Builder
	speaking(t, s, func(l *lines, finish func() bool) {
		for i := range 400 {
			line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 32<<10))
			sent.WriteString(line)
			write(t, l, line)
			l.mu.Lock()
			if len(l.kept) > mostKept || cap(l.kept) > 2*mostKept {
				t.Errorf("%d bytes are kept, room for %d", len(l.kept), cap(l.kept))
			}
			l.mu.Unlock()
		}
		if !finish() {
			t.Error("not all was stored")
		}
	})
	if s.got() != sent.String() {
		t.Error("what was stored is not what was written")
	}
	for i, f := range s.frames {
		if len(f.Payload.Data) > mostFrame || i < len(s.frames)-1 && f.Payload.Data[len(f.Payload.Data)-1] != '\n' && len(f.Payload.Data) < 32<<10 {
			t.Errorf("frame %d has %d bytes", i, len(f.Payload.Data))
		}
	}
	if s.most > mostKept || s.calls < 10 {
		t.Errorf("%d calls, the largest with %d bytes", s.calls, s.most)
	}
}

func TestU175_a_server_that_is_away_is_waited_for_and_nothing_is_stored_twice(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*stored{
		"refused":      {answer: func(call int) error { return map[bool]error{true: away}[call < 20] }},
		"answers lost": {lose: func(call int) error { return map[bool]error{true: away}[call%3 != 0] }},
		"hangs": {hang: func(ctx context.Context, call int) {
			if call < 3 {
				<-ctx.Done()
			}
		}},
	} {
		refused := speaking(t, s, func(l *lines, finish func() bool) {
			write(t, l, "one\n")
			time.Sleep(time.Second)
			write(t, l, "two\n")
			time.Sleep(20 * time.Second)
			write(t, l, "three\n")
			if !finish() {
				t.Errorf("%s: not all was stored", name)
			}
		})
		if s.got() != "one\ntwo\nthree\n" || len(refused) > 0 {
			t.Errorf("%s: %q, %v", name, s.got(), refused)
		}
	}
}

func TestU175_what_has_no_room_while_the_server_is_away_is_dropped_with_a_note(t *testing.T) {
	t.Parallel()
	var back bool
	s := &stored{}
	s.answer = func(int) error { return map[bool]error{true: away}[!back] }
	const line = "a line of thirty-two characters\n"
	speaking(t, s, func(l *lines, finish func() bool) {
		began := time.Now()
		for range 3 * mostKept / len(line) {
			write(t, l, line)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the program was kept waiting for %s", waited)
		}
		s.mu.Lock()
		back = true
		s.mu.Unlock()
		time.Sleep(time.Second)
		write(t, l, "after\n")
		finish()
	})
	var missing int
	head, rest, noted := strings.Cut(s.got(), "\n[flowfabric work: ")
	if _, err := fmt.Sscanf(rest, "%d bytes of standard error are missing here]\n", &missing); !noted || err != nil || !strings.HasSuffix(rest, "]\nafter\n") {
		t.Fatalf("%v %.200q", err, rest)
	}
	if all := (3 * mostKept / len(line)) * len(line); len(head)+missing != all {
		t.Errorf("%d stored and %d missing of %d", len(head), missing, all)
	}
}

func TestU175_a_refusal_is_told_once_and_the_program_goes_on(t *testing.T) {
	t.Parallel()
	full := &api.Error{Code: "stream_full", Class: "state"}
	s := &stored{answer: func(call int) error { return map[bool]error{true: full}[call > 1] }}
	refused := speaking(t, s, func(l *lines, finish func() bool) {
		for range 10 {
			write(t, l, strings.Repeat("x", mostKept))
			time.Sleep(time.Second)
		}
		if !finish() {
			t.Error("the end was late")
		}
	})
	if len(refused) != 1 || !errors.Is(refused[0], full) || s.calls != 2 {
		t.Errorf("%v after %d calls", refused, s.calls)
	}
}

func TestU175_an_end_waits_for_the_server_only_so_long(t *testing.T) {
	t.Parallel()
	s := &stored{answer: func(int) error { return away }}
	refused := speaking(t, s, func(l *lines, finish func() bool) {
		write(t, l, "lost\n")
		began := time.Now()
		if finish() || time.Since(began) != lastCalls {
			t.Errorf("it waited for %s", time.Since(began))
		}
	})
	if len(refused) > 0 {
		t.Error(refused)
	}
}

func TestU175_which_refusals_mean_that_the_lease_is_gone(t *testing.T) {
	t.Parallel()
	for _, c := range api.Codes() {
		err := error(&api.Error{Code: c.Code, Class: c.Class})
		if want := c.Class == "fenced" || c.Code == "execution_not_active" || c.Code == "execution_not_found"; lost(err) != want {
			t.Errorf("%s: %t", c.Code, !want)
		}
	}
}
