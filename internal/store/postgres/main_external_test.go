package postgres_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// cluster is the server of all tests of the package.
var cluster = migrated.New()

func TestMain(m *testing.M) {
	postgres.UseDatabases(cluster.Cluster, asNew)
	goleak.VerifyTestMain(cluster.Around(m))
}

func asNew(t testing.TB, cfg postgres.Config) (*postgres.Store, string) {
	t.Helper()
	d := cluster.Again(t)
	s, err := d.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s, d.URL
}
