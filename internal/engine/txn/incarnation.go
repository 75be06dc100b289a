package txn

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric/internal/store"
)

// A database may come back with less than it had: a failover to a standby that was behind, a restored copy. What this process caches is then wrong,
// and commits that it has seen may be lost. Therefore all of its caches belong to one incarnation of the database, that of the dictionary in use. A
// transaction that meets another one is refused, all caches are dropped at once (R3), and it is checked what was lost (R5).

// incarnations keeps the caches consistent with one incarnation.
type incarnations struct {
	mu   sync.RWMutex  // held for reading while a cache is updated, for writing while all are dropped
	kick chan struct{} // another one came

	checks sync.Mutex
	was    []store.Commit // the newest commits that were known before, in order; none: they were checked
}

// ErrReborn is the fault of what was decided by another incarnation of the database.
var ErrReborn = errors.New("the database has another incarnation than what was remembered is of")

// Incarnation is the one that everything remembered is of.
func (e *Engine) Incarnation() string { return e.Dict.Now().incarnation }

// dictionaryOf returns the dictionary for a transaction that has loaded this, or Stale if it belongs to another incarnation than since.
func (e *Engine) dictionaryOf(ctx context.Context, since string, loaded *store.Loaded) (*Dictionary, error) {
	// The transaction may have been decided, in part, on caches of since. It is refused even if the rows that it loaded are all new.
	if loaded.Incarnation != since {
		if err := e.Dict.Reload(ctx); err != nil {
			return nil, err
		}
		return nil, &store.Fault{Kind: store.Stale, Err: ErrReborn}
	}
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err == nil && dict.incarnation != since {
		err = &store.Fault{Kind: store.Stale, Err: ErrReborn}
	}
	return dict, err
}

// remembers runs note, which updates caches with what the transaction has read and written, unless the incarnation has changed since the transaction
// began. It reports whether it did.
func (u *Tx) remembers(note func()) bool {
	// Held for reading while note runs. forgetAll takes it for writing: either it has run before, then the incarnation differs and nothing is
	// noted, or it waits and drops what is noted here. No entry of an old incarnation survives it.
	u.Engine.lives.mu.RLock()
	defer u.Engine.lives.mu.RUnlock()
	if u.Engine.Incarnation() != u.Since {
		return false
	}
	note()
	return true
}

// reborn drops all caches and switches to the dictionary of another incarnation (R3). A transaction that has read a cache before has since set to
// the old incarnation, and is refused.
func (e *Engine) reborn(next *Dictionary) {
	before, known := e.Incarnation(), e.forgetAll(next)
	e.Cfg.Logger.Warn("the database has another incarnation: a failover, a restore or a restart; everything remembered is read anew",
		"incarnation_before", before, "incarnation", next.incarnation)
	e.lives.ask(known)
}

// forgetAll drops all caches, and returns the newest commits that this process has seen.
func (e *Engine) forgetAll(next *Dictionary) []store.Commit {
	e.lives.mu.Lock()
	defer e.lives.mu.Unlock()
	e.rows.forgetAll()
	for _, forget := range e.forgets {
		forget()
	}
	known := e.Log.forget()
	e.Follower.begin(next.incarnation) // from now on the log reader has nothing of another incarnation in memory
	// Last, and still under the lock: a reader of the new incarnation finds empty caches from here on.
	e.Dict.current.Store(next)
	return known
}

// ask requests a check whether commits still exist. Those of an earlier incarnation that were not checked yet stay to be checked.
func (l *incarnations) ask(known []store.Commit) {
	l.checks.Lock()
	defer l.checks.Unlock()
	was := slices.Clip(l.was)
	for _, c := range known {
		if len(was) == 0 || was[len(was)-1].Seq < c.Seq {
			was = append(was, c)
		}
	}
	l.was = was
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// LossChecked reports whether it is known what was lost when the database last came back.
func (e *Engine) LossChecked() bool { return len(e.lives.asked()) == 0 }

// asked are the commits that are to be looked into.
func (l *incarnations) asked() []store.Commit {
	l.checks.Lock()
	defer l.checks.Unlock()
	return l.was
}

// answered records that commits were checked. Those that were added meanwhile were not.
func (l *incarnations) answered(known []store.Commit) {
	l.checks.Lock()
	defer l.checks.Unlock()
	l.was = l.was[len(known):]
}

// watch checks what was lost whenever the incarnation has changed, until ctx ends. A check that fails is tried again.
func (e *Engine) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.lives.kick:
		}
		for known := e.lives.asked(); len(known) > 0; known = e.lives.asked() {
			err := e.lookInto(ctx, known)
			if err == nil {
				e.lives.answered(known)
				continue
			}
			e.QuietLog.Warn("it cannot be looked into yet whether commits were lost", "error", err)
			timer := e.Cfg.Clock.NewTimer(e.Cfg.PollInterval)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}

// lookInto checks whether the newest commits that this process has seen are still in the log, and records a loss if one is not (R5).
func (e *Engine) lookInto(ctx context.Context, known []store.Commit) error {
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return err
	}
	if seen.Incarnation != e.Incarnation() {
		if err := e.Dict.Reload(ctx); err != nil {
			return err
		}
		return ErrReborn
	}
	e.Follower.moved(seen.Incarnation, seen.Projected)
	lost, err := e.firstLost(ctx, known, seen.LogStart)
	if err != nil {
		return err
	}
	if lost > 0 {
		if err := e.recordLoss(ctx, seen.Incarnation, known[len(known)-1].Seq, min(seen.LogEnd, lost-1)); err != nil {
			return err
		}
		e.Log.setBack(seen.LogEnd)
		e.Waiters.wakeAll()
	}
	e.Log.look()
	return nil
}

// firstLost returns the position of the first of the commits that the log does not have, or has another one in its place; 0: it has all. Commits up
// to start can no longer be checked, but the log went further.
func (e *Engine) firstLost(ctx context.Context, known []store.Commit, start int64) (int64, error) {
	for len(known) > 0 {
		if known[0].Seq <= start {
			known = known[1:]
			continue
		}
		found, err := e.Store.Log(ctx, known[0].Seq-1, LogRead)
		if err != nil {
			return 0, err
		}
		if len(found) == 0 {
			return known[0].Seq, nil
		}
		last := found[len(found)-1].Seq
		for ; len(known) > 0 && known[0].Seq <= last; known = known[1:] {
			at := slices.IndexFunc(found, func(c store.Commit) bool { return c.Seq == known[0].Seq })
			if at < 0 || !sameCommit(&known[0], &found[at]) {
				return known[0].Seq, nil
			}
		}
	}
	return 0, nil
}

// sameCommit reports whether a commit of the log is the known one. Of some only the position is known.
func sameCommit(known, found *store.Commit) bool {
	if found.Seq != known.Seq {
		return false
	}
	if len(known.Events) == 0 || found.Unreadable != nil || known.Unreadable != nil {
		return true
	}
	if len(found.Events) != len(known.Events) {
		return false
	}
	a, b := &known.Events[0], &found.Events[0]
	return a.Kind == b.Kind && a.At == b.At && a.ExecutionID == b.ExecutionID
}
