package txn

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	followCommits = 256                    // commits brought into the search rows in one round
	followPause   = 500 * time.Millisecond // changes of one execution within this time become one write
	busyCommits   = 50                     // with this many commits in a pause the engine is busy
	followYield   = 3 * time.Second        // a busy engine has precedence for at most this long
	followSlice   = 200 * time.Millisecond // of work between two rests, unless a list waits
	reachFor      = time.Second            // how long a list waits for what was committed before it (L131)
	followTries   = 3                      // rounds that fail for good before lists stop waiting for the next
	removedSoon   = 10 * base.Minute       // retention may remove such executions while a round is under way
)

// follower updates the search rows from the log, so that lists cost the hot path nothing. Any number of processes may follow: the position of the
// projection in the store decides whose round counts.
type follower struct {
	e    *Engine
	kick chan struct{} // a list waits: continue at once

	mu       sync.Mutex
	at       int64         // position of the projection as last known
	of       string        // incarnation of the database that the position belongs to
	moves    chan struct{} // closed and replaced whenever it moves
	failures int           // total number of rounds that failed because the store contains what cannot be read
	failure  error         // the last of them
}

func newFollower(e *Engine) *follower {
	return &follower{e: e, kick: make(chan struct{}, 1), moves: make(chan struct{})}
}

// Run brings the projection forward until ctx ends.
func (f *follower) Run(ctx context.Context) {
	wanted := false // a list asked for more than there was: what comes next is not left to collect
	for {
		// The channel belongs to the position that is compared. If the log grows after the comparison, the channel is closed and the select returns
		// at once.
		end, grew := f.e.Log.Position()
		if at, _ := f.position(); at >= end {
			select {
			case <-ctx.Done():
				return
			case <-grew:
			case <-f.kick:
				wanted = true
			}
			continue
		}
		if !wanted {
			var ok bool
			if wanted, ok = f.rest(ctx); !ok {
				return
			}
		}
		f.work(ctx, wanted)
		wanted = false
	}
}

// work brings the projection to the current end of the log, for no longer than a slice while no list waits for it. What is committed meanwhile is
// collected for later: a row that changes again a moment later would be written twice.
func (f *follower) work(ctx context.Context, wanted bool) {
	began := f.e.Cfg.Clock.Now()
	end, _ := f.e.Log.Position()
	for f.round(ctx) {
		at, _ := f.position()
		if at >= end || !wanted && f.e.Cfg.Clock.Now().Sub(began) > followSlice {
			return
		}
	}
}

// rest lets changes collect, and gives a busy engine precedence for a while, unless a list waits for the projection: then wanted is true. ok is
// false if ctx has ended.
func (f *follower) rest(ctx context.Context) (wanted, ok bool) {
	for waited := time.Duration(0); ; {
		before, _ := f.e.Log.Position()
		timer := f.e.Cfg.Clock.NewTimer(followPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, false
		case <-f.kick:
			timer.Stop()
			return true, true
		case <-timer.C:
		}
		end, _ := f.e.Log.Position()
		if waited += followPause; waited >= followYield || end-before < busyCommits {
			return false, true
		}
	}
}

// round updates the search rows of the executions in the next commits. It reports whether there may be more to do.
func (f *follower) round(ctx context.Context) bool {
	from, of := f.standing()
	commits, err := f.e.Log.Read(ctx, from, followCommits)
	if f.failed(err) || len(commits) == 0 {
		return false
	}
	to := commits[len(commits)-1].Seq
	// The rows are read after the commits, so they show at least what those have done. They may show more: the events of that come later in the
	// log, and a later round writes the row again.
	rows, gone, err := f.collect(ctx, commits)
	if f.failed(err) {
		return false
	}
	// Retention, and the removal of a graph with its members, write no event for an execution: one that they remove after the round has loaded it
	// would be shown for ever (I18).
	round := store.Projection{From: from, To: to, Incarnation: of, Rows: rows, Gone: gone, Doubted: f.removable(rows)}
	switch err := f.e.Failed(f.project(ctx, &round)); {
	case err == nil:
		f.moved(of, to)
		return true
	// Another process has brought the projection beyond From, or the database is another incarnation. Nothing was written; the next round begins
	// where the projection is.
	case store.FaultOf(err) == store.Stale:
		return f.askPosition(ctx) && from < to
	default:
		f.failed(err)
		return false
	}
}

// failed records why a round, or the read of the log before it, failed. A database that does not answer now will answer later; one that is damaged
// stays so, and no list must wait for it.
func (f *follower) failed(err error) bool {
	if err == nil {
		return false
	}
	if store.FaultOf(err) == store.Broken {
		f.e.QuietLog.Error("lists cannot be brought up to date: the store holds what cannot be read", "error", err)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failures++
		f.failure = err
	}
	return true
}

// lastFailure returns how often a round has failed for good, and why.
func (f *follower) lastFailure() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures, f.failure
}

// removable returns the executions that may be removed while a round is under way: members, with their graph, and those whose retention has ended,
// or nearly so.
func (f *follower) removable(rows []*core.Execution) (ids []base.UUID) {
	now, dict := f.e.Sweep.StoreNow(), f.e.Dict.Now()
	for _, x := range rows {
		if !x.Status.Terminal() {
			continue
		}
		var settings core.LaneSettings
		if lane := dict.Lanes[x.Class.Lane]; lane != nil {
			settings = lane.Settings
		}
		if at, ok := x.RemoveAt(&settings, f.e.Cfg.Retention); x.Member != nil || ok && at <= now.Add(removedSoon) {
			ids = append(ids, x.ID.UUID)
		}
	}
	return ids
}

// collect loads the executions that the commits touched.
func (f *follower) collect(ctx context.Context, commits []store.Commit) (rows []*core.Execution, gone []base.UUID, err error) {
	seen := map[base.UUID]bool{}
	var ids []base.UUID
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
	loaded, err := f.e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		switch x := loaded.Executions[id]; {
		case x != nil:
			rows = append(rows, x)
		case loaded.Unreadable[id] != nil: // its search row stays as it is: lists do not wait for what cannot be read
			f.e.QuietLog.Error("an execution cannot be read: lists show it as it was", "execution_id", id, "error", loaded.Unreadable[id])
		default:
			gone = append(gone, id)
		}
	}
	return rows, gone, nil
}

// askPosition reads how far another process has come. It reports whether that is further than known.
func (f *follower) askPosition(ctx context.Context) bool {
	before, _ := f.position()
	seen, err := f.e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return false
	}
	f.moved(seen.Incarnation, seen.Projected)
	return seen.Projected > before
}

func (f *follower) position() (int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.moves
}

// standing is the position of the projection, and the incarnation of which that is.
func (f *follower) standing() (at int64, of string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.of
}

// moved records a position of the projection. A position that was read in another incarnation, or before this process has dropped its caches, is
// ignored.
func (f *follower) moved(of string, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of == f.of && to > f.at {
		f.at = to
		close(f.moves)
		f.moves = make(chan struct{})
	}
}

// begin drops the position: in another incarnation the projection may be further back. The next round reads it.
func (f *follower) begin(of string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.of = 0, of
}

// Reach waits, up to a second, until the search rows contain everything committed before the call (L131).
func (f *follower) Reach(ctx context.Context) error {
	timer := f.e.Cfg.Clock.NewTimer(reachFor)
	defer timer.Stop()
	return f.reachBefore(ctx, timer.C)
}

// ReachAll is reach for work that must miss nothing: it waits without a bound, unless a damaged store keeps the search rows from ever getting
// there. Codes then: corruption, internal.
func (f *follower) ReachAll(ctx context.Context) error { return f.reachBefore(ctx, nil) }

// Target reads the end of the log and the incarnation that it belongs to.
func (f *follower) Target(ctx context.Context) (store.PollAnswer, error) {
	seen, err := f.e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return store.PollAnswer{}, PublicFault(err)
	}
	if seen.Incarnation != f.e.Incarnation() {
		if err := f.e.Dict.Reload(ctx); err != nil {
			return store.PollAnswer{}, PublicFault(err)
		}
	}
	f.moved(seen.Incarnation, seen.Projected)
	return seen, nil
}

func (f *follower) reachBefore(ctx context.Context, over <-chan time.Time) error {
	target, err := f.Target(ctx)
	if err != nil {
		return err
	}
	before, _ := f.lastFailure()
	for {
		at, moves := f.position()
		if _, now := f.standing(); now != target.Incarnation { // the target was a position in another log
			if target, err = f.Target(ctx); err != nil {
				return err
			}
			continue
		}
		if at >= target.LogNewest {
			return nil
		}
		if failures, why := f.lastFailure(); over == nil && failures-before >= followTries {
			return PublicFault(why)
		}
		if end, _ := f.e.Log.Position(); end < target.LogNewest {
			f.e.Log.look()
		}
		select {
		case f.kick <- struct{}{}:
		default:
		}
		// Another process may be the one that follows; how far it has come is only in the store.
		again := f.e.Cfg.Clock.NewTimer(25 * time.Millisecond)
		select {
		case <-moves:
		case <-again.C:
			f.askPosition(ctx)
		case <-over:
			again.Stop()
			return nil
		case <-ctx.Done():
			again.Stop()
			return base.Errorf(base.CodeTimeout, "gave up: %w", context.Cause(ctx))
		}
		again.Stop()
	}
}
