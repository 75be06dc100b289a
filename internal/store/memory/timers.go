package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// timerRow is an entry of the due index.
type timerRow struct {
	store.Timer
	due base.Time // when it can be taken: its time, or the end of its hiding
}

func (t *timerRow) copy() store.Timer {
	c := t.Timer
	c.IDs, c.Texts = slices.Clone(t.IDs), slices.Clone(t.Texts)
	return c
}

func (m *image) applyTimers(ch *store.Changes) {
	if len(ch.DropTimers) > 0 {
		m.timers = slices.DeleteFunc(m.timers, func(t *timerRow) bool {
			return slices.ContainsFunc(ch.DropTimers, func(drop store.Timer) bool { return drop.Seq == t.Seq })
		})
	}
	for i := range ch.AddTimers {
		m.lastTimer++
		row := &timerRow{Timer: ch.AddTimers[i], due: ch.AddTimers[i].At}
		row.Timer = row.copy()
		row.Seq, row.Tries = m.lastTimer, 0
		m.timers = append(m.timers, row)
	}
}

// TakeDue returns due timers and hides each from other callers for a while.
func (s *Store) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) (taken []store.Timer, err error) {
	err = s.during(ctx, func() error {
		now := s.d.cfg.Now()
		var due []*timerRow
		for _, t := range s.d.rows.timers {
			if t.due <= now && !slices.Contains(except, t.Kind) {
				due = append(due, t)
			}
		}
		slices.SortFunc(due, func(a, b *timerRow) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Seq, b.Seq)) })
		for _, t := range due[:min(limit, len(due))] {
			taken = append(taken, t.copy())
			t.due = now.Add(hide.Milliseconds())
			t.Tries++
		}
		slices.SortFunc(taken, func(a, b store.Timer) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Seq, b.Seq)) })
		return nil
	})
	return taken, err
}

// HideTimers hides timers that are still being handled.
func (s *Store) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	return s.during(ctx, func() error {
		until := s.d.cfg.Now().Add(hide.Milliseconds())
		for _, t := range s.d.rows.timers {
			if t.due < until && slices.ContainsFunc(timers, func(hidden store.Timer) bool { return hidden.Seq == t.Seq }) {
				t.due = until
			}
		}
		return nil
	})
}

// TimersAhead returns timers that are due after from, and by to.
func (s *Store) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) (ahead []store.Timer, err error) {
	err = s.during(ctx, func() error {
		for _, t := range s.d.rows.timers {
			if t.due > from && t.due <= to && t.Seq > after && len(ahead) < limit {
				ahead = append(ahead, t.copy())
			}
		}
		return nil
	})
	return ahead, err
}

// Poll returns everything that an idle process needs to know.
func (s *Store) Poll(ctx context.Context, ask store.PollAsk) (a store.PollAnswer, err error) {
	err = s.during(ctx, func() error {
		m, r := s.d.rows, s.observe()
		a = store.PollAnswer{
			Now: r.now, Dictionary: r.dictionary, Incarnation: r.incarnation, LogStart: m.logStart, LogEnd: m.logEnd(), LogNewest: m.logNewest(),
			Projected: m.projected, Inbox: len(m.inbox) > 0,
		}
		for _, q := range ask.Queues {
			rows := m.queues[queueKey{q.Class, q.Block}]
			a.Queues = append(a.Queues, len(rows) > 0 && rows[0].Order < q.Order)
		}
		for _, ref := range ask.Docs {
			a.Docs = append(a.Docs, m.doc(ref) != nil)
		}
		for _, t := range m.timers {
			if a.NextTimer == 0 || t.due < a.NextTimer {
				a.NextTimer = t.due
			}
		}
		return nil
	})
	return a, err
}
