package postgres

import (
	"context"
	"testing"

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
	t.Cleanup(func() { _ = s.Close() })
	return s
}
