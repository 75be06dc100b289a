package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// StoreState is the state of the store as its calls have shown it: "ok", or the code of what is wrong.
type StoreState string

// The states of a store that answers.
const (
	StoreOK      StoreState = "ok"
	StoreFull               = StoreState(base.CodeStoreFull)  // it has no room: nothing can be written
	StoreDamaged            = StoreState(base.CodeCorruption) // parts of it cannot be read
)

// health records what is wrong with the store. That it does not answer is not recorded: the next call finds out.
type health struct {
	full    atomic.Bool // looked at with every commit
	Damaged atomic.Bool

	mu     sync.Mutex
	failed time.Time // when it was last found full
	tried  time.Time // when it was last tried whether there is room again
}

const (
	probeEvery = time.Second     // a full store is asked to write something no more often
	probeSize  = 256 << 10       // bytes that a probe writes: where a small change has room a large one may have none
	roomAgain  = 5 * time.Second // no change has failed for so long, and one has succeeded: there is room again
)

// Failed counts a failed call of the store, and records what it shows about the store. It returns the error.
func (e *Engine) Failed(err error) error {
	var fault *store.Fault
	if errors.As(err, &fault) {
		switch base.CodeOf(err) {
		case base.CodeStoreFull:
			e.foundFull(err)
		case base.CodeCorruption:
			e.Health.Damaged.Store(true)
			e.QuietLog.Error("the store is damaged: flowfabric doctor --integrity tells where", "error", err)
		}
	}
	return e.Meter.failed(err)
}

func (e *Engine) foundFull(err error) {
	e.Health.mu.Lock()
	defer e.Health.mu.Unlock()
	e.Health.failed = e.Cfg.Clock.Now()
	if !e.Health.full.Swap(true) {
		e.Cfg.Logger.Error("the store is full: nothing can be written until there is room", "error", err)
	}
}

// wrote records that the store has accepted a change.
func (e *Engine) wrote() {
	if e.Health.full.Load() {
		e.hasRoom(roomAgain)
	}
}

// hasRoom records that a full store has room again, unless it was found full within the time given.
func (e *Engine) hasRoom(quiet time.Duration) {
	e.Health.mu.Lock()
	defer e.Health.mu.Unlock()
	if e.Cfg.Clock.Now().Sub(e.Health.failed) >= quiet && e.Health.full.Swap(false) {
		e.Cfg.Logger.Info("the store has room again: changes are written")
	}
}

// StoreState returns the state of the store. While it is full, a write is tried now and then: a server that is not ready gets no requests, so
// nothing else would find out that there is room again.
func (e *Engine) StoreState(ctx context.Context) StoreState {
	if e.Health.full.Load() && e.mayProbe() {
		e.probeRoom(ctx)
	}
	switch {
	case e.Health.full.Load():
		return StoreFull
	case e.Health.Damaged.Load():
		return StoreDamaged
	default:
		return StoreOK
	}
}

func (e *Engine) mayProbe() bool {
	e.Health.mu.Lock()
	defer e.Health.mu.Unlock()
	now := e.Cfg.Clock.Now()
	if !e.Health.tried.IsZero() && now.Sub(e.Health.tried) < probeEvery {
		return false
	}
	e.Health.tried = now
	return true
}

// probeRoom writes a record and removes it.
func (e *Engine) probeRoom(ctx context.Context) {
	ref := store.DocRef{Kind: docProbe}
	for _, ch := range []*store.Changes{
		{PutDocs: []store.Doc{{DocRef: ref, Body: []byte("{}"), Data: make([]byte, probeSize)}}},
		{DropDocs: []store.DocRef{ref}},
	} {
		tx, _, err := e.Store.Begin(ctx, store.Want{})
		if err == nil {
			err = tx.Commit(ctx, ch)
		}
		if err != nil {
			return
		}
	}
	e.hasRoom(0)
}

// waitTries is how often the store is asked for waits: leases hang on the answer that are given already.
const waitTries = 8

// Insist gives a read some tries. What it answers in the end a caller may see.
func (e *Engine) Insist(ctx context.Context, read func() error) error {
	for try := 1; ; try++ {
		err := read()
		if err == nil {
			return nil
		}
		var refusal *base.Error
		if errors.As(err, &refusal) || try == waitTries || ctx.Err() != nil || e.Stopping() {
			return PublicFault(err)
		}
		e.Pause(try)
	}
}
