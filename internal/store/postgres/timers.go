package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// TakeDue returns due timers and hides each from other callers for a while.
func (s *Store) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var taken []store.Timer
	read := readTimers(&taken)
	others := smallints(len(except))
	for _, kind := range except {
		others.smallint(int(kind))
	}
	values := append([][]byte{integer(int32(limit)), bigint(hide.Milliseconds())}, arguments(others)...)
	err := s.alone(ctx, func(t *trip) {
		if s.cfg.Now != nil {
			t.add("take_due", read, append(values, bigint(int64(s.cfg.Now())))...)
			return
		}
		t.add("take_due_now", read, values...)
	})
	if err != nil {
		return nil, commitFault(err, true)
	}
	slices.SortFunc(taken, func(a, b store.Timer) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Seq, b.Seq)) })
	return taken, nil
}

// readTimers returns a function that appends the timers that are read to a list.
func readTimers(list *[]store.Timer) func(r row) error {
	return func(r row) (err error) {
		timer := store.Timer{Seq: r.bigint(0), At: r.time(1), Kind: store.TimerKind(r.smallint(2)), Tries: int(r.int(3))}
		if timer.IDs, err = r.uuids(4); err != nil {
			return err
		}
		timer.Texts, err = r.texts(5)
		*list = append(*list, timer)
		return err
	}
}

// TimersAhead returns timers that are due after from, and by to.
func (s *Store) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) (ahead []store.Timer, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	err = s.alone(ctx, func(t *trip) {
		t.add("timers_ahead", readTimers(&ahead), bigint(int64(from)), bigint(int64(to)), bigint(after), integer(int32(limit)))
	})
	return ahead, fault(err)
}

// HideTimers hides timers that are still being handled.
func (s *Store) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	seq := bigints(len(timers))
	for i := range timers {
		seq.bigint(timers[i].Seq)
	}
	values := append(arguments(seq), bigint(hide.Milliseconds()))
	err := s.alone(ctx, func(t *trip) {
		if s.cfg.Now != nil {
			t.add("hide_timers", nil, append(values, bigint(int64(s.cfg.Now())))...)
			return
		}
		t.add("hide_timers_now", nil, values...)
	})
	if err != nil {
		return commitFault(err, true)
	}
	return nil
}

// Poll returns everything that an idle process needs to know, in one trip.
func (s *Store) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var answer store.PollAnswer
	err := again(func() (err error) {
		answer, err = s.pollBy(ctx, s.memory.Load(), &ask)
		return err
	})
	return answer, err
}

func (s *Store) pollBy(ctx context.Context, m *memory, ask *store.PollAsk) (answer store.PollAnswer, err error) {
	if err := s.findLog(ctx, m); err != nil {
		return store.PollAnswer{}, err
	}
	err = s.alone(ctx, func(t *trip) {
		values := slices.Concat(beforeColumns(ask.Queues), [][]byte{bigint(m.log.end())}, docRefColumns(ask.Docs))
		t.add("poll", func(r row) (err error) {
			answer.Now, answer.Dictionary = r.time(0), r.bigint(1)
			answer.NextTimer, answer.LogEnd, answer.LogNewest = r.time(3), r.bigint(4), r.bigint(5)
			answer.Projected, answer.Inbox, answer.LogStart, answer.Incarnation = r.bigint(6), r.bool(7), r.bigint(8), m.name(r[10])
			if answer.Queues, err = r.bools(2); err == nil {
				answer.Docs, err = r.bools(9)
			}
			return err
		}, values...)
		s.beat(t)
	})
	if err != nil {
		return store.PollAnswer{}, fault(err)
	}
	if answer.Incarnation != m.incarnation {
		s.remembered(answer.Incarnation)
		return store.PollAnswer{}, errMet
	}
	answer.Now = s.observe(m, answer.Now, answer.Dictionary)
	m.log.known(answer.LogEnd)
	if answer.LogNewest > answer.LogEnd {
		// A number is missing: check whether it is lost, so that readers do not wait for it longer than needed.
		if _, err := s.Log(ctx, answer.LogEnd, gapLook); err != nil {
			return store.PollAnswer{}, err
		}
		answer.LogEnd = max(answer.LogEnd, m.log.end())
	}
	answer.LogNewest = max(answer.LogNewest, answer.LogEnd) // rows of the log may be removed already
	return answer, nil
}

// findLog finds the position at which to start looking for the end of the log, if it is unknown in this incarnation.
func (s *Store) findLog(ctx context.Context, m *memory) error {
	if !m.log.unknown() {
		return nil
	}
	return fault(s.alone(ctx, func(t *trip) {
		t.add("log_standing", func(r row) error {
			m.log.known(r.bigint(0))
			return nil
		})
	}))
}
