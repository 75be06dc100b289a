package txn

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	sweepLimit    = 500                     // timers taken at a time (S61)
	sweepHide     = 1500 * time.Millisecond // a timer taken by a process that then dies is taken again after this time (S62)
	hideAgain     = sweepHide / 3           // how often what is still being handled is hidden again
	sweepPatience = 100 * time.Millisecond  // how long a slow kind of timer delays the others at most (S61)
	maintainEvery = time.Minute
	longestSleep  = time.Hour
)

// sweeper is the one loop that turns all timers (S60), and the safety poll (S71).
type sweeper struct {
	e       *Engine
	kick    chan struct{}
	ended   chan struct{} // a kind of timer has been handled
	classes classRounds
	began   bool // the clock was compared with the log

	mu     sync.Mutex
	next   base.Time   // earliest known timer, by the store's clock; absent: none
	offset base.Millis // store's clock minus the host's
	clock  clockWatch
	kinds  map[store.TimerKind]bool // that are being handled
	works  map[store.TimerKind]*workKind
}

func newSweeper(e *Engine) *sweeper {
	return &sweeper{
		e: e, kick: make(chan struct{}, 1), ended: make(chan struct{}, 1), kinds: map[store.TimerKind]bool{}, works: map[store.TimerKind]*workKind{},
	}
}

// armed records the time of a timer that this process has written, or that the poll has seen.
func (s *sweeper) armed(at base.Time) {
	if at == 0 || s.e.Cfg.NoTimers {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 || at < s.next {
		s.next = at
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// sees records the store's clock, which was read within a span of time, and returns by how much it was set since the last call.
func (s *sweeper) sees(now base.Time, read ClockRead) (step base.Millis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = read.Offset(now, s.offset)
	return s.clock.sees(now, read)
}

// Ahead returns how far the store's clock is ahead of the host's.
func (s *sweeper) Ahead() base.Millis {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset
}

// StoreNow estimates the store's clock.
func (s *sweeper) StoreNow() base.Time { return s.storeTime(s.e.Cfg.Clock.Now()) }

// storeTime estimates the store's clock at a time of the host's clock.
func (s *sweeper) storeTime(host time.Time) base.Time {
	return base.TimeOf(host).Add(s.Ahead())
}

// run polls and runs timers until ctx ends. Periodic work is first done one period after the engine was opened, however late this goroutine begins.
func (s *sweeper) run(ctx context.Context, opened time.Time) {
	polled, maintained := opened, opened
	s.poll(ctx)
	for {
		timer := s.e.Cfg.Clock.NewTimerAt(s.wakesAt(polled))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.kick:
		case <-timer.C:
		}
		timer.Stop()
		if s.untilDue(s.e.Cfg.Clock.Now()) <= 0 {
			s.turn(ctx)
		}
		if now := s.e.Cfg.Clock.Now(); !now.Before(polled.Add(s.e.Cfg.PollInterval)) {
			polled = now
			s.poll(ctx)
			if s.e.Cfg.NoTimers {
				continue
			}
			if now.Sub(maintained) >= maintainEvery {
				maintained = now
				s.maintain(ctx)
				s.forgetClasses(ctx)
			}
		}
	}
}

// wakesAt returns when there is something to do: the earliest known timer is due, or the next poll.
func (s *sweeper) wakesAt(polled time.Time) time.Time {
	now := s.e.Cfg.Clock.Now()
	return Sooner(now.Add(s.untilDue(now)), polled.Add(s.e.Cfg.PollInterval))
}

// untilDue returns the time from now until the earliest known timer.
func (s *sweeper) untilDue(now time.Time) time.Duration {
	next := s.nextKnown()
	if next == 0 {
		return longestSleep
	}
	return min(time.Duration(next.Sub(s.storeTime(now)))*time.Millisecond, longestSleep)
}

// nextKnown returns the earliest known timer; absent: none.
func (s *sweeper) nextKnown() base.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// forgetNext forgets the earliest timer: the poll finds it again.
func (s *sweeper) forgetNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = 0
}

// turn handles due timers until only those of kinds that are still being handled are left.
func (s *sweeper) turn(ctx context.Context) {
	s.forgetNext()
	for ctx.Err() == nil {
		// A timer that is taken is hidden for sweepHide, and removed only after it was handled: if this process dies, it shows up again. Two
		// processes may therefore handle the same timer. What it leads to looks at the record under its lock, so the second finds nothing to do.
		since := s.e.Incarnation()
		timers, err := s.e.Store.TakeDue(ctx, sweepLimit, sweepHide, s.atWork()...)
		if s.e.Failed(err) != nil {
			s.e.QuietLog.Warn("cannot look for due timers", "error", err)
			s.armed(s.StoreNow().Add(base.Second))
			return
		}
		s.e.fired(timers, s.StoreNow())
		s.e.logSwept(timers)
		s.handle(ctx, since, timers)
		s.settle(ctx)
		if len(timers) < sweepLimit {
			break
		}
	}
	s.ask(ctx, false) // finds the next timer
}

// poll backs up all hints, and is how an idle process finds timers that others armed (S71). Only poll asks about queues, so that many due timers
// cost no further queue reads.
func (s *sweeper) poll(ctx context.Context) { s.ask(ctx, true) }

// ask polls the store for everything that the process needs, with queues also for rows that contradict what is cached of them.
func (s *sweeper) ask(ctx context.Context, queues bool) {
	// The answer may be older than what this process learns while it is read. It is used only to doubt: a queue is looked at again, the next timer
	// may be earlier, the log may be longer. An old answer costs a look and hides nothing.
	ask, learn := s.e.Dispatcher.Poll(queues)
	read := s.begins()
	seen, err := s.e.Store.Poll(ctx, ask)
	if s.e.Failed(err) != nil {
		return // the next poll comes soon
	}
	read.To = s.e.Cfg.Clock.Now()
	learn(&seen)
	s.stepped(ctx, s.sees(seen.Now, read), &seen)
	s.armed(seen.NextTimer)
	if end, _ := s.e.Log.Position(); seen.LogEnd > end {
		s.e.Meter.Woken(WokenByPoll)
		s.e.Log.look()
	}
	s.e.Follower.moved(seen.Incarnation, seen.Projected)
	// If this fails, the next poll tries again.
	if seen.Incarnation != s.e.Dict.Now().incarnation {
		_ = s.e.Dict.Reload(ctx)
	} else {
		_, _ = s.e.Dict.At(ctx, seen.Dictionary)
	}
	if seen.Inbox && !s.e.Cfg.NoTimers {
		s.e.Meter.Woken(WokenByPoll)
		s.e.Ingest(ctx)
	}
}

func (s *sweeper) maintain(ctx context.Context) {
	var before base.Time
	if s.e.Cfg.EventRetention > 0 {
		before = s.StoreNow().Add(-s.e.Cfg.EventRetention.Milliseconds())
	}
	if err := s.e.Store.Maintain(ctx, before); err != nil && ctx.Err() == nil {
		s.e.QuietLog.Warn("maintenance of the store failed", "error", err)
	}
}

// handle starts to run every timer through the rule of its kind. Each kind has its own goroutine, so that none waits for another (S61). Work that
// may take long runs a few at a time.
func (s *sweeper) handle(ctx context.Context, since string, timers []store.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := map[store.TimerKind][]store.Timer{}
	for _, timer := range timers {
		kinds[timer.Kind] = append(kinds[timer.Kind], timer)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		list := kinds[kind]
		if s.e.isWork(kind) {
			s.workOn(ctx, since, kind, list)
			continue
		}
		s.kinds[kind] = true
		s.begin(ctx, since, list, func() { delete(s.kinds, kind) })
	}
}

// begin handles timers on a goroutine of their own, then calls done with the lock held.
func (s *sweeper) begin(ctx context.Context, since string, timers []store.Timer, done func()) {
	s.e.loops.Go(func() {
		applied := make(chan struct{})
		s.e.loops.Go(func() {
			_ = s.e.Guard(inTimer, func() { s.keepHidden(ctx, applied, func() []store.Timer { return timers }) })
		})
		_ = s.e.Guard(inTimer, func() { s.apply(ctx, since, timers) })
		close(applied)
		s.finished(done)
	})
}

// finished records that timers have been handled.
func (s *sweeper) finished(done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done()
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// keepHidden hides timers from other processes while they are handled.
func (s *sweeper) keepHidden(ctx context.Context, applied <-chan struct{}, timers func() []store.Timer) {
	for {
		timer := s.e.Cfg.Clock.NewTimer(hideAgain)
		select {
		case <-applied:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		// If this fails, another process may take them too, which is harmless (S64).
		_ = s.e.Failed(s.e.Store.HideTimers(ctx, timers(), sweepHide))
	}
}

// atWork are the kinds that are being handled, and those of work that has no place free.
func (s *sweeper) atWork() []store.TimerKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := slices.Collect(maps.Keys(s.kinds))
	for kind, w := range s.works {
		if w.full() {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// settle waits a short time for the kinds that are being handled.
func (s *sweeper) settle(ctx context.Context) {
	timer := s.e.Cfg.Clock.NewTimer(sweepPatience)
	defer timer.Stop()
	for len(s.atWork()) > 0 {
		select {
		case <-s.ended:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// apply runs timers of one kind through its rule and removes those that are done. since is the incarnation as it was before they were taken: in
// another one their numbers may belong to other timers.
func (s *sweeper) apply(ctx context.Context, since string, timers []store.Timer) {
	done := s.applyTogether(ctx, timers)
	if done == nil {
		done = s.applyEach(ctx, timers)
	}
	if len(done) == 0 {
		return
	}
	if err := s.e.writeSince(ctx, since, "sweep", &store.Changes{DropTimers: done}); err != nil {
		s.e.QuietLog.Warn("handled timers could not be removed; they will be looked at again", "error", err)
	}
}

func (s *sweeper) applyEach(ctx context.Context, timers []store.Timer) (done []store.Timer) {
	for _, timer := range timers {
		if err := s.e.applyRule(ctx, timer); err != nil {
			if err = s.e.setTimerAside(ctx, timer, err); err != nil {
				s.postpone(timer, err)
				continue
			}
		}
		done = append(done, timer)
	}
	return done
}

// applyRule runs a timer through the rule of its kind. A panic becomes its error.
func (e *Engine) applyRule(ctx context.Context, timer store.Timer) (err error) {
	defer func() { err = e.Caught(inTimer, recover(), err) }()
	rule := e.extensions.timers[timer.Kind]
	if rule.Do == nil {
		e.QuietLog.Error("a timer of an unknown kind was dropped", "kind", timer.Kind)
		return nil
	}
	if e.Cfg.Trap != nil {
		e.Cfg.Trap("timer:"+e.TimerLabel(timer.Kind), strings.Join(append(textsOf(timer.IDs), timer.Texts...), " "))
	}
	return rule.Do(ctx, timer)
}

// applyTogether handles all timers in one call, where the rule of their kind asks for that. It returns nil if that fails, or if the kind is another
// one: they are then handled one by one.
func (s *sweeper) applyTogether(ctx context.Context, timers []store.Timer) []store.Timer {
	if len(timers) < 2 || !s.e.extensions.timers[timers[0].Kind].Together {
		return nil
	}
	all := store.Timer{Kind: timers[0].Kind}
	for _, timer := range timers {
		all.Texts = append(all.Texts, timer.Texts...)
	}
	if s.e.applyRule(ctx, all) != nil {
		return nil
	}
	return timers
}

// postpone leaves a timer whose rule failed because of the store: it is taken again when it is no longer hidden (S63).
func (s *sweeper) postpone(timer store.Timer, err error) {
	s.e.QuietLog.Warn("a timer could not be handled", "kind", timer.Kind, "tries", timer.Tries, "error", err)
	s.armed(s.StoreNow().Add(sweepHide.Milliseconds()))
}

// Write commits changes that need no rows to be loaded.
func (e *Engine) Write(ctx context.Context, name string, ch *store.Changes) error {
	return e.writeSince(ctx, e.Incarnation(), name, ch)
}

// writeSince is write for changes that contain numbers of the store: since is the incarnation as it was before those were read.
func (e *Engine) writeSince(ctx context.Context, since, name string, ch *store.Changes) error {
	u, err := e.beginSince(ctx, since, store.Want{})
	if err != nil {
		return err
	}
	defer u.StoreTx.Rollback(ctx)
	u.Changes = *ch
	return u.Commit(ctx, []string{name})
}
