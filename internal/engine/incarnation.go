package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/flowfabric/flowfabric/internal/store"
)

// A database may come back with less than it had: a failover to a standby that was behind, a restored copy. What this process remembers is
// then false, and what it was told of may be lost. So all of its memory is of one incarnation of the database, that of the dictionary in
// use. A transaction that meets another one is refused, everything is forgotten at once (R3), and what was lost is looked into (R5).

// incarnations keeps memory and incarnation together.
type incarnations struct {
	mu   sync.RWMutex  // held for reading while something is remembered
	kick chan struct{} // another one came

	told sync.Mutex
	was  *store.Commit // the newest commit that was known before; nil: it is looked into
}

var errReborn = errors.New("the database has another incarnation than what was remembered is of")

// incarnation is the one that everything remembered is of.
func (e *Engine) incarnation() string { return e.dict.now().incarnation }

// dictionaryOf is the dictionary for a transaction that has loaded this. Stale, if it is of another incarnation than since.
func (e *Engine) dictionaryOf(ctx context.Context, since string, loaded *store.Loaded) (*dictionary, error) {
	if loaded.Incarnation != since {
		if err := e.dict.reload(ctx); err != nil {
			return nil, err
		}
		return nil, &store.Fault{Kind: store.Stale, Err: errReborn}
	}
	dict, err := e.dict.at(ctx, loaded.Dictionary)
	if err == nil && dict.incarnation != since {
		err = &store.Fault{Kind: store.Stale, Err: errReborn}
	}
	return dict, err
}

// remembers lets note take what the unit has seen and done into memory, unless that is of another incarnation by now.
func (u *unit) remembers(note func()) {
	u.e.lives.mu.RLock()
	defer u.e.lives.mu.RUnlock()
	if u.e.incarnation() == u.since {
		note()
	}
}

// reborn forgets everything and takes the dictionary of another incarnation into use (R3). Whoever has looked at something remembered
// before has looked at the incarnation before that, and is refused.
func (e *Engine) reborn(next *dictionary) {
	before, known := e.incarnation(), e.forgetAll(next)
	e.cfg.Logger.Warn("the database has another incarnation: a failover, a restore or a restart; everything remembered is read anew",
		"incarnation_before", before, "incarnation", next.incarnation)
	e.lives.ask(known)
}

// forgetAll forgets everything remembered, and returns the newest commit that this process was told of.
func (e *Engine) forgetAll(next *dictionary) store.Commit {
	e.lives.mu.Lock()
	defer e.lives.mu.Unlock()
	e.recall.forgetAll()
	e.slots.forgetAll()
	e.picker.forgetAll()
	e.drains.forgetAll()
	e.keys.forgetAll()
	e.spaces.forget()
	e.signing.forget()
	e.waitpoints.forgetAll()
	e.follower.lost()
	known := e.log.forget()
	e.dict.current.Store(next)
	return known
}

// ask has looked into whether a commit is still there.
func (l *incarnations) ask(known store.Commit) {
	l.told.Lock()
	defer l.told.Unlock()
	if l.was == nil || l.was.Seq < known.Seq {
		l.was = &known
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// asked is the commit that is to be looked into; nil: none.
func (l *incarnations) asked() *store.Commit {
	l.told.Lock()
	defer l.told.Unlock()
	return l.was
}

// answered says that it was looked into.
func (l *incarnations) answered(known *store.Commit) {
	l.told.Lock()
	defer l.told.Unlock()
	if l.was == known {
		l.was = nil
	}
}

// watch looks into what was lost whenever another incarnation came, until ctx ends. What fails is tried again.
func (e *Engine) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.lives.kick:
		}
		for known := e.lives.asked(); known != nil; known = e.lives.asked() {
			err := e.lookInto(ctx, known)
			if err == nil {
				e.lives.answered(known)
				continue
			}
			e.notes.Warn("it cannot be looked into yet whether commits were lost", "error", err)
			timer := e.cfg.Clock.NewTimer(e.cfg.PollInterval)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}
}

// lookInto finds out whether the newest commit that this process was told of is still in the log, and records if it is not (R5).
func (e *Engine) lookInto(ctx context.Context, known *store.Commit) error {
	seen, err := e.store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return err
	}
	if seen.Incarnation != e.incarnation() {
		if err := e.dict.reload(ctx); err != nil {
			return err
		}
		return errReborn
	}
	e.follower.moved(seen.Projected)
	kept := known.Seq <= seen.LogStart // nobody can tell any more, but the log went further
	if !kept {
		commits, err := e.store.Log(ctx, known.Seq-1, 1)
		if err != nil {
			return err
		}
		kept = len(commits) > 0 && sameCommit(known, &commits[0])
	}
	if !kept {
		if err := e.recordLoss(ctx, seen.Incarnation, known.Seq, min(seen.LogEnd, known.Seq-1)); err != nil {
			return err
		}
		e.log.setBack(seen.LogEnd)
		e.waits.wakeAll()
	}
	e.log.look()
	return nil
}

// sameCommit tells whether a commit of the log is the one that was known. Of some nothing but the position is known.
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
