// Package quiet keeps trouble that lasts from filling the log: the same line about the same thing is written once a minute, with how
// often it happened (U217). It knows nothing of what is logged.
package quiet

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/flowfabric/flowfabric/internal/clock"
)

const (
	interval = time.Minute
	// maxThings bounds what is remembered. Beyond it all lines of a message count as one.
	maxThings = 256
)

// Log writes to a logger. A line is the same as another when message and values are, but for those that differ from call to call.
type Log struct {
	log   *slog.Logger
	clock clock.Clock

	mu   sync.Mutex
	seen map[string]*thing
}

// thing is something that was logged.
type thing struct {
	at    time.Time
	since int // how often it happened after that
}

// New writes to log, by the time of c; nil: the host's.
func New(log *slog.Logger, c clock.Clock) *Log {
	if c == nil {
		c = clock.System()
	}
	return &Log{log: log, clock: c, seen: map[string]*thing{}}
}

// Info logs a line, as slog.Logger does.
func (l *Log) Info(msg string, args ...any) { l.write(slog.LevelInfo, 1, msg, args) }

// Warn logs a line, as slog.Logger does.
func (l *Log) Warn(msg string, args ...any) { l.write(slog.LevelWarn, 1, msg, args) }

// Error logs a line, as slog.Logger does.
func (l *Log) Error(msg string, args ...any) { l.write(slog.LevelError, 1, msg, args) }

// DebugMany logs something that happened n times at once.
func (l *Log) DebugMany(n int, msg string, args ...any) { l.write(slog.LevelDebug, n, msg, args) }

func (l *Log) write(level slog.Level, n int, msg string, args []any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	if count := l.count(msg, args, n); count > 0 {
		l.log.Log(context.Background(), level, msg, append(args[:len(args):len(args)], "count", count)...)
	}
}

// count is how often it has happened since it was last logged; 0: it is too early to log it again.
func (l *Log) count(msg string, args []any, n int) int {
	name := nameOf(msg, args)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	t := l.seen[name]
	if t == nil {
		t = l.remember(name, msg, now)
	}
	t.since += n
	if !t.at.IsZero() && now.Sub(t.at) < interval {
		return 0
	}
	count := t.since
	t.at, t.since = now, 0
	return count
}

// remember makes room for a thing. What was not logged for a while is forgotten.
func (l *Log) remember(name, msg string, now time.Time) *thing {
	if len(l.seen) >= maxThings {
		for old, t := range l.seen {
			if now.Sub(t.at) >= interval {
				delete(l.seen, old)
			}
		}
	}
	if len(l.seen) >= maxThings {
		name = msg
	}
	t := l.seen[name]
	if t == nil {
		t = &thing{}
		l.seen[name] = t
	}
	return t
}

// varying are the keys whose values differ though the thing is the same.
var varying = map[any]bool{"request_id": true, "duration_ms": true, "trace_id": true, "stack": true, "failures": true, "tries": true, "again_in": true}

// nameOf names what a line is about. Of errors numbers are left out: they contain ports and times.
func nameOf(msg string, args []any) string {
	var b strings.Builder
	b.WriteString(msg)
	for i := 0; i+1 < len(args); i += 2 {
		if varying[args[i]] {
			continue
		}
		text := fmt.Sprint(args[i+1])
		if _, ok := args[i+1].(error); ok {
			text = strings.Map(dropDigit, text)
		}
		b.WriteByte(0)
		b.WriteString(text)
	}
	return b.String()
}

func dropDigit(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}
