package work

import (
	"context"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// mostDrains bounds how many instances are cached.
const mostDrains = 10_000

// drains caches which instances are to drain, so that answers to renewals can say so (U66) without a read each. What is cached of an instance is
// dropped when it changes: at once in this process, and through the log in the others.
type drains struct {
	mu      sync.Mutex
	known   map[string]bool
	changes int // counts what was dropped: an older answer of the store is not cached
}

func newDrains() *drains { return &drains{known: map[string]bool{}} }

func (d *drains) Forget(instances ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	for _, instance := range instances {
		delete(d.known, instance)
	}
}

func (d *drains) ForgetAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	clear(d.known)
}

// lookUp returns what is known, and which instances are not.
func (d *drains) lookUp(items []txn.RenewItem) (known map[string]bool, unknown []store.DocRef, changes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known = make(map[string]bool, 1)
	for i := range items {
		instance := items[i].Lease.InstanceID
		if _, seen := known[instance]; seen || items[i].Err != nil {
			continue
		}
		draining, ok := d.known[instance]
		if known[instance] = draining; !ok {
			unknown = append(unknown, txn.WorkerRef(instance))
		}
	}
	return known, unknown, d.changes
}

func (d *drains) remember(found map[string]bool, changes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes != changes {
		return
	}
	if len(d.known)+len(found) > mostDrains {
		clear(d.known)
	}
	for instance, draining := range found {
		d.known[instance] = draining
	}
}

// attachDrains fills in whether the instances that hold the renewed leases are to drain. If that cannot be read the renewal still succeeds, and the
// next one reports it.
func (e *Work) attachDrains(ctx context.Context, items []txn.RenewItem) {
	known, unknown, changes := e.Drains.lookUp(items)
	if len(unknown) > 0 {
		loaded, err := e.Store.Read(ctx, store.Want{Docs: unknown})
		if err != nil {
			return
		}
		found := make(map[string]bool, len(unknown))
		for _, ref := range unknown {
			var w *core.Worker
			if doc, ok := loaded.Docs[ref]; ok {
				w, _ = txn.DecodeWorker(&doc)
			}
			found[ref.Key] = w != nil && w.Draining
			known[ref.Key] = found[ref.Key]
		}
		e.Drains.remember(found, changes)
	}
	for i := range items {
		items[i].Drain = items[i].Err == nil && known[items[i].Lease.InstanceID]
	}
}
