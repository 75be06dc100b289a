package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/store"
)

// Open starts an engine with all its rooms on a migrated store. The store outlives it. Codes of the signing keys: seed_conflict,
// master_key_required, master_key_mismatch.
func Open(ctx context.Context, st store.Store, cfg Config) (*Engine, error) {
	e, err := New(ctx, st, cfg)
	if err != nil {
		return nil, err
	}
	e.register()
	if err := e.Start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}
