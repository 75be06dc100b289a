package claims

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// forgetSlots drops what is cached of the slots that a failed hand-over or pick has used.
func (p *picker) forgetSlots(k *pick) {
	for _, tasks := range k.given {
		for _, t := range tasks {
			p.e.Slots.Forget(t.ent.Exec.Holds)
		}
	}
}

// assumeRoom adds the assumption, checked by the commit, that the slots which were given are free.
func assumeRoom(u *txn.Tx, tasks []grantedTask) {
	for _, t := range tasks {
		if !limits.Limits(u, t.ent.Exec) {
			continue
		}
		for key, most := range t.ent.Exec.SlotBounds(limits.Room(u)) {
			if _, assumed := limits.CachedSlots(u, key); assumed {
				txn.SetIn(&u.Changes.AssumeCounters, key, most)
			}
		}
	}
}

// waitsFor reports whether work is known to wait for one of the keys. The lock is held.
func (p *picker) waitsFor(needs *core.Needs) bool {
	if needs == nil || len(p.full) == 0 {
		return false
	}
	for _, use := range needs.Quotas {
		if len(p.full[use.SlotsKey()])+len(p.full[use.RateKey()]) > 0 {
			return true
		}
	}
	return false
}
