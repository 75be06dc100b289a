package postgres

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

// Where the tests get databases from, which are migrated. TestMain sets them, which is in the external package of tests: package migrated
// imports this one.
var (
	cluster *pgtest.Cluster
	asNew   Opener
)

// Opener opens a store on a database that is as new, and returns its address. Both may have been another test's.
type Opener func(t testing.TB, cfg Config) (*Store, string)

// UseDatabases says where the tests get databases from.
func UseDatabases(c *pgtest.Cluster, o Opener) { cluster, asNew = c, o }

// open opens a store on a database that is as new.
func open(t testing.TB, cfg Config) (*Store, string) {
	t.Helper()
	s, url := asNew(t, cfg)
	t.Cleanup(func() { CloseStore(t, s) })
	return s, url
}

// openNew opens a store on a database that was not used before, for tests that look at statistics, end sessions or change the schema.
func openNew(t testing.TB, cfg Config) (*Store, string) {
	t.Helper()
	url := cluster.Database(t)
	return openAt(t, url, cfg), url
}

// openAt opens a store on this database.
func openAt(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	if cfg.IdleLimit == 0 { // a machine that stands still for seconds must not end the sessions of a test
		cfg.IdleLimit = 10 * time.Minute
	}
	s, err := Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { CloseStore(t, s) })
	return s
}

// CloseStore closes a store, which waits for all its connections. One that a failed test has not given back must not keep the others of the package
// from telling what they found.
func CloseStore(t testing.TB, s *Store) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.Close()
	}()
	if !t.Failed() {
		<-closed
		return
	}
	bound := time.NewTimer(time.Minute)
	defer bound.Stop()
	select {
	case <-closed:
	case <-bound.C:
		t.Error("the test has not given all connections of its store back")
	}
}
