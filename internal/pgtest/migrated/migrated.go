// Package migrated gives tests databases of a private Postgres that have FlowFabric's tables already. It starts nothing itself and
// knows no rule.
package migrated

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// New is a cluster whose databases have the newest schema.
func New() *pgtest.Cluster {
	return pgtest.New(func(ctx context.Context, url string) error {
		s, err := postgres.Open(ctx, url, postgres.Config{UnsafeDurability: true})
		if err != nil {
			return err
		}
		return s.Close()
	})
}
