package scenario

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
)

// winner is the member that is let go.
const winner = "m0"

// losersBook knows the rounds of one width; one is under way at a time.
type losersBook struct {
	ids       []flowfabric.ID
	cancelled atomic.Int64 // contexts that were ended by a cancel
	round     atomic.Pointer[losersRound]
}

// losersRound is one race. Its times are of this host's monotonic clock.
type losersRound struct {
	release  chan struct{} // closed: the winner ends
	running  atomic.Int64
	contexts atomic.Int64 // of losers that have ended
	told     atomic.Int64 // losers whose end the log has told

	mu          sync.Mutex
	winner      flowfabric.ID
	won         time.Time // when the end of the winner was acknowledged
	lastContext time.Time
	lastEvent   time.Time
}

func (b *losersBook) begin() *losersRound {
	r := &losersRound{release: make(chan struct{})}
	b.round.Store(r)
	return r
}

func (b *losersBook) sent(run *flowfabric.FlowRun) {
	for _, id := range run.Members {
		b.ids = append(b.ids, id)
	}
}

// handle runs until it is let go or cancelled.
func (b *losersBook) handle(ctx context.Context, task *flowfabric.Task, _ []byte) (none flowfabric.None, _ error) {
	r := b.round.Load()
	switch task.Name() {
	case joinName:
		return none, nil
	case winner:
		r.is(task.ID())
		r.running.Add(1)
		select {
		case <-r.release:
			return none, nil
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
	r.running.Add(1)
	<-ctx.Done()
	now := time.Now()
	if errors.Is(context.Cause(ctx), flowfabric.ErrCancelled) {
		b.cancelled.Add(1)
	}
	r.mu.Lock()
	r.lastContext = later(r.lastContext, now)
	r.mu.Unlock()
	r.contexts.Add(1)
	return none, context.Cause(ctx)
}

func (r *losersRound) is(id flowfabric.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.winner = id
}

// acknowledged hears of the end of a member.
func (b *losersBook) acknowledged(id flowfabric.ID) {
	now := time.Now()
	r := b.round.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == r.winner {
		r.won = now
	}
}

// follow reads the log until every loser has ended.
func (r *losersRound) follow(ctx context.Context, c *flowfabric.Client, run *flowfabric.FlowRun, from string) error {
	which := ops.EventFilter{FlowID: run.ID, Kinds: []string{"execution.completed"}}
	for event, err := range c.Events().Follow(ctx, ops.ReadOptions{After: from, Limit: 1000, EventFilter: which}) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if event.ExecutionID == run.Members[winner] || event.ExecutionID == run.Members[joinName] {
			continue
		}
		now := time.Now()
		r.mu.Lock()
		r.lastEvent = later(r.lastEvent, now)
		r.mu.Unlock()
		if int(r.told.Add(1)) == len(run.Members)-2 {
			return nil
		}
	}
	return nil
}

// untilEvent is the time from the acknowledged end of the winner to the event of the last loser.
func (r *losersRound) untilEvent() time.Duration {
	return r.since(func() time.Time { return r.lastEvent })
}

// untilContext is the time from there to the end of the last loser's context.
func (r *losersRound) untilContext() time.Duration {
	return r.since(func() time.Time { return r.lastContext })
}

// since is 0 for what came before the acknowledgement.
func (r *losersRound) since(moment func() time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(moment().Sub(r.won), 0)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
