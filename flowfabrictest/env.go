package flowfabrictest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/quiescence"
)

// patience is the real time after which a test that does not settle fails.
const patience = time.Minute

// Config configures an environment. The zero value is useful.
type Config struct {
	Store     string    // address as for embedded.Open; "": a new SQLite file in a temporary directory
	Start     time.Time // where the clock stands at first; zero: the beginning of 2026, UTC
	Seed      uint64    // decides the order of timers that are due at the same moment; printed when the test fails
	Namespace string    // "": "default"
}

func (cfg Config) withDefaults(tb testing.TB) Config {
	if cfg.Store == "" {
		cfg.Store = "sqlite:" + filepath.Join(tb.TempDir(), "flowfabric.db")
	}
	if cfg.Start.IsZero() {
		cfg.Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return cfg
}

// Env is the engine in a test. Its Client is usable from many goroutines; the methods that turn the clock are for the goroutine of the
// test alone. A call on it that waits for a moment the clock has not reached waits until somebody turns it.
type Env struct {
	// Client does everything in the process that runs. Its commands survive the death of the process: they are done in its successor.
	// Lists and counts settle first: what they read follows the log.
	*flowfabric.Client

	tb     testing.TB
	cfg    Config
	clock  *turned
	family *quiescence.Family
	points crashPoints
	log    logBook
	ending sync.Once

	// done counts what handlers have done. A goroutine that has read it sees what they wrote before: nothing else orders their writes before the
	// return of Settle.
	done atomic.Int64

	stuckAfter time.Duration // real time after which a call that waits for the clock fails the test

	mu      sync.Mutex // held while one process replaces another
	running *process
	workers []*Worker
}

// New opens an environment that is closed at the end of the test. The test then fails if goroutines are left behind or an
// execution is in a state that it cannot leave; a failed test prints the timeline of every unfinished execution. Webhooks may reach this
// host, by http on any port. It accepts at most one Config.
func New(tb testing.TB, cfg ...Config) *Env {
	tb.Helper()
	if len(cfg) > 1 {
		tb.Fatalf("flowfabrictest: %d configurations, at most one", len(cfg))
	}
	var options Config
	if len(cfg) == 1 {
		options = cfg[0]
	}
	startSignalLoop()
	options = options.withDefaults(tb)
	e := &Env{tb: tb, cfg: options, clock: newTurned(options.Start, options.Seed), family: quiescence.New(), stuckAfter: patience}
	e.Client = e.newClient()
	e.mu.Lock()
	e.open()
	e.mu.Unlock()
	tb.Cleanup(e.end)
	return e
}

// startSignalLoop starts the runtime's goroutine for signals here and not in the family, where it would count as a goroutine that
// never becomes idle: a stopping worker listens for signals.
func startSignalLoop() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
}

// Now is the current time of the clock.
func (e *Env) Now() time.Time { return e.clock.Now() }

// Settle returns when nothing can happen without time passing or an external event.
func (e *Env) Settle() {
	e.tb.Helper()
	if err := e.settle(); err != nil {
		e.tb.Fatalf("flowfabrictest: it does not settle: %v", err)
	}
}

func (e *Env) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if err := e.family.Await(ctx); err != nil {
			return err
		}
		e.mu.Lock()
		died := e.running.dead()
		e.mu.Unlock()
		if !died {
			e.done.Load()
			return nil
		}
		e.alive(ctx)
	}
}

// Restart kills the process as kill -9 would, and starts it again on the same store: the engine commits nothing more, the workers
// send nothing more, and their successors have only what was committed.
func (e *Env) Restart() {
	e.tb.Helper()
	e.family.Do(e.alive(context.Background()).die) // so that its goroutines are waited for
	e.alive(context.Background())
	e.Settle()
}

// Close closes the environment before the test ends. Later calls do nothing.
func (e *Env) Close(context.Context) error {
	e.end()
	return nil
}

// end stops everything and checks the invariants.
func (e *Env) end() {
	e.ending.Do(func() {
		err := e.settle()
		if err != nil {
			e.tb.Errorf("flowfabrictest: it does not settle: %v", err)
		} else {
			e.checkInvariants()
		}
		if e.tb.Failed() {
			e.report()
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stop()
		e.checkGoroutines()
	})
}

// checkGoroutines fails the test if a goroutine still runs, or is blocked forever.
func (e *Env) checkGoroutines() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.family.Await(ctx); err != nil {
		e.tb.Errorf("flowfabrictest: at the end of the test: %v", err)
		return
	}
	for _, left := range e.family.Alive() {
		e.tb.Errorf("flowfabrictest: a goroutine is left behind:\n%s", left)
	}
}

// logBook collects the log of engine and workers, for failed tests.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a line.
func (b *logBook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// logger logs into the book, without the host's time.
func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}
