package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
)

// fallible is a world whose database can lose commits.
type fallible struct {
	*world
	mark func() // notes what the database holds
	fall func() // sets it back to that, as a failover to a standby that was behind
}

// onFallible runs a test on every store, with a database of its own that can lose commits.
func onFallible(t *testing.T, cfg engine.Config, f func(t *testing.T, w *fallible)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), path: filepath.Join(t.TempDir(), "engine.db")}
		file := &swapped{}
		file.put(w.openStore())
		w.store = file
		w.e = w.openEngine(file)
		kept := filepath.Join(t.TempDir(), "mark")
		f(t, &fallible{world: w, mark: func() { w.copyFile(w.path, kept) }, fall: func() {
			ok(t, file.Close())
			w.copyFile(kept, w.path)
			file.put(w.openStore())
		}})
		if !t.Failed() {
			w.audit()
		}
	})
	if underRaceDetector {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server, url := pgtest.Fallible(t, map[string]string{"fsync": "off", "full_page_writes": "off", "shared_buffers": "16MB"})
		w := &world{t: t, cfg: cfg, clock: clock.NewManual(start), url: url}
		w.begin(func(t *testing.T, w *world) {
			f(t, &fallible{
				world: w, mark: func() { ok(t, server.Mark(w.ctx())) }, fall: func() { ok(t, server.FallBack(w.ctx())) },
			})
		})
	})
}

// copyFile copies a SQLite database that is not written to.
func (w *world) copyFile(from, to string) {
	w.t.Helper()
	for _, part := range []string{"", "-wal"} {
		data, err := os.ReadFile(from + part)
		ok(w.t, err)
		ok(w.t, os.WriteFile(to+part, data, 0o600))
	}
}

// insist repeats a call that does not know how it went, as our clients do.
func insist[T any](t *testing.T, call func() (T, error)) (T, error) {
	t.Helper()
	for {
		answer, err := call()
		switch base.CodeOf(err) {
		case base.CodeTimeout, base.CodeStoreUnavailable:
		default:
			return answer, err
		}
	}
}

// swapped is a store whose file may be another one from one call to the next: what a SQLite cannot do by itself.
type swapped struct{ now atomic.Pointer[store.Store] }

func (s *swapped) Await(ctx context.Context, lock store.Lock, patience time.Duration) error {
	return s.at().Await(ctx, lock, patience)
}

func (s *swapped) put(st store.Store) { s.now.Store(&st) }
func (s *swapped) at() store.Store    { return *s.now.Load() }

func (s *swapped) Info() store.Info                           { return s.at().Info() }
func (s *swapped) Now(ctx context.Context) (base.Time, error) { return s.at().Now(ctx) }
func (s *swapped) Project(ctx context.Context, p store.Projection) error {
	return s.at().Project(ctx, p)
}

func (s *swapped) Index(ctx context.Context, part store.IndexPart) error {
	return s.at().Index(ctx, part)
}

func (s *swapped) LogOf(ctx context.Context, ask store.LogOf) ([]store.Commit, int64, error) {
	return s.at().LogOf(ctx, ask)
}
func (s *swapped) Notify(ctx context.Context, h store.Hint) error { return s.at().Notify(ctx, h) }
func (s *swapped) Maintain(ctx context.Context, before base.Time) error {
	return s.at().Maintain(ctx, before)
}
func (s *swapped) Close() error { return s.at().Close() }

func (s *swapped) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	return s.at().Begin(ctx, want)
}

func (s *swapped) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	return s.at().Read(ctx, want)
}

func (s *swapped) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	return s.at().Dictionary(ctx)
}

func (s *swapped) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (store.Registered, error) {
	return s.at().Register(ctx, lanes, classes)
}

func (s *swapped) UnusedClasses(ctx context.Context) ([]int32, error) {
	return s.at().UnusedClasses(ctx)
}

func (s *swapped) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	return s.at().TakeDue(ctx, limit, hide, except...)
}

func (s *swapped) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) ([]store.Timer, error) {
	return s.at().TimersAhead(ctx, from, to, after, limit)
}

func (s *swapped) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	return s.at().HideTimers(ctx, timers, hide)
}

func (s *swapped) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	return s.at().Poll(ctx, ask)
}

func (s *swapped) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	return s.at().Log(ctx, after, limit)
}

func (s *swapped) Find(ctx context.Context, q store.Query) ([]store.Hit, error) {
	return s.at().Find(ctx, q)
}

func (s *swapped) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	return s.at().Count(ctx, q, limit)
}

func (s *swapped) FirstOfLanes(ctx context.Context, q store.Query, each int) ([]store.LaneHit, error) {
	return s.at().FirstOfLanes(ctx, q, each)
}

func (s *swapped) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) ([]store.Group, error) {
	return s.at().CountBy(ctx, q, by, limit)
}

// Listen hears nothing: no other process has the file open.
func (s *swapped) Listen(ctx context.Context, _ func(store.Hint)) error {
	<-ctx.Done()
	return ctx.Err()
}
