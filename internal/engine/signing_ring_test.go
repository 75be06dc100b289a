package engine_test

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	rooms "github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ringOf is the ring of a transaction of its own, and the moment of that.
func ringOf(ctx context.Context, e *engine.Engine) (*keyring.Ring, base.Time, error) {
	r := &ringLook{}
	err := e.Do(ctx, r)
	return r.ring, r.now, err
}

// unloadedRing is what a transaction says of a ring whose keys it has not loaded.
func unloadedRing(ctx context.Context, e *engine.Engine) error {
	return e.Do(ctx, &ringLook{forgets: true})
}

// ringLook is Ring on its way.
type ringLook struct {
	forgets bool // to name the rows that it needs
	ring    *keyring.Ring
	now     base.Time
}

func (*ringLook) Name() string { return "look_at_ring" }

func (r *ringLook) Want(w *store.Want, _ bool) {
	if !r.forgets {
		rooms.WantKeys(w)
	}
}

func (r *ringLook) Decide(u *txn.Tx) (err error) {
	r.now = u.Now
	r.ring, err = rooms.Ring(u)
	return err
}
