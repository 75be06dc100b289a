package postgres

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

// addresses remembers the database of each store that the suite opens.
type addresses struct{ urls sync.Map }

func (a *addresses) open(t *testing.T) store.Store {
	s, url := open(t, Config{PoolSize: 12})
	a.urls.Store(s, url)
	return s
}

func (a *addresses) again(t *testing.T, s store.Store) store.Store {
	url := a.of(t, s)
	other := openAt(t, url, Config{PoolSize: 12})
	a.urls.Store(other, url)
	return other
}

func (a *addresses) of(t *testing.T, s store.Store) string {
	t.Helper()
	url, found := a.urls.Load(s)
	if !found {
		t.Fatal("a store of unknown address")
	}
	return url.(string)
}

func (a *addresses) reopen(t *testing.T, s store.Store) store.Store {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return a.again(t, s)
}

// ownTx begins a transaction of a user of pgx.
func (a *addresses) ownTx(t *testing.T, s store.Store) (any, func() error, func() error) {
	conn, err := pgx.Connect(t.Context(), a.of(t, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx, func() error { return tx.Commit(t.Context()) }, func() error { return tx.Rollback(t.Context()) }
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var a addresses
	storetest.Run(t, storetest.Factory{Open: a.open, OpenAgain: a.again, Reopen: a.reopen, OwnTx: a.ownTx})
}
