package scenario

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// fanInBook knows the round under way. Its times are of this host's monotonic clock.
type fanInBook struct {
	ids  []flowfabric.ID
	join *measure.Durations // from the return of the last member's handler to the start of the join

	mu           sync.Mutex
	width, total int // members, and with the join
	handled      int // members whose handler has returned
	acks         int
	left, last   time.Time // when the last handler returned, when the last member's end was acknowledged
	joins, early int
	joinID       flowfabric.ID
}

func (b *fanInBook) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handled, b.acks, b.joinID = 0, 0, ""
}

func (b *fanInBook) sent(width, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.width, b.total = width, total
}

// handle does nothing but look at the clock.
func (b *fanInBook) handle(_ context.Context, task *flowfabric.Task, _ []byte) (none flowfabric.None, _ error) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if task.Name() != joinName {
		b.handled++
		b.left = time.Now()
		return none, nil
	}
	b.joins++
	b.joinID = task.ID()
	if b.handled != b.width {
		b.early++
	}
	b.join.Add(now.Sub(b.left))
	return none, nil
}

// acknowledged hears of an end.
func (b *fanInBook) acknowledged(id flowfabric.ID) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acks++
	if id != b.joinID {
		b.last = now
	}
}

func (b *fanInBook) awaited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

func (b *fanInBook) ended() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acks
}

func (b *fanInBook) lastEnd() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}
