package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// worksAtOnce is how many pieces of long work of one kind, such as follow-up work, a process runs at a time. After an outage thousands may be due, and
// each of them takes connections that commands need.
const worksAtOnce = 4

// isWork reports whether timers of the kind are for work that may take long.
func (e *Engine) isWork(kind store.TimerKind) bool { return e.extensions.timers[kind].Long }

// dueWork is a timer with the incarnation that was known before it was taken.
type dueWork struct {
	timer store.Timer
	since string
}

// workKind is the due work of one kind. It is bounded: while none can be started, no more timers of the kind are taken.
type workKind struct {
	waiting []dueWork      // in order
	taken   map[int64]bool // by number: those that wait and those that run
	held    []store.Timer  // the same, to be kept hidden
	running int
	over    chan struct{} // closed when nothing of it is left
}

// full reports whether what is due must wait until a place is free.
func (w *workKind) full() bool { return w.running >= worksAtOnce }

// workOn runs timers as far as the bound allows. The lock is held.
func (s *sweeper) workOn(ctx context.Context, since string, kind store.TimerKind, timers []store.Timer) {
	w := s.works[kind]
	if w == nil {
		w = &workKind{taken: map[int64]bool{}, over: make(chan struct{})}
		s.works[kind] = w
		s.e.loops.Go(func() {
			_ = s.e.Guard(inTimer, func() { s.keepHidden(ctx, w.over, func() []store.Timer { return s.heldOf(w) }) })
		})
	}
	for _, timer := range timers {
		if !w.taken[timer.Seq] {
			w.taken[timer.Seq] = true
			w.waiting, w.held = append(w.waiting, dueWork{timer, since}), append(w.held, timer)
		}
	}
	for w.running < min(worksAtOnce, w.running+len(w.waiting)) {
		first := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.running++
		s.e.loops.Go(func() { _ = s.e.Guard(inTask, func() { s.work(ctx, kind, first) }) })
	}
}

// heldOf are the timers of a kind that are waiting or under way.
func (s *sweeper) heldOf(w *workKind) []store.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(w.held)
}

// work runs a timer and then those that wait behind it.
func (s *sweeper) work(ctx context.Context, kind store.TimerKind, due dueWork) {
	for more := true; more; due, more = s.nextWork(ctx, kind, due.timer) {
		_ = s.e.Guard(inTask, func() { s.apply(ctx, due.since, []store.Timer{due.timer}) })
	}
}

// nextWork ends the work of a timer, and returns the next one that waits.
func (s *sweeper) nextWork(ctx context.Context, kind store.TimerKind, ended store.Timer) (next dueWork, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.works[kind]
	delete(w.taken, ended.Seq)
	w.held = slices.DeleteFunc(w.held, func(t store.Timer) bool { return t.Seq == ended.Seq })
	if len(w.waiting) > 0 && ctx.Err() == nil {
		next, w.waiting = w.waiting[0], w.waiting[1:]
		return next, true
	}
	if w.running--; w.running == 0 {
		close(w.over)
		delete(s.works, kind)
	}
	select {
	case s.ended <- struct{}{}: // more of the kind may be due that was not taken
	default:
	}
	return dueWork{}, false
}
