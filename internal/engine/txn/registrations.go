package txn

import (
	"context"
	"sync"
	"time"
)

// registrationPatience bounds the wait for a registration of this process.
const registrationPatience = 100 * time.Millisecond

// registrations tracks registrations of this process that are under way. Between the commit of one and its return, transactions see a version of
// the dictionary that this process has not read yet. They wait a moment for it: reading all classes again for each batch of new ones would cost
// more with every class. The wait is bounded, since the registration may in turn wait for a lock of such a transaction. The zero value is ready for
// use.
type registrations struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // closed when one has ended; nil: no call waits
}

// begin records that a registration begins; the returned function records that it has ended.
func (r *registrations) begin() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n--
		if r.over != nil {
			close(r.over)
			r.over = nil
		}
	}
}

// next returns a channel that is closed when the next registration has ended, or nil if none is under way.
func (r *registrations) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		return nil
	}
	if r.over == nil {
		r.over = make(chan struct{})
	}
	return r.over
}

// await waits until done returns true, no registration is under way, or patience has run out.
func (r *registrations) await(ctx context.Context, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, registrationPatience)
	defer cancel()
	for over := r.next(); over != nil && !done(); over = r.next() {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}
