package postgres

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

// subject opens stores for the suite and remembers where their databases are.
type subject struct {
	urls    sync.Map
	through func(url string) string // a pooler; nil: none
}

func (s *subject) config(url string) (string, Config) {
	cfg := Config{PoolSize: 12}
	if s.through != nil {
		cfg.DirectURL, url = url, s.through(url)
	}
	return url, cfg
}

func (s *subject) open(t *testing.T) store.Store { return s.at(t, cluster.Database(t)) }

func (s *subject) at(t *testing.T, direct string) store.Store {
	url, cfg := s.config(direct)
	opened := openAt(t, url, cfg)
	s.urls.Store(opened, direct)
	return opened
}

func (s *subject) of(t *testing.T, opened store.Store) string {
	t.Helper()
	url, found := s.urls.Load(opened)
	if !found {
		t.Fatal("a store of unknown address")
	}
	return url.(string)
}

func (s *subject) again(t *testing.T, opened store.Store) store.Store {
	return s.at(t, s.of(t, opened))
}

func (s *subject) reopen(t *testing.T, opened store.Store) store.Store {
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	return s.again(t, opened)
}

// ownTx begins a transaction of a user of pgx.
func (s *subject) ownTx(t *testing.T, opened store.Store) (any, func() error, func() error) {
	tx := beginAt(t, s.of(t, opened))
	return tx, func() error { return tx.Commit(t.Context()) }, func() error { return tx.Rollback(t.Context()) }
}

func (s *subject) factory() storetest.Factory {
	return storetest.Factory{Open: s.open, OpenAgain: s.again, Reopen: s.reopen, OwnTx: s.ownTx}
}

// failOver is a server of the test's own that falls back to a copy of itself.
func failOver(t *testing.T) storetest.Fallible {
	server, url := pgtest.Fallible(t, nil)
	opened := openAt(t, url, Config{PoolSize: 4})
	must := func(what func(context.Context) error) {
		t.Helper()
		if err := what(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Fallible{
		Store: opened,
		Mark:  func() { must(server.Mark) },
		Fall:  func() store.Store { must(server.FallBack); return opened },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	factory := (&subject{}).factory()
	factory.FailOver = failOver
	storetest.Run(t, factory)
}

func TestConformance_behind_a_pooler_in_transaction_mode(t *testing.T) {
	t.Parallel()
	s := &subject{through: cluster.Pooler(t)}
	t.Run("pooled", func(t *testing.T) { storetest.Run(t, s.factory()) })
}

// connectAt opens a connection that belongs to the test.
func connectAt(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func beginAt(t testing.TB, url string) pgx.Tx {
	t.Helper()
	tx, err := connectAt(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// execer is a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// execute runs a statement that must succeed.
func execute(t testing.TB, conn execer, sql string, values ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, values...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
