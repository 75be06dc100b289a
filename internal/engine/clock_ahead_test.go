package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// aheadStore is a store that fails the first looks at timers ahead, and keeps how far the last one went.
type aheadStore struct {
	store.Store
	fail  atomic.Int64 // looks that fail from now on
	looks atomic.Int64
	span  atomic.Int64 // of the last look
}

func (s *aheadStore) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) ([]store.Timer, error) {
	s.looks.Add(1)
	s.span.Store(to.Sub(from))
	if s.fail.Add(-1) >= 0 {
		return nil, &store.Fault{Kind: store.Unavailable, Err: errors.New("not now")}
	}
	return s.Store.TimersAhead(ctx, from, to, after, limit)
}

func TestL5_a_look_at_what_lies_ahead_that_fails_is_begun_again_and_goes_as_far_as_any_pause(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &aheadStore{Store: w.store}
		s.fail.Store(2)
		w.e = w.openEngine(s)
		w.turn(base.Hour)
		task := w.leased(5000, core.Submission{})
		w.setBack(base.Hour)
		w.armedSoon(given(task), 5100)
		if looks := s.looks.Load(); looks < 3 {
			t.Errorf("%d looks, of which two failed", looks)
		}
		if span, least := s.span.Load(), 30*base.Day; span < least {
			t.Errorf("looked %d ms ahead, want at least the longest pause of %d ms beyond the step", span, least)
		}
	})
}

func TestL5_follow_up_work_that_was_due_at_once_is_due_again_after_the_clock_was_set_back_and_what_others_work_on_is_left(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(base.Hour)
		w.submit(core.Submission{}) // the newest commit lies ahead
		closeEngine(t, w.e)
		const freeQuota = store.TimerKind(36) // any kind of follow-up work: what it names is gone
		now := w.now().Add(-base.Hour)
		left := []store.Timer{
			{Kind: freeQuota, At: now.Add(base.Hour), Texts: []string{"written by the clock ahead"}},
			{Kind: freeQuota, At: now.Add(20 * base.Second), Texts: []string{"taken by another process"}},
		}
		w.tamper(store.Changes{AddTimers: left})
		w.setBack(base.Hour)
		there := func() (texts []string) {
			for _, timer := range must(w.store.TimersAhead(w.ctx(), 0, w.now().Add(2*base.Hour), 0, 1000))(t) {
				if timer.Kind == freeQuota {
					texts = append(texts, timer.Texts...)
				}
			}
			slices.Sort(texts)
			return texts
		}
		same(t, "before", there(), []string{"taken by another process", "written by the clock ahead"})
		w.e = w.openEngine(w.store)
		eventually(t, "what was due at once is done", func() bool { return len(there()) == 1 })
		same(t, "what another works on", there(), []string{"taken by another process"})
	})
}

func TestL5_U58_a_job_is_removed_at_its_time_and_one_with_a_rate_goes_on_though_the_clock_was_set_back(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := w.submitMany(3, core.Submission{})
		over := w.bulk(engine.BulkRequest{Action: "hold", IDs: ids})
		w.turn(base.Hour)
		slow := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "release_hold", IDs: ids, RatePerSecond: 1}))(t)
		done := func() int { return must(w.e.BulkStatus(w.ctx(), operator, slow.JobID))(t).Done }
		eventually(t, "the first batch", func() bool { return done() == 1 })
		w.setBack(base.Hour)
		eventually(t, "the second batch", func() bool { return done() == 2 })
		w.turning(200, "the end", func() bool { return done() == 3 })

		w.turnTo(over.EndedAt.Add(7*base.Day - base.Second))
		w.looksAFew()
		same(t, "jobs before their time", w.left(bulkJobs), 2)
		w.turn(2 * base.Hour) // removals are rounded up to the hour
		eventually(t, "both jobs are gone", func() bool { return w.left(bulkJobs) == 0 })
	})
}

// stalling is a store whose first polls read the clock an hour before everything else, as those of a process that stalls in between do.
type stalling struct {
	store.Store
	over  atomic.Bool
	ahead atomic.Int64 // looks at timers ahead
}

func (s *stalling) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	seen, err := s.Store.Poll(ctx, ask)
	if !s.over.Load() {
		seen.Now = seen.Now.Add(-base.Hour)
	}
	return seen, err
}

func (s *stalling) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	s.over.Store(true) // the sweep compares the newest commit with the clock
	return s.Store.Log(ctx, after, limit)
}

func (s *stalling) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) ([]store.Timer, error) {
	s.ahead.Add(1)
	return s.Store.TimersAhead(ctx, from, to, after, limit)
}

func TestL5_a_process_that_stalls_in_its_first_poll_does_not_take_the_clock_for_one_that_was_set_back(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.turn(2 * base.Hour)
		w.submit(core.Submission{})
		closeEngine(t, w.e)
		s := &stalling{Store: w.store}
		w.e = w.openEngine(s)
		w.looksAFew()
		same(t, "the newest commit was compared", s.over.Load(), true)
		same(t, "looks at timers ahead", s.ahead.Load(), 0)
	})
}
