package postgres

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

// cluster is the server of these tests; its databases are migrated.
var cluster = pgtest.New(func(ctx context.Context, url string) error {
	s, err := Open(ctx, url, Config{})
	if err != nil {
		return err
	}
	return s.Close()
})

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// open opens a store on a database of its own.
func open(t testing.TB, cfg Config) (*Store, string) {
	t.Helper()
	url := cluster.Database(t)
	return openAt(t, url, cfg), url
}

// openAt opens a store on this database.
func openAt(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// closeStore closes a store, which waits for all its connections. One that a failed test has not given back must not keep the others of the package
// from telling what they found.
func closeStore(t testing.TB, s *Store) {
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
