package txn

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Classes are created with the executions that need them; a fairness key for each user creates one class for each. Classes without executions are
// removed in two rounds: the first retires them, so that a submit registers them again, and a later one drops those that still have none. In
// between every transaction has ended that found them in an older dictionary.

const (
	classRound = 6 * time.Hour    // how often classes are looked at: that reads every execution
	classLook  = 10 * time.Minute // how long a look may take
	classRest  = 10 * base.Minute // how long a class is retired at least before it is dropped
	classLot   = 20_000           // classes a transaction
)

// classRounds decides when classes are examined: as long as an execution was removed since the last round that left nothing to do.
type classRounds struct {
	removed atomic.Int64 // executions
	settled atomic.Int64 // the number removed before the last such round
	last    time.Time
}

// forgetClasses starts a round on its own goroutine if it is time for one.
func (s *sweeper) forgetClasses(ctx context.Context) {
	now := s.e.Cfg.Clock.Now()
	removed := s.classes.removed.Load()
	if removed == s.classes.settled.Load() || now.Sub(s.classes.last) < classRound {
		return
	}
	s.classes.last = now
	s.e.loops.Go(func() { _ = s.e.Guard(inUpkeep, func() { s.classRound(ctx, removed) }) })
}

// classRound is one round; removed is the number of removed executions when it began.
func (s *sweeper) classRound(ctx context.Context, removed int64) {
	ctx, cancel := context.WithTimeout(ctx, classLook)
	defer cancel()
	more, err := s.e.forgetClasses(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.e.QuietLog.Warn("classes without executions could not be removed", "error", err)
	case err == nil && !more:
		s.classes.settled.Store(removed)
	}
}

// forgetClasses drops the classes that were retired long ago and still have no executions, and retires the others without executions. more reports
// whether some wait for the next round.
func (e *Engine) forgetClasses(ctx context.Context) (more bool, err error) {
	if err := e.Dict.Reload(ctx); err != nil {
		return false, err
	}
	retired, dict := map[int32]base.Time{}, e.Dict.Now()
	for _, class := range dict.retired {
		retired[class.ID] = class.Since
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return false, err
	}
	unused, err := e.Store.UnusedClasses(ctx)
	if err != nil {
		return false, err
	}
	var retire, drop []store.RetiredClass
	for _, id := range unused {
		switch since, before := retired[id]; {
		case !before:
			retire = append(retire, store.RetiredClass{ID: id, Since: now})
		case since.Add(classRest) <= now:
			drop = append(drop, store.RetiredClass{ID: id, Since: since})
		default:
			more = true
		}
	}
	for lot := range slices.Chunk(drop, classLot) {
		if err := e.writeSince(ctx, dict.incarnation, "drop_classes", &store.Changes{DropClasses: lot}); err != nil {
			return more, err
		}
	}
	for lot := range slices.Chunk(retire, classLot) {
		if err := e.writeSince(ctx, dict.incarnation, "retire_classes", &store.Changes{RetireClasses: lot}); err != nil {
			return more, err
		}
	}
	return more || len(retire) > 0, nil
}
