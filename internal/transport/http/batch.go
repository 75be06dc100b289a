package httptransport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Bounds of the batches of commands.
const (
	maxBatchItems = wire.MaxWorkItems
	maxBatchBytes = 8 << 20
	// How many batches are in flight at a time. With one, a command that arrives just after a batch was sent would wait for its
	// answer; with many there would be no batches.
	maxWorkFlights   = 2
	maxSubmitFlights = 2
)

// batcher gathers the commands of many callers: a batch is what was queued while the previous ones were in flight. There is no
// timer and no added delay; a lone command is a batch of one.
type batcher[A any] struct {
	send    func([]*command[A]) error // answers all of them, or fails for all
	failure func(error) A             // the answer to a command that failed
	bytes   int                       // of a batch at most, unless one command has more
	most    int                       // maximum number of flights

	mu      sync.Mutex
	queue   []*group[A]
	flights int
}

// command is one command to be sent.
type command[A any] struct {
	text   []byte           // its JSON
	read   A                // what was read; owned by the batcher until the group is done
	failed bool             // the server did not answer; likewise
	answer *A               // destination of the answer
	trace  api.TraceContext // the span of the caller; zero: none
}

// group holds the commands of one caller, which stay together and in order.
type group[A any] struct {
	commands []*command[A]
	size     int
	head     api.TraceContext // from the headers of its request: only groups that agree are sent together
	gone     func()           // called when it is neither queued nor in flight any more; may be nil
	taken    bool             // it is in flight; guarded by batcher.mu
	done     chan struct{}
}

// newGroup makes a group that is not queued yet.
func newGroup[A any](commands ...*command[A]) *group[A] {
	g := &group[A]{commands: commands, done: make(chan struct{})}
	for _, c := range commands {
		g.size += len(c.text)
	}
	return g
}

// left notifies the owner of a group that the batcher no longer uses it.
func (g *group[A]) left() {
	if g.gone != nil {
		g.gone()
	}
}

// do sends a group and fills in the answers. It reports whether the server answered; if not, the answers hold the error.
func (b *batcher[A]) do(ctx context.Context, g *group[A]) bool {
	b.mu.Lock()
	b.queue = append(b.queue, g)
	if b.flights < b.most {
		b.flights++
		go b.fly()
	}
	b.mu.Unlock()
	return b.await(ctx, g)
}

// await waits until a group is done, or its caller gives up.
func (b *batcher[A]) await(ctx context.Context, g *group[A]) bool {
	select {
	case <-g.done:
	case <-ctx.Done():
		if err := b.leave(ctx, g); err != nil {
			return b.fill(g, err)
		}
		<-g.done
	}
	return b.fill(g, nil)
}

// takeOff gives a flight to a caller that is alone, to be ended by land. It yields first, so that callers that are about to send
// can queue.
func (b *batcher[A]) takeOff() bool {
	if !b.reserve() {
		return false
	}
	runtime.Gosched()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return true
	}
	go b.fly()
	return false
}

// reserve takes a flight if one is free and no group waits for it.
func (b *batcher[A]) reserve() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flights == b.most || len(b.queue) > 0 {
		return false
	}
	b.flights++
	return true
}

// land ends a flight of takeOff: what was queued is sent next.
func (b *batcher[A]) land() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		go b.fly()
		return
	}
	b.flights--
}

// leave removes a group whose caller has given up. If it is in flight its outcome is unknown; if it is done it is kept: nil.
func (b *batcher[A]) leave(ctx context.Context, g *group[A]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-g.done:
		return nil
	default:
	}
	if g.taken {
		return refuse(base.CodeTimeout, "the call ended before the answer came: %w", context.Cause(ctx))
	}
	for i, other := range b.queue {
		if other == g {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			break
		}
	}
	g.left()
	return fmt.Errorf("flowfabric: %w", context.Cause(ctx))
}

// fill delivers the answers, or one error for all of them. Commands that are still in flight are not read.
func (b *batcher[A]) fill(g *group[A], err error) bool {
	answered := err == nil
	for _, c := range g.commands {
		if err != nil {
			*c.answer = b.failure(err)
			continue
		}
		*c.answer = c.read
		answered = answered && !c.failed
	}
	return answered
}

// fly sends batches until nothing is queued.
func (b *batcher[A]) fly() {
	for {
		runtime.Gosched() // lets goroutines that are about to send queue first
		groups, batch := b.take()
		if len(batch) == 0 {
			return
		}
		b.sendSplitting(batch)
		b.mu.Lock()
		for _, g := range groups {
			close(g.done)
			g.left()
		}
		b.mu.Unlock()
	}
}

// take takes what is queued, up to the bounds of a batch, or ends the flight.
func (b *batcher[A]) take() (groups []*group[A], batch []*command[A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size, full := 0, false
	var rest []*group[A]
	for _, g := range b.queue {
		full = full || len(batch) > 0 && (len(batch)+len(g.commands) > maxBatchItems || size+g.size > b.bytes)
		if full || len(groups) > 0 && g.head != groups[0].head {
			rest = append(rest, g)
			continue
		}
		g.taken = true
		groups, batch, size = append(groups, g), append(batch, g.commands...), size+g.size
	}
	if b.queue = rest; len(groups) == 0 {
		b.flights--
	}
	return groups, batch
}

// sendSplitting sends a batch. A batch that is refused as a whole is sent again in halves, so that commands do not fail because
// of another one.
func (b *batcher[A]) sendSplitting(batch []*command[A]) {
	err := b.send(batch)
	switch {
	case err == nil:
	case errors.Is(err, invalid) && len(batch) > 1:
		half := len(batch) / 2
		b.sendSplitting(batch[:half])
		b.sendSplitting(batch[half:])
	default:
		for _, c := range batch {
			c.read, c.failed = b.failure(err), true
		}
	}
}

// invalid is the class of refusals that a repeat does not change.
var invalid = &api.Error{Class: "invalid"}

// batchBody is the JSON of a batch.
func batchBody[A any](batch []*command[A]) []byte {
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
