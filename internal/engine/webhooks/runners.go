package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// What a process does at a time, whatever there is to do. Endpoints whose last attempt failed have a part of the places only: receivers that do not answer
// must not keep those waiting that do.
const (
	mostRunners = 1024
	mostSends   = 512
	mostSlow    = 384                    // of mostSends
	mostLoaded  = 8192                   // deliveries in memory
	lastSends   = 500 * time.Millisecond // for requests under way when the engine stops
)

// runners are the queues that this process works on.
type runners struct {
	w    *Webhooks
	ctx  context.Context //nolint:containedctx // of the requests, which belong to no call; set by run
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	of      map[base.UUID]*runner
	waiting map[base.UUID]*runner // for a place
	sends   int
	slow    int // of sends
	loaded  int
	closing bool
	closed  chan struct{} // once closing
}

func newRunners(w *Webhooks) *runners {
	r := &runners{w: w, of: map[base.UUID]*runner{}, waiting: map[base.UUID]*runner{}, closed: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(w.Lifetime))
	return r
}

// run ends the runners when the engine ends.
func (r *runners) run(ctx context.Context) {
	<-ctx.Done()
	r.begin()
	r.stop()
	r.wg.Wait()
}

// begin makes the runners stop: no request is sent any more.
func (r *runners) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.closing = true
		close(r.closed)
	}
}

// close ends the runners while commands are still accepted: what is under way gets a moment to end, and the queues are released, so that another process
// need not wait for the end of the leases.
func (r *runners) close(ctx context.Context) {
	r.begin()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.w.Guard(txn.InCommand, r.wg.Wait)
	}()
	soon, cancel := context.WithTimeout(ctx, lastSends)
	defer cancel()
	select {
	case <-ended:
		return
	case <-soon.Done():
	}
	r.stop()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// room reports whether this process can work on a further queue.
func (r *runners) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of) < mostRunners && !r.closing
}

// runs reports whether the queue is worked on under the lease of that epoch.
func (r *runners) runs(id base.UUID, epoch int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.of[id]
	return one != nil && one.epoch == epoch
}

// start works on a queue under a lease that was taken at a time of the host's clock.
func (r *runners) start(id base.UUID, epoch int64, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing { // the lease runs out
		return
	}
	one := newRunner(r.w, id, epoch, began)
	r.of[id] = one // one that is there has lost its lease, and finds out
	r.wg.Go(func() {
		defer r.ended(one)
		_ = r.w.Guard(txn.InCommand, one.run)
	})
}

// ended takes a runner out. What it held is free.
func (r *runners) ended(one *runner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[one.id] == one {
		delete(r.of, one.id)
	}
	if r.waiting[one.id] == one {
		delete(r.waiting, one.id)
	}
	r.loaded -= one.loaded
	one.loaded = 0
}

// kick makes the runner of a queue look for more deliveries.
func (r *runners) kick(id base.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.of[id]; one != nil {
		one.wake(one.more)
	}
}

func (r *runners) kickAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		one.wake(one.more)
	}
}

// acquire takes a place for a request. Without one, the runner is woken when there may be one.
func (r *runners) acquire(one *runner, slow bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sends >= mostSends || slow && r.slow >= mostSlow {
		r.waiting[one.id] = one
		return false
	}
	delete(r.waiting, one.id)
	r.sends++
	if slow {
		r.slow++
	}
	return true
}

// release gives a place back.
func (r *runners) release(slow bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sends--
	if slow {
		r.slow--
	}
	for _, one := range r.waiting {
		one.wake(one.kick)
	}
}

// load takes room for deliveries in memory: at least one, so that nothing stands still.
func (r *runners) load(one *runner, want int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := max(min(want, mostLoaded-r.loaded), 1)
	r.loaded += n
	one.loaded += n
	return n
}

// unload gives room back.
func (r *runners) unload(one *runner, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded -= n
	one.loaded -= n
}
