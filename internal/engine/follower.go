package engine

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	followCommits = 256                    // commits brought into the search rows in one round
	followPause   = 500 * time.Millisecond // changes of one execution within so long become one write
	followShare   = 8                      // it rests so many times as long as it worked, unless somebody waits for it
	followRounds  = 16                     // rounds before it rests
	followYield   = 3 * time.Second        // it lets a busy engine go first for no longer
	reachFor      = time.Second            // a list waits no longer for what was committed before it (L131)
)

// follower keeps the search rows up to date behind the log, so that lists cost the hot path nothing. Any number of processes
// may follow: the projection's position in the store decides whose round counts.
type follower struct {
	e    *Engine
	kick chan struct{} // somebody waits: go on at once

	mu    sync.Mutex
	at    int64         // position of the projection as last known
	moves chan struct{} // closed and replaced whenever it moves
}

func newFollower(e *Engine) *follower {
	return &follower{e: e, kick: make(chan struct{}, 1), moves: make(chan struct{})}
}

// run brings the projection forward until ctx ends.
func (f *follower) run(ctx context.Context) {
	var worked time.Duration
	for {
		end, grew := f.e.log.position()
		if at, _ := f.position(); at >= end {
			select {
			case <-ctx.Done():
				return
			case <-grew:
			case <-f.kick:
				continue
			}
		}
		if !f.rest(ctx, max(followPause, min(followShare*worked, followYield))) {
			return
		}
		began := f.e.cfg.Clock.Now()
		for n := 0; n < followRounds && f.round(ctx); n++ {
		}
		worked = f.e.cfg.Clock.Now().Sub(began)
	}
}

// rest lets changes gather, and lets commands that wait for a commit go first, unless somebody waits for the projection. It
// tells whether to go on.
func (f *follower) rest(ctx context.Context, pause time.Duration) bool {
	for waited := time.Duration(0); ; {
		timer := f.e.cfg.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-f.kick:
			timer.Stop()
			return true
		case <-timer.C:
		}
		if waited += pause; waited >= followYield || !f.e.busy() {
			return true
		}
		pause = followPause
	}
}

// round brings the executions of the next commits up to date. It tells whether there may be more to do.
func (f *follower) round(ctx context.Context) bool {
	from, _ := f.position()
	commits, err := f.e.log.read(ctx, from, followCommits)
	if err != nil || len(commits) == 0 {
		return false
	}
	to := commits[len(commits)-1].Seq
	rows, gone, err := f.collect(ctx, commits)
	if err != nil {
		return false
	}
	switch err := f.e.store.Project(ctx, from, to, rows, gone); {
	case err == nil:
		f.moved(to)
		return true
	case store.FaultOf(err) == store.Stale:
		return f.askPosition(ctx) && from < to
	default:
		return false
	}
}

// collect loads the executions that the commits touched.
func (f *follower) collect(ctx context.Context, commits []store.Commit) (rows []*core.Execution, gone []core.UUID, err error) {
	seen := map[core.UUID]bool{}
	var ids []core.UUID
	for i := range commits {
		for j := range commits[i].Events {
			if id := commits[i].Events[j].ExecutionID.UUID; !id.IsZero() && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	loaded, err := f.e.store.Read(ctx, store.Want{Executions: ids})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if x := loaded.Executions[id]; x != nil {
			rows = append(rows, x)
		} else {
			gone = append(gone, id)
		}
	}
	return rows, gone, nil
}

// askPosition reads how far another process has come. It tells whether that is further than known.
func (f *follower) askPosition(ctx context.Context) bool {
	before, _ := f.position()
	seen, err := f.e.store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return false
	}
	f.moved(seen.Projected)
	return seen.Projected > before
}

func (f *follower) position() (int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.moves
}

// moved notes a position of the projection.
func (f *follower) moved(to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to > f.at {
		f.at = to
		close(f.moves)
		f.moves = make(chan struct{})
	}
}

// reach waits, up to a second, until the search rows hold everything committed before the call (L131).
func (f *follower) reach(ctx context.Context) error {
	timer := f.e.cfg.Clock.NewTimer(reachFor)
	defer timer.Stop()
	return f.reachBefore(ctx, timer.C)
}

// reachAll is reach for work that must miss nothing: it waits as long as it takes.
func (f *follower) reachAll(ctx context.Context) error { return f.reachBefore(ctx, nil) }

func (f *follower) reachBefore(ctx context.Context, over <-chan time.Time) error {
	seen, err := f.e.store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return publicFault(err)
	}
	f.moved(seen.Projected)
	target := seen.LogEnd
	for {
		at, moves := f.position()
		if at >= target {
			return nil
		}
		if end, _ := f.e.log.position(); end < target {
			f.e.log.look()
		}
		select {
		case f.kick <- struct{}{}:
		default:
		}
		again := f.e.cfg.Clock.NewTimer(25 * time.Millisecond)
		select {
		case <-moves:
		case <-again.C:
			f.askPosition(ctx)
		case <-over:
			again.Stop()
			return nil
		case <-ctx.Done():
			again.Stop()
			return core.Errorf(core.CodeTimeout, "gave up: %w", context.Cause(ctx))
		}
		again.Stop()
	}
}
