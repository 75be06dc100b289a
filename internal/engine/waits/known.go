package waits

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// maxKnownWaitpoints is how many waitpoints a process remembers.
const maxKnownWaitpoints = 4096

// knownWaitpoints caches the waitpoints whose tokens this process has shown last. A token that is valid according to the cache needs no read before
// the transaction, which checks it again with what is stored. Nothing is refused because of the cache.
type knownWaitpoints struct {
	mu    sync.Mutex
	of    map[base.UUID]keyring.WaitpointFields
	order []base.UUID // a ring of those that are remembered
	next  int
}

// add remembers a waitpoint in place of the one that is remembered longest.
func (k *knownWaitpoints) add(w *core.Waitpoint) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = make(map[base.UUID]keyring.WaitpointFields)
	}
	if _, known := k.of[w.ID]; !known {
		if len(k.order) < maxKnownWaitpoints {
			k.order = append(k.order, w.ID)
		} else {
			delete(k.of, k.order[k.next])
			k.order[k.next] = w.ID
			k.next = (k.next + 1) % maxKnownWaitpoints
		}
	}
	k.of[w.ID] = w.TokenFields()
}

func (k *knownWaitpoints) forgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of, k.order, k.next = nil, nil, 0
}

func (k *knownWaitpoints) get(id base.UUID) (keyring.WaitpointFields, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fields, ok := k.of[id]
	return fields, ok
}

// proved returns the execution of the waitpoint if the token is valid according to the cache; zero: the store must be read.
func (e *Waits) proved(waitpoint base.UUID, token keyring.Token) base.ID {
	fields, known := e.known.get(waitpoint)
	ring := e.Signing.Last()
	if !known || ring == nil {
		return base.ID{}
	}
	if _, err := ring.Verify(e.Sweep.StoreNow(), token, fields); err != nil {
		return base.ID{}
	}
	return fields.ExecutionID
}
