package limits

import (
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// slotsKept bounds how many keys a process caches.
const slotsKept = 16_384

// slotsKnown caches how many slots of each key are in use: as a pick last saw it under its lock, and as commits of this process have changed it
// since. Other processes change it too, so the cache alone decides nothing. Work is admitted on these numbers, by the same rule (S44), and the
// store checks that there is room when it takes the slots, which locks them (S47). If there is none, nothing is written, and a pick decides under
// the lock. Nothing is refused on these numbers, and a key that is not cached is locked first.
type slotsKnown struct {
	mu    sync.Mutex
	inUse map[string]int64
}

// learn updates the cache with what a committed transaction has seen and changed.
func (s *slotsKnown) learn(u *txn.Tx) {
	if len(u.Locked)+len(u.Changes.Counters) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil || len(s.inUse) > slotsKept {
		s.inUse = map[string]int64{}
	}
	for key := range u.Locked {
		if strings.HasPrefix(key, "slots:") {
			s.inUse[key] = u.Counters[key]
		}
	}
	for key, n := range u.Changes.Counters {
		if used, known := s.inUse[key]; known && !u.Locked[key] {
			s.inUse[key] = max(used+n, 0)
		}
	}
}

// Decides reports whether an execution can be admitted with the cache: it needs nothing but slots, and their use is cached. The transaction then uses
// the cached numbers.
func (s *slotsKnown) Decides(u *txn.Tx, x *core.Execution) bool {
	if chargesAny(u.Dict, x) {
		return false
	}
	for _, use := range x.Policy.Quotas {
		quota := RulesOf(u.Dict).Quotas[use.Quota]
		if quota == nil || quota.Settings.RateLimit > 0 || quota.Settings.ConcurrencyLimit > 0 && !s.usesCached(u, use.SlotsKey()) {
			return false
		}
	}
	return true
}

// chargesAny reports whether a budget may apply to the execution.
func chargesAny(d *txn.Dictionary, x *core.Execution) bool {
	return len(x.Budgets) > 0 || len(RulesOf(d).lost) > 0 || RulesOf(d).registry.MayReach(x.Class) || len(NeedsOf(d, x.Class).NamedBudgets()) > 0
}

// usesCached takes the cached number of slots in use into the transaction. It reports whether there is one and the transaction has not locked the
// counter.
func (s *slotsKnown) usesCached(u *txn.Tx, key string) bool {
	if _, known := partOf(u).assumed[key]; known {
		return true
	}
	if u.Locked[key] {
		return false
	}
	n, known := s.of(key)
	if known {
		txn.SetIn(&partOf(u).assumed, key, n)
	}
	return known
}

// forgetAll drops everything.
func (s *slotsKnown) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse = nil
}

// CachedSlots returns the cached number of slots in use that the transaction uses, if it uses one.
func CachedSlots(u *txn.Tx, key string) (n int64, assumed bool) {
	if part := txn.Known[limitPart](u, limitSlot); part != nil {
		n, assumed = part.assumed[key]
	}
	return n, assumed
}

// DropCachedSlots is called for keys whose counters are locked now: the cached numbers are not used any more.
func DropCachedSlots(u *txn.Tx, keys []string) {
	if part := txn.Known[limitPart](u, limitSlot); part != nil {
		for _, key := range keys {
			delete(part.assumed, key)
		}
	}
}

// UseCachedSlots puts the cached numbers into the transaction's counters, less what the transaction itself has given back.
func UseCachedSlots(u *txn.Tx) {
	part := txn.Known[limitPart](u, limitSlot)
	if part == nil {
		return
	}
	for key, n := range part.assumed {
		txn.SetIn(&u.Counters, key, n)
	}
	for _, ent := range u.Order {
		for _, key := range ent.Holds {
			if _, assumed := part.assumed[key]; assumed && !txn.Contains(ent.Exec.Holds, key) {
				u.Counters[key] = max(u.Counters[key]-1, 0)
			}
		}
	}
}

// of returns how many slots of a key are in use, if that is cached.
func (s *slotsKnown) of(key string) (n int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known = s.inUse[key]
	return n, known
}

// Forget drops keys: their numbers may have been wrong.
func (s *slotsKnown) Forget(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.inUse, key)
	}
}
