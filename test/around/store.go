// Package around puts a test's own function around every call of a store. It knows nothing of what the calls are about.
package around

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Around runs a call of a store, or does something else in its place. writes: the call changes the database.
type Around func(call string, writes bool, run func() error) error

// Store is a store whose calls go through Around, those of its transactions too. Calls that merely wait (Await, Listen) and those that only
// operators cause do not.
type Store struct {
	store.Store
	Around Around
}

// Now goes through Around.
func (s *Store) Now(ctx context.Context) (now base.Time, err error) {
	err = s.Around("now", false, func() (err error) { now, err = s.Store.Now(ctx); return err })
	return now, err
}

// Begin goes through Around.
func (s *Store) Begin(ctx context.Context, want store.Want) (tx store.Tx, loaded *store.Loaded, err error) {
	err = s.Around("begin", false, func() (err error) { tx, loaded, err = s.Store.Begin(ctx, want); return err })
	if err != nil {
		if tx != nil {
			tx.Rollback(ctx)
		}
		return nil, nil, err
	}
	return &transaction{tx, s.Around}, loaded, nil
}

// Read goes through Around.
func (s *Store) Read(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = s.Around("read", false, func() (err error) { loaded, err = s.Store.Read(ctx, want); return err })
	return loaded, err
}

// Dictionary goes through Around.
func (s *Store) Dictionary(ctx context.Context) (d *store.Dictionary, err error) {
	err = s.Around("dictionary", false, func() (err error) { d, err = s.Store.Dictionary(ctx); return err })
	return d, err
}

// Register goes through Around.
func (s *Store) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (known store.Registered, err error) {
	err = s.Around("register", true, func() (err error) { known, err = s.Store.Register(ctx, lanes, classes); return err })
	return known, err
}

// TakeDue goes through Around.
func (s *Store) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) (timers []store.Timer, err error) {
	err = s.Around("take due", true, func() (err error) { timers, err = s.Store.TakeDue(ctx, limit, hide, except...); return err })
	return timers, err
}

// HideTimers goes through Around.
func (s *Store) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	return s.Around("hide timers", true, func() error { return s.Store.HideTimers(ctx, timers, hide) })
}

// Poll goes through Around.
func (s *Store) Poll(ctx context.Context, ask store.PollAsk) (answer store.PollAnswer, err error) {
	err = s.Around("poll", false, func() (err error) { answer, err = s.Store.Poll(ctx, ask); return err })
	return answer, err
}

// Log goes through Around.
func (s *Store) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = s.Around("log", false, func() (err error) { commits, err = s.Store.Log(ctx, after, limit); return err })
	return commits, err
}

// Project goes through Around.
func (s *Store) Project(ctx context.Context, p store.Projection) error {
	return s.Around("project", true, func() error { return s.Store.Project(ctx, p) })
}

// Index goes through Around.
func (s *Store) Index(ctx context.Context, part store.IndexPart) error {
	return s.Around("index", true, func() error { return s.Store.Index(ctx, part) })
}

// LogOf goes through Around.
func (s *Store) LogOf(ctx context.Context, ask store.LogOf) (commits []store.Commit, end int64, err error) {
	err = s.Around("log of", false, func() (err error) { commits, end, err = s.Store.LogOf(ctx, ask); return err })
	return commits, end, err
}

// Find goes through Around.
func (s *Store) Find(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = s.Around("find", false, func() (err error) { hits, err = s.Store.Find(ctx, q); return err })
	return hits, err
}

// Count goes through Around.
func (s *Store) Count(ctx context.Context, q store.Query, limit int) (n int, err error) {
	err = s.Around("count", false, func() (err error) { n, err = s.Store.Count(ctx, q, limit); return err })
	return n, err
}

// Notify goes through Around.
func (s *Store) Notify(ctx context.Context, hint store.Hint) error {
	return s.Around("notify", true, func() error { return s.Store.Notify(ctx, hint) })
}

// transaction is one of a Store.
type transaction struct {
	store.Tx
	around Around
}

// Load goes through Around.
func (t *transaction) Load(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = t.around("load", false, func() (err error) { loaded, err = t.Tx.Load(ctx, want); return err })
	return loaded, err
}

// Commit ends the transaction whatever happens, as the contract says.
func (t *transaction) Commit(ctx context.Context, ch *store.Changes) error {
	defer t.Tx.Rollback(ctx)
	return t.around("commit", true, func() error { return t.Tx.Commit(ctx, ch) })
}
