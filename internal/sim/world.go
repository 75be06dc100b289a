package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store/memory"
)

// World is one history under way. Its methods are called by the driver, the one goroutine that decides what happens next, except where they say so.
type World struct {
	seed   uint64
	sched  *rand.Rand // decides which call goes on next
	db     *memory.Database
	key    *keyring.SeedCommand
	began  time.Time
	lives  []int
	skew   []time.Duration
	timers atomic.Int64 // that processes have started
	procs  []*process
	all    sync.WaitGroup // every goroutine that was started

	mu       sync.Mutex
	arrivals []*turn
	count    int
	free     bool // calls no longer wait
	answers  []*command
	bell     chan struct{}

	turns    []*turn // that wait
	commands []*command
	issued   int
	steps    int
	named    named
	journal  *journal
	trace    bool
	line     []byte // the last one
	story    []string
	print    uint64 // of everything that happened
	findings []string
}

func newWorld(seed uint64, processes int) *World {
	w := &World{
		seed: seed, sched: rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // G404: a history is repeated from its seed
		key: signingKey(), began: clock.System().Now(), lives: make([]int, processes), skew: make([]time.Duration, processes),
		procs: make([]*process, processes), bell: make(chan struct{}, 1), print: 14695981039346656037,
		named: named{known: map[base.UUID]bool{}},
	}
	w.db = memory.New(memory.Config{Seed: seed, Clock: hostClock{0, &w.timers}})
	w.journal = newJournal(w)
	return w
}

// now is the present moment, since the history began.
func (w *World) now() time.Duration { return clock.System().Now().Sub(w.began) }

// record adds a line to the history.
func (w *World) record(format string, args ...any) {
	w.line = fmt.Appendf(w.line[:0], "%8.3f ", w.now().Seconds())
	w.line = fmt.Appendf(w.line, format, args...)
	for _, b := range w.line {
		w.print = (w.print ^ uint64(b)) * 1099511628211
	}
	if w.trace {
		w.story = append(w.story, string(w.line))
	}
}

// found records something that must not be.
func (w *World) found(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.record("FOUND %s", text)
	w.findings = append(w.findings, text)
}

// arrive adds a call that waits for its turn; nil: its process has ended, or calls no longer wait. It is called from any goroutine.
func (w *World) arrive(p *process, call string, key uint64, writes bool) *turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-p.dead:
		return nil
	default:
	}
	w.count++
	t := &turn{p: p, call: call, key: key, writes: writes, arrival: w.count, goOn: make(chan verdict, 1)}
	if w.free {
		t.goOn <- verdict{}
		return t
	}
	w.arrivals = append(w.arrivals, t)
	w.ring()
	return t
}

// leave withdraws a call. It is called from any goroutine.
func (w *World) leave(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.left = true
}

// answered adds a command that has ended. It is called from any goroutine.
func (w *World) answered(c *command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, c)
	w.ring()
}

// ring wakes the driver. w.mu is held.
func (w *World) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// settle waits until every goroutine waits for something, and takes in what has happened.
func (w *World) settle() {
	for {
		synctest.Wait()
		w.mu.Lock()
		w.turns = append(w.turns, w.arrivals...)
		w.arrivals = nil
		w.turns = slices.DeleteFunc(w.turns, func(t *turn) bool { return t.left || t.p.killed })
		answers := w.answers
		w.answers = nil
		select {
		case <-w.bell:
		default:
		}
		w.mu.Unlock()
		slices.SortFunc(w.turns, compareTurns)
		if len(answers) == 0 {
			return
		}
		slices.SortFunc(answers, func(a, b *command) int { return a.n - b.n })
		for _, c := range answers {
			w.conclude(c)
		}
	}
}

// forget drops what a killed process has under way: nothing is known of its commands.
func (w *World) forget(p *process) {
	for _, c := range slices.Clone(w.commands) {
		if c.p == p {
			c.err = errUnknown
			w.conclude(c)
		}
	}
}

// ready returns the calls that may go on now.
func (w *World) ready() (list []*turn) {
	now := clock.System().Now()
	for _, t := range w.turns {
		if !t.from.After(now) && !t.p.frozen.After(now) {
			list = append(list, t)
		}
	}
	return list
}

// mostSteps is far more than any history needs.
const mostSteps = 30_000

// step lets one call go on. It reports whether there was one.
func (w *World) step() bool {
	w.settle()
	list := w.ready()
	if len(list) == 0 {
		return false
	}
	if w.steps > mostSteps {
		w.found("I7: %d calls of the store, and no end", w.steps)
		return false
	}
	t := list[w.sched.IntN(len(list))]
	if p := t.p; p.slow > 0 {
		t.from = clock.System().Now().Add(p.slow)
		w.record("p%d %s takes %v", p.index, t.call, p.slow)
		p.slow = 0
		return true
	}
	w.release(t)
	return true
}

// release lets a call go on, with the fault that is due.
func (w *World) release(t *turn) {
	v := verdict{late: t.call == "commit" && w.sched.IntN(12) == 0}
	if faults := t.p.faults; len(faults) > 0 && t.call != "woken" && t.call != "drawn" {
		v.how, v.refuse = faults[0].how, faults[0].refuse
		t.p.faults = faults[1:]
	}
	w.turns = slices.DeleteFunc(w.turns, func(other *turn) bool { return other == t })
	w.steps++
	w.record("p%d.%d %s %x %s", t.p.index, t.p.life, t.call, t.key&0xffff, v)
	t.goOn <- v
}

func (v verdict) String() string {
	switch v.how {
	case refused:
		return "refused: " + v.refuse.String()
	case lost:
		return "answer lost"
	}
	if v.late {
		return "late"
	}
	return ""
}

// pass lets time pass, and calls go on meanwhile as they come.
func (w *World) pass(d time.Duration) { w.passUntil(d, func() bool { return false }) }

// passUntil is pass until something holds, at most for d.
func (w *World) passUntil(d time.Duration, holds func() bool) {
	until := clock.System().Now().Add(d)
	for {
		for w.step() {
		}
		now := clock.System().Now()
		if holds() || !now.Before(until) {
			return
		}
		w.idle(until.Sub(now))
	}
}

// idle waits until something happens, at most for d.
func (w *World) idle(d time.Duration) {
	now := clock.System().Now()
	for _, t := range w.turns { // calls that are slow, or frozen
		if at := t.from; at.After(now) {
			d = min(d, at.Sub(now))
		}
		if at := t.p.frozen; at.After(now) {
			d = min(d, at.Sub(now))
		}
	}
	timer := clock.System().NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.bell:
		w.mu.Lock()
		w.ring() // settle takes it in
		w.mu.Unlock()
	case <-timer.C:
	}
}

// releaseAll lets all calls go on from now on, whenever they come.
func (w *World) releaseAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = true
	for _, t := range append(w.turns, w.arrivals...) {
		if !t.left {
			t.goOn <- verdict{}
		}
	}
	w.turns, w.arrivals = nil, nil
}

// end lets everything go and ends all processes.
func (w *World) end() {
	w.releaseAll()
	for _, p := range w.procs {
		if p == nil || p.killed {
			continue
		}
		<-p.opened
		if p.e != nil {
			_ = p.e.Close(context.Background())
		}
		p.killed = true
		close(p.dead)
		_ = p.port.s.Close()
	}
	w.all.Wait()
}

// up returns a process that takes commands; nil: none does.
func (w *World) up(r *rand.Rand) *process {
	var list []*process
	for _, p := range w.procs {
		if p.up() {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

// Story is everything that happened, line by line.
func (w *World) Story() string { return strings.Join(w.story, "\n") }
