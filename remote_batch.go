package flowfabric

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Bounds of the batches of commands.
const (
	maxBatchBytes = 8 << 20
	// maxFlights is how many batches are under way at a time. With one, a command that comes just after a batch has left would wait
	// for its answer; with many there would be no batches.
	maxFlights = 2
)

// batcher gathers the commands of many callers: a batch is whatever queued while the last ones were under way. There is no timer and
// no added delay; a lone command is a batch of one.
type batcher struct {
	send func([]*command) error // answers all of them, or fails for all

	mu      sync.Mutex
	queue   []*group
	flights int
}

// command is one command on its way.
type command struct {
	text   []byte      // its JSON
	read   WorkAnswer  // what was read; the batcher's until the group is done
	failed bool        // the server did not answer; likewise
	answer *WorkAnswer // where the caller wants it
}

// group is the commands of one caller, which stay together and in order.
type group struct {
	commands []*command
	size     int
	taken    bool // it is under way; guarded by batcher.mu
	done     chan struct{}
}

// do sends a group and fills in the answers. It tells whether the server answered; if not, the answers say why.
func (b *batcher) do(ctx context.Context, commands []*command) bool {
	g := &group{commands: commands, done: make(chan struct{})}
	for _, c := range commands {
		g.size += len(c.text)
	}
	b.mu.Lock()
	b.queue = append(b.queue, g)
	if b.flights < maxFlights {
		b.flights++
		go b.fly()
	}
	b.mu.Unlock()
	select {
	case <-g.done:
	case <-ctx.Done():
		if err := b.leave(ctx, g); err != nil {
			return g.fill(err)
		}
		<-g.done
	}
	return g.fill(nil)
}

// leave takes a group out whose caller has given up. One that is under way has an unknown outcome; one that is done stays: nil.
func (b *batcher) leave(ctx context.Context, g *group) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-g.done:
		return nil
	default:
	}
	if g.taken {
		return newError(core.CodeTimeout, "the call ended before the answer came: %w", context.Cause(ctx))
	}
	for i, other := range b.queue {
		if other == g {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			break
		}
	}
	return fmt.Errorf("flowfabric: %w", context.Cause(ctx))
}

// fill hands the answers over, or one error for all of them. Nothing is read of commands that are still under way.
func (g *group) fill(err error) bool {
	answered := err == nil
	for _, c := range g.commands {
		if err != nil {
			*c.answer = WorkAnswer{Err: err}
			continue
		}
		*c.answer = c.read
		answered = answered && !c.failed
	}
	return answered
}

// fly sends batches until nothing is queued.
func (b *batcher) fly() {
	for {
		groups, batch := b.take()
		if len(batch) == 0 {
			return
		}
		b.sendSplitting(batch)
		b.mu.Lock()
		for _, g := range groups {
			close(g.done)
		}
		b.mu.Unlock()
	}
}

// take takes what queued, up to the bounds of a batch, or ends the flight.
func (b *batcher) take() (groups []*group, batch []*command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size, n := 0, 0
	for _, g := range b.queue {
		if n > 0 && (len(batch)+len(g.commands) > maxWorkItems || size+g.size > maxBatchBytes) {
			break
		}
		g.taken = true
		batch, size, n = append(batch, g.commands...), size+g.size, n+1
	}
	groups, b.queue = b.queue[:n:n], b.queue[n:]
	if n == 0 {
		b.flights--
		b.queue = nil
	}
	return groups, batch
}

// sendSplitting sends a batch. One that is refused as a whole is sent in halves, so that nobody suffers for another's command.
func (b *batcher) sendSplitting(batch []*command) {
	err := b.send(batch)
	switch {
	case err == nil:
	case errors.Is(err, ErrInvalid) && len(batch) > 1:
		half := len(batch) / 2
		b.sendSplitting(batch[:half])
		b.sendSplitting(batch[half:])
	default:
		for _, c := range batch {
			c.read, c.failed = WorkAnswer{Err: err}, true
		}
	}
}

// batchBody is the JSON of a batch.
func batchBody(batch []*command) []byte {
	size := 0
	for _, c := range batch {
		size += len(c.text) + 1
	}
	body := append(make([]byte, 0, size+16), `{"items":[`...)
	for i, c := range batch {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, c.text...)
	}
	return append(body, "]}"...)
}
