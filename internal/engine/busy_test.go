package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// contended is a store whose locks others hold: a transaction that waits for one gets it at its fourth try.
type contended struct {
	store.Store
	on    atomic.Bool
	tries atomic.Int64
	locks atomic.Pointer[[]base.UUID] // executions that the last of them locks first
}

func (c *contended) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	if want.Patient {
		c.locks.Store(&want.Executions)
	}
	if c.on.Load() && (!want.Patient || c.tries.Add(1) < 4) {
		return nil, nil, &store.Fault{Kind: store.Busy, Err: errors.New("others have it")}
	}
	return c.Store.Begin(ctx, want)
}

func TestS73_a_command_outlasts_others_that_want_the_same_lock(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		c := &contended{Store: w.store}
		w.e = w.openEngine(c)
		task := w.started(core.Submission{})
		c.on.Store(true)
		w.complete(task)
		c.on.Store(false)
		same(t, "tries", c.tries.Load(), int64(4))
		same(t, "its execution is locked first, not behind what else it needs", *c.locks.Load(), []base.UUID{given(task).UUID})
		w.is(given(task), core.Succeeded, core.Completed)
	})
}

func TestL82_a_submit_waits_for_a_lock_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		c := &contended{Store: w.store}
		w.e = w.openEngine(c)
		w.started(core.Submission{})
		c.on.Store(true)
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k"})
		c.on.Store(false)
		refused(t, err, base.CodeIdempotencyInProgress)
		same(t, "tries", c.tries.Load(), int64(1))
	})
}
