package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

// subject opens stores for the suite and remembers where their databases are.
type subject struct {
	databases sync.Map                // by store
	through   func(url string) string // a pooler; nil: none
}

// opener opens a store at an address, as postgres.Open and migrated.Database do.
type opener func(ctx context.Context, url string, cfg postgres.Config) (*postgres.Store, error)

// open gives a database that is as new. A test finds sessions there that have served others, as those of a pool have.
func (s *subject) open(t *testing.T) store.Store {
	d := cluster.Again(t)
	return s.at(t, d, d.OpenAt)
}

func (s *subject) at(t *testing.T, d *migrated.Database, open opener) store.Store {
	t.Helper()
	url, cfg := d.URL, postgres.Config{PoolSize: 12}
	if s.through != nil {
		url, cfg.DirectURL = s.through(d.URL), d.URL
	}
	opened := opened(t, url, cfg, open)
	s.databases.Store(opened, d)
	return opened
}

// opened is a store that is closed when the test ends.
func opened(t *testing.T, url string, cfg postgres.Config, open opener) *postgres.Store {
	t.Helper()
	s, err := open(t.Context(), url, cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { postgres.CloseStore(t, s) })
	return s
}

func (s *subject) of(t *testing.T, opened store.Store) *migrated.Database {
	t.Helper()
	d, found := s.databases.Load(opened)
	if !found {
		t.Fatal("a store of unknown address")
	}
	return d.(*migrated.Database)
}

func (s *subject) again(t *testing.T, opened store.Store) store.Store {
	d := s.of(t, opened)
	return s.at(t, d, d.OpenAt)
}

// reopen opens the database on sessions of its own, as a process that was started again does.
func (s *subject) reopen(t *testing.T, opened store.Store) store.Store {
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	return s.at(t, s.of(t, opened), postgres.Open)
}

// ownTx begins a transaction of a user of pgx.
func (s *subject) ownTx(t *testing.T, opened store.Store) (any, func() error, func() error) {
	conn, err := pgx.Connect(t.Context(), s.of(t, opened).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx, func() error { return tx.Commit(t.Context()) }, func() error { return tx.Rollback(t.Context()) }
}

func (s *subject) factory() storetest.Factory {
	return storetest.Factory{Open: s.open, OpenAgain: s.again, Reopen: s.reopen, OwnTx: s.ownTx}
}

// failOver is a server of the test's own that falls back to a copy of itself.
func failOver(t *testing.T) storetest.Fallible {
	server, url := pgtest.Fallible(t, nil)
	s := opened(t, url, postgres.Config{PoolSize: 4}, postgres.Open)
	must := func(what func(context.Context) error) {
		t.Helper()
		if err := what(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Fallible{
		Store: s,
		Mark:  func() { must(server.Mark) },
		Fall:  func() store.Store { must(server.FallBack); return s },
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
