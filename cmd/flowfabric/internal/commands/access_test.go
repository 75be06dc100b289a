package commands

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestU124_an_open_server_is_warned_of_at_start_and_every_hour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lines
		ctx, cancel := context.WithCancel(t.Context())
		var closed atomic.Bool
		go remindHourly(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() bool { return !closed.Load() })
		for hours := range 3 {
			synctest.Wait()
			if got := strings.Count(log.String(), "--insecure-open"); got != hours+1 {
				t.Fatalf("%d warnings after %d hours", got, hours)
			}
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		before := strings.Count(log.String(), "--insecure-open")
		closed.Store(true)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := strings.Count(log.String(), "--insecure-open"); got != before {
			t.Errorf("%d warnings of a server that is not open any more", got-before)
		}
		cancel()
	})
}

// lines keeps what is logged while it is read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestU164_words_of_a_command_are_quoted_where_a_shell_would_read_them_otherwise(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"x.dump": "x.dump", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "postgres://me@db/ff?sslmode=disable": "'postgres://me@db/ff?sslmode=disable'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q becomes %s", text, got)
		}
	}
}
