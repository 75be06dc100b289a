package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

// startedFor is what this binary does when a test started it as a process of its own; nil: it runs the tests.
var startedFor func() int

func TestMain(m *testing.M) {
	if startedFor != nil {
		os.Exit(startedFor())
	}
	goleak.VerifyTestMain(carefree{m})
}

// carefree runs the tests on a Postgres that syncs nothing: no test here loses power, and a database for each is made and
// dropped in a tenth of the time.
type carefree struct{ tests *testing.M }

func (c carefree) Run() int {
	server, err := pgtest.Start(context.Background(), map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	if err := os.Setenv(pgtest.Variable, server.Socket()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cluster.Around(c.tests).Run()
}

// turned stands for the clock of the test's world: an engine that is given it does nothing until the test turns it.
var turned clock.Clock = clock.NewManual(start)

// No test waits for this to pass: it is how long a call of a test waits, at most.
const patience = 30 * time.Second

// giveUp bounds everything that a test waits for, also on a busy machine. The command that plants bugs sets it, so that a test that waits in vain
// says so.
var giveUp = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("FLOWFABRIC_TEST_GIVE_UP")); err == nil {
		return d
	}
	return 10 * time.Minute
}()

// Who calls in these tests.
var (
	client   = engine.Caller{Principal: "me", Actor: "client"}
	operator = engine.Caller{Principal: "op", Actor: "operator"}
)

// world is an engine on a store of its own. The store's clock stands still until the test turns it. The engine's own loops run
// by the host's clock, so that they do what the store's clock makes due without the test having to know when they look.
type world struct {
	t     *testing.T
	store store.Store
	clock *clock.Manual
	e     *engine.Engine
	cfg   engine.Config
	path  string // SQLite: the file
	url   string // Postgres: the address
	// Postgres: what url is the address of; nil: a database of this test alone.
	database *migrated.Database

	back      atomic.Int64  // how far the store's clock was set back
	ticks     *atomic.Int64 // not nil: the store's clock runs on by a millisecond with every reading
	receivers *receivers    // what engines that are opened send to; nil: they send nothing
	inFlight  int           // requests at a time that endpoints of webhooks get; 0: the default
	unaudited bool          // the test breaks rows on purpose
}

// start is where every store's clock begins.
var start = time.Date(2031, 5, 17, 12, 0, 0, 0, time.UTC)

// onStores runs a test on every store.
func onStores(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	onStoresWith(t, engine.Config{}, f)
}

// onStoresWith is onStores for an engine that is set up in another way.
func onStoresWith(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	onAlone(t, cfg, f)
	if !underRaceDetector { // which looks at the engine, not at a server that it slows down
		onShared(t, cfg, f)
	}
}

// onAlone runs a test on the store that one process has for itself, and on which transactions take turns.
func onAlone(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), path: filepath.Join(t.TempDir(), "engine.db")}
		w.begin(f)
	})
}

// onShared runs a test on the store that several processes can share.
func onShared(t *testing.T, cfg engine.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		database := cluster.Again(t)
		w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), database: database, url: database.URL}
		w.begin(f)
	})
}

func (w *world) begin(f func(t *testing.T, w *world)) {
	w.store = w.openStore()
	w.e = w.openEngine(w.store)
	f(w.t, w)
	if !w.t.Failed() && !w.unaudited {
		w.audit()
	}
}

// openStore opens the database of this world once more; on SQLite only while it is not open.
func (w *world) openStore() store.Store {
	w.t.Helper()
	var s store.Store
	var err error
	// No session ends, and no statement or transaction gives up, because a busy machine lets it or others stand still for some seconds.
	cfg := postgres.Config{Now: w.now, PoolSize: 4, UnsafeDurability: true, IdleLimit: giveUp, Timeout: giveUp}
	switch {
	case w.path != "":
		s, err = sqlite.Open(w.t.Context(), w.path, sqlite.Config{Clock: w.time, UnsafeDurability: true, BusyTimeout: giveUp})
	case w.database != nil:
		s, err = w.database.Open(w.t.Context(), cfg)
	default:
		s, err = postgres.Open(w.t.Context(), w.url, cfg)
	}
	if err != nil {
		w.t.Fatalf("open the store: %v", err)
	}
	closeOnce := sync.OnceFunc(func() { _ = s.Close() })
	w.t.Cleanup(closeOnce)
	return s
}

// beginOn opens a transaction of the test's own. Others may hold what it wants for a moment, as those that update search rows do.
func (w *world) beginOn(s store.Store, want store.Want) (tx store.Tx, loaded *store.Loaded) {
	w.t.Helper()
	eventually(w.t, "the rows are free", func() bool {
		var err error
		tx, loaded, err = s.Begin(w.ctx(), want)
		if store.FaultOf(err) != store.Busy {
			ok(w.t, err)
		}
		return err == nil
	})
	return tx, loaded
}

// openEngine opens an engine as this world's is. It is closed with the test, if it is not before.
func (w *world) openEngine(s store.Store) *engine.Engine {
	w.t.Helper()
	cfg := w.cfg
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case cfg.Clock == turned:
		cfg.Clock = w.clock
	case cfg.PollInterval == 0:
		cfg.PollInterval = 20 * time.Millisecond
	}
	cfg.StoreTimeout = giveUp // a large command takes as long as the machine lets it
	e, err := engine.Open(w.t.Context(), s, cfg, func(e *engine.Engine) {
		if w.receivers != nil {
			w.listening(w.receivers, e)
		}
	})
	if err != nil {
		w.t.Fatalf("open the engine: %v", err)
	}
	w.t.Cleanup(func() { closeEngine(w.t, e) })
	return e
}

func closeEngine(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Errorf("close the engine: %v", err)
	}
}

// another opens a second engine on the same database, as another process would.
func (w *world) another() *engine.Engine {
	w.t.Helper()
	return w.openEngine(w.openStore())
}

// restart closes the engine and opens another on the same store.
func (w *world) restart() {
	w.t.Helper()
	closeEngine(w.t, w.e)
	w.e = w.openEngine(w.store)
}

// time is the store's clock.
func (w *world) time() time.Time {
	now := w.clock.Now().Add(-time.Duration(w.back.Load()))
	if w.ticks != nil {
		now = now.Add(time.Duration(w.ticks.Add(1)) * time.Millisecond)
	}
	return now
}

// now is the store's clock in the engine's form.
func (w *world) now() base.Time { return base.TimeOf(w.time()) }

// setBack sets the store's clock back, as an operator might.
func (w *world) setBack(d base.Millis) { w.back.Add(d * int64(time.Millisecond)) }

// turn moves the store's clock forward.
func (w *world) turn(d base.Millis) {
	w.clock.TurnTo(w.clock.Now().Add(time.Duration(d) * time.Millisecond))
}

// pass moves the store's clock forward far enough that the sweep has seen everything due within d: an entry of the due index
// may be late by up to 50 ms (L19).
func (w *world) pass(d base.Millis) {
	w.turn(d)
	if rest := int64(w.now()) % 50; rest != 0 {
		w.turn(50 - rest)
	}
}

// turnTo moves the store's clock forward to a moment.
func (w *world) turnTo(at base.Time) { w.turn(at.Sub(w.now())) }

// ctx ends when the test does, or when it has waited too long.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), giveUp)
	w.t.Cleanup(cancel)
	return ctx
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(giveUp)
	defer over.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// turning is eventually while the clock goes on, no further than tests have leases for: how often a condition is looked at depends on how
// busy the machine is, and what happens must not.
func (w *world) turning(step base.Millis, what string, cond func() bool) {
	w.t.Helper()
	until := w.now().Add(20_000)
	eventually(w.t, what, func() bool {
		if w.now() < until {
			w.turn(step)
		}
		return cond()
	})
}
