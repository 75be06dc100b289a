package engine_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Commands share a transaction when they queue while another is under way. Here a test sees to it that they do.

// hold lets the next call that wants something that fits wait there: reached is closed when one does, and goOn lets that one go.
func (h *hook) hold(t *testing.T, fit func(want store.Want) bool) (reached <-chan struct{}, goOn func()) {
	comes, open := make(chan struct{}), make(chan struct{})
	h.set(fit, func() {
		close(comes)
		<-open
	})
	goOn = sync.OnceFunc(func() { close(open) })
	t.Cleanup(goOn) // an engine does not close while its work is held
	return comes, goOn
}

// gathered acts while a command holds the committer: what queues meanwhile goes into the next transaction. That command is about to lock a
// row that no other call knows of, so only it is held, and not one of the sweep's transactions, many of which want no rows at all. It has
// no lock yet: what takes no part in the queue is not in its way.
func (w *world) gathered(b *between, act func()) {
	w.t.Helper()
	gate := w.submit(core.Submission{Lane: "gate"})
	stands, goOn := b.beforeBegin.hold(w.t, func(want store.Want) bool { return slices.Contains(want.Executions, gate.UUID) })
	over := make(chan error, 1)
	go func() {
		_, err := w.e.Hold(w.ctx(), operator, gate, engine.Operator{})
		over <- err
	}()
	select {
	case <-stands:
	case err := <-over:
		w.t.Fatalf("nothing was held: %v", err)
	}
	act()
	goOn()
	ok(w.t, <-over)
}

// queued starts a command while the committer is held, and waits until it queues or is over: some are answered before.
func (w *world) queued(all *sync.WaitGroup, command func()) {
	w.t.Helper()
	before, over := gauge(w.t, w.e, metrics.CommitQueueDepth), make(chan struct{})
	all.Go(func() {
		defer close(over)
		command()
	})
	eventually(w.t, "it queues", func() bool {
		select {
		case <-over:
			return true
		default:
			return gauge(w.t, w.e, metrics.CommitQueueDepth) > before
		}
	})
}

// batched runs commands in one transaction, in this order.
func (w *world) batched(b *between, commands ...func()) {
	w.t.Helper()
	var all sync.WaitGroup
	w.gathered(b, func() {
		for _, command := range commands {
			w.queued(&all, command)
		}
	})
	all.Wait()
}
