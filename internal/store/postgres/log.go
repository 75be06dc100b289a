package postgres

import (
	"context"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// gapLook is how many rows are read to find what follows a missing number.
const gapLook = 100

// logReader is a process's view of the log: the position up to which every number is accounted for, and the first number that is missing after it.
//
// Numbers are drawn late in a transaction, which has its transaction id by then. If a number is missing while a higher one is committed, its
// transaction is either still open, with an id below any that is assigned from then on, or gone. So the reader takes an id too. As soon as a later
// snapshot shows that all transactions with lower ids have ended (its xmin has reached that id) and the number is still missing, it will never
// appear. The xmax of a snapshot does not suffice: it is above all ids that have ended, but not above all that are open. Most missing numbers
// appear at once, so the id is taken only if a second read still misses the same one.
type logReader struct {
	mu       sync.Mutex
	found    bool  // the start position was looked up
	position int64 // every number up to here is accounted for
	missing  int64 // first number missing, 0: none
	next     int64 // first number present after it
	horizon  int64 // a transaction id that was assigned when both were known; 0: not yet
}

// known advances the position.
func (l *logReader) known(position int64) {
	l.mu.Lock()
	l.found, l.position = true, max(l.position, position)
	l.mu.Unlock()
}

// unknown reports whether nothing is known of the log yet.
func (l *logReader) unknown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.found
}

func (l *logReader) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.position
}

// doubted returns the number that the last read missed; 0 if none is missing any more, or its horizon is known.
func (l *logReader) doubted() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.horizon != 0 || l.missing <= l.position {
		return 0
	}
	return l.missing
}

// lost records a gap and returns those of its numbers that will never appear.
func (l *logReader) lost(g gap) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.missing != g.missing:
		l.missing, l.next, l.horizon = g.missing, g.next, 0
		return nil
	case l.horizon == 0:
		l.next, l.horizon = g.next, g.given
		return nil
	case g.xmin < l.horizon:
		return nil
	}
	var numbers []int64
	for n := g.missing; n < min(l.next, g.next); n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// gap is a gap in the log as seen by one snapshot.
type gap struct {
	missing, next int64
	xmin          int64
	given         int64 // a transaction id that was assigned after the snapshot was taken, 0: none
}

// Log returns consecutive commits after a position.
func (s *Store) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	commits, hole, err := s.readLog(ctx, after, limit)
	if err != nil {
		return nil, fault(err)
	}
	if hole == nil {
		return commits, nil
	}
	numbers := s.memory.Load().log.lost(*hole)
	if len(numbers) == 0 {
		return commits, nil
	}
	if err := s.fill(ctx, numbers); err != nil {
		return nil, fault(err)
	}
	commits, _, err = s.readLog(ctx, after, limit)
	return commits, fault(err)
}

// readLog reads up to the first gap.
func (s *Store) readLog(ctx context.Context, after int64, limit int) ([]store.Commit, *gap, error) {
	var commits []store.Commit
	var hole *gap
	log := &s.memory.Load().log
	last, doubted := int64(0), log.doubted()
	err := s.alone(ctx, func(t *trip) {
		t.add("read_log", func(r row) error {
			if last == 0 {
				last = max(after, r.bigint(3))
			}
			seq := r.bigint(0)
			switch {
			case hole != nil:
				return nil
			case seq != last+1:
				hole = &gap{missing: last + 1, next: seq, xmin: r.bigint(4), given: r.bigint(5)}
				return nil
			}
			last = seq
			commits = append(commits, commitOf(r))
			return nil
		}, bigint(after), integer(int32(limit)), bigint(doubted), bigint(store.LogBytes))
	})
	if err == nil && after <= log.end() {
		log.known(last)
	}
	return commits, hole, err
}

// commitOf reads a row of the log. An empty body is a number whose transaction was rolled back.
func commitOf(r row) store.Commit {
	commit := store.Commit{Seq: r.bigint(0), At: r.time(1), Stored: len(r[2])}
	if len(r[2]) > 0 {
		commit.Events, commit.Unreadable = store.DecodeCommit(r[2])
	}
	return commit
}

// fill writes empty rows for numbers that will never appear, so that every reader can pass them.
func (s *Store) fill(ctx context.Context, numbers []int64) error {
	column := bigints(len(numbers))
	for _, n := range numbers {
		column.bigint(n)
	}
	now, _, _, err := s.carried(ctx)
	if err != nil {
		return err
	}
	return s.alone(ctx, func(t *trip) { t.add("fill_log", nil, column.argument(), bigint(int64(now))) })
}

// fillDrawn fills the number of a transaction that was rolled back after drawing it. If that fails, readers find out by themselves that it will
// never appear.
func (s *Store) fillDrawn(ctx context.Context, seq int64, now base.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	column := bigints(1)
	column.bigint(seq)
	err := s.alone(ctx, func(t *trip) { t.add("fill_log", nil, column.argument(), bigint(int64(now))) })
	if err != nil {
		s.notes.Warn("a number of the event log stays empty until readers notice", "seq", seq, "error", err)
	}
}
