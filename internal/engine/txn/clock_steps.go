package txn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The clock of the store may be set, forward by mistake and back again. After a step forward everything fires that is due by then; that cannot be
// distinguished from time that has passed. After a step back, what was touched meanwhile has times in the future: a lease of some seconds would
// last until the clock has come there again (core.Execution.Ahead). A transaction that touches such an execution arms its timer for the time that
// is left of it (Tx.arm). Executions that are not touched any more have an entry far ahead in the due index: they are searched once, when the
// clock was set back.
//
// Other records with times in the future are served late: instances of workers, whose claims keep them alive, and what is due at a fixed time. The
// log and the doctor's report show each step.

// clockWatch compares the store's clock with the time that has passed in this process.
type clockWatch struct {
	latest atomic.Int64 // the latest moment of which a transaction was: a step forward and back may come between two polls

	// As read by polls. The sweeper's lock protects it.
	store base.Time
	read  ClockRead
	last  clockStep
	// unlooked is the time up to which timers ahead of the clock must be searched.
	unlooked base.Time
}

// of records the time of a transaction.
func (w *clockWatch) of(now base.Time) {
	for seen := w.latest.Load(); int64(now) > seen && !w.latest.CompareAndSwap(seen, int64(now)); seen = w.latest.Load() {
	}
}

// clockStep is a step of the store's clock.
type clockStep struct {
	At base.Time // when it was noticed, by the clock after it
	By base.Millis
}

// ClockRead is when the store's clock was read, by the host's clock: at some time between the request and the answer, which may be far apart if the
// store is slow or this process stalls.
type ClockRead struct {
	From, To time.Time
	latest   base.Time // the latest transaction that was known when the question was asked
}

// begins opens a clockRead, which ends with the answer.
func (s *sweeper) begins() ClockRead {
	return ClockRead{From: s.e.Cfg.Clock.Now(), latest: base.Time(s.clock.latest.Load())}
}

// Offset returns how far a clock that showed now is ahead of the host's. A span allows a range of values; a known value within it is kept, since a
// shorter span may have found it.
func (r ClockRead) Offset(now base.Time, known base.Millis) base.Millis {
	return min(max(known, now.Sub(base.TimeOf(r.To))), now.Sub(base.TimeOf(r.From)))
}

// passed is the least and the most time that may lie between the readings of two spans, by the monotonic clock.
func (r ClockRead) passed(later ClockRead) (least, most base.Millis) {
	return max(later.From.Sub(r.To).Milliseconds(), 0), later.To.Sub(r.From).Milliseconds()
}

// sees records what a poll has read, and returns by how much the clock was set since the last one, back if it went both ways; 0: by nothing that
// matters.
func (w *clockWatch) sees(now base.Time, read ClockRead) (by base.Millis) {
	if w.store != 0 {
		least, most := w.read.passed(read)
		moved := now.Sub(w.store)
		by = moved - min(max(moved, least), most)
	}
	// A transaction after the request may be later than the answer, so only earlier ones count.
	if back := now.Sub(read.latest); back < -core.ClockStep {
		by = min(by, back)
		w.latest.CompareAndSwap(int64(read.latest), int64(now))
	}
	if w.store, w.read = now, read; max(by, -by) <= core.ClockStep {
		return 0
	}
	w.last = clockStep{At: now, By: by}
	return by
}

// LastStep returns the last step of the store's clock that this process has noticed; zero: there was none.
func (s *sweeper) LastStep() clockStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.last
}

// LastRead returns the store's clock as the last poll has read it.
func (s *sweeper) LastRead() base.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.store
}

// stepped handles a step of the store's clock, and at the start of the process one that happened before.
func (s *sweeper) stepped(ctx context.Context, by base.Millis, seen *store.PollAnswer) {
	if !s.began {
		by = s.steppedBefore(ctx, seen.LogEnd)
	}
	if by != 0 {
		s.e.QuietLog.Warn("the store's clock was set, or this process stood still", "step", InSeconds(by))
	}
	if by < 0 && !s.e.Cfg.NoTimers {
		s.lookAhead(seen.Now.Add(-by + aheadLooked))
	}
	if until := s.unlooked(); until > seen.Now {
		s.e.loops.Go(func() { _ = s.e.Guard(inTimer, func() { s.armAhead(ctx, seen.Now, until) }) })
	}
}

// lookAhead makes the next poll search the timers up to a time.
func (s *sweeper) lookAhead(until base.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.unlooked = max(s.clock.unlooked, until)
}

// unlooked returns up to when timers must be searched, which the caller does now; absent: no search is needed.
func (s *sweeper) unlooked() (until base.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, s.clock.unlooked = s.clock.unlooked, 0
	return until
}

// InSeconds rounds a step for display: the time between two polls is known to some milliseconds only.
func InSeconds(by base.Millis) time.Duration {
	return (time.Duration(by) * time.Millisecond).Round(time.Second)
}

// steppedBefore returns by how much the clock was set back, at least, since the newest commit of the log; 0: by nothing that matters. The clock is
// read after that commit: the poll that found it may have read the clock long before, if this process stalled in between.
func (s *sweeper) steppedBefore(ctx context.Context, logEnd int64) base.Millis {
	newest, err := s.e.Store.Log(ctx, logEnd-1, 1)
	if err != nil {
		return 0
	}
	now, err := s.e.Store.Now(ctx)
	if s.began = err == nil; !s.began || len(newest) == 0 || newest[0].At.Sub(now) <= core.ClockStep {
		return 0
	}
	return now.Sub(newest[0].At)
}

// aheadLooked is how far beyond the time from which the clock was set back timers are searched: as far as the longest pause that a policy or a
// worker can ask for.
const aheadLooked = 30 * base.Day

// armAhead searches the timers ahead of a clock that was set back: executions with times ahead get new timers, and follow-up work that was due at
// once is due now. If it fails, the next poll starts it again.
func (s *sweeper) armAhead(ctx context.Context, now, until base.Time) {
	for after, more := int64(0), true; more && ctx.Err() == nil; {
		timers, err := s.e.Store.TimersAhead(ctx, now, until, after, sweepLimit)
		if err == nil {
			err = s.e.armAll(ctx, now, timers)
		}
		if err != nil {
			s.e.QuietLog.Warn("what was changed before the clock was set back may last longer than it should", "error", err)
			s.lookAhead(until)
			return
		}
		if more = len(timers) == sweepLimit; more {
			after = timers[len(timers)-1].Seq
		}
	}
}

func (e *Engine) armAll(ctx context.Context, now base.Time, timers []store.Timer) error {
	ch := &store.Changes{}
	for _, timer := range timers {
		switch {
		case timer.Kind == timerWake:
			if err := e.armWakes(ctx, timer); err != nil {
				return err
			}
		case e.dueAtOnce(timer.Kind) && timer.At.Sub(now) > core.ClockStep: // others are being worked on
			ch.DropTimers = append(ch.DropTimers, timer)
			timer.At = now
			ch.AddTimers = append(ch.AddTimers, timer)
		}
	}
	if len(ch.AddTimers) == 0 {
		return nil
	}
	if err := e.Write(ctx, "arm_ahead", ch); err != nil {
		return err
	}
	e.Sweep.armed(now)
	return nil
}

// dueAtOnce reports whether timers of a kind are for work that is due as soon as it is written, or some time after a failure.
func (e *Engine) dueAtOnce(kind store.TimerKind) bool {
	rule := e.extensions.timers[kind]
	return rule.Long && !rule.Delayed
}

// armWakes arms the timers of executions again whose times are ahead of the clock.
func (e *Engine) armWakes(ctx context.Context, timer store.Timer) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: timer.IDs, SkipUnreadable: true})
	if err != nil {
		return err
	}
	var cmds []Command
	for id, x := range loaded.Executions {
		if armedFar(x, loaded.Now) {
			cmds = append(cmds, &armAgain{id})
		}
	}
	for _, err := range e.DoAll(ctx, cmds) {
		if err != nil {
			return err
		}
	}
	return nil
}

// armAgain arms the timer of an execution whose times lie ahead of the clock.
type armAgain struct{ id base.UUID }

func (a *armAgain) Name() string { return "arm_again" }

func (a *armAgain) Want(w *store.Want, _ bool) { w.Executions = append(w.Executions, a.id) }

func (a *armAgain) Decide(u *Tx) error {
	if ent := u.Entries[a.id]; ent != nil && armedFar(ent.Exec, u.Now) {
		u.TouchLease(ent)
	}
	return nil
}

// armedFar reports whether the execution has a timer that ends before its entry in the due index is due, that is, it was not armed since the clock
// was set back. An execution that was armed since is left as it is, so that its timer lasts no longer than it should.
func armedFar(x *core.Execution, now base.Time) bool {
	due, rest := x.Ahead(now)
	return due != 0 && x.TimerAt > now.Add(rest+TimerGrid)
}
