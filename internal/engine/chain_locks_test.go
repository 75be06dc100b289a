package engine_test

import (
	"context"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/store"
)

// chainLocks counts the trips that lock docs behind everything else.
type chainLocks struct {
	store.Store
	loads atomic.Int64
}

func (c *chainLocks) count() int { return int(c.loads.Load()) }

func (c *chainLocks) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := c.Store.Begin(ctx, want)
	if err != nil {
		return nil, nil, err
	}
	return chainLockTx{tx, c}, loaded, nil
}

type chainLockTx struct {
	store.Tx
	c *chainLocks
}

func (t chainLockTx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if want.LockDocs {
		t.c.loads.Add(1)
	}
	return t.Tx.Load(ctx, want)
}
