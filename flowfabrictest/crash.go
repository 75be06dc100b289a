package flowfabrictest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// CrashPoint is a point at which the process can crash. BeforeCommit, AfterCommit, BeforeStep and AfterStep make one.
type CrashPoint struct {
	moment string
	name   string
}

// BeforeCommit is the point before a transaction with that command commits: the command has no effect. Commands have the names of
// the API: submit, claim, step, append_frames, complete, fail, delay, release, suspend, signal, approve, heartbeat, register,
// cancel, replay and so on; wake is the engine's own command for due timers.
func BeforeCommit(command string) CrashPoint { return CrashPoint{"before commit", command} }

// AfterCommit is the point after a transaction with that command has committed, but before it is answered.
func AfterCommit(command string) CrashPoint { return CrashPoint{"after commit", command} }

// BeforeStep is the point before the result of that step is stored: its function has run, but the result is lost. A name that is
// used again in one call of the handler is "name#2", "name#3".
func BeforeStep(name string) CrashPoint { return CrashPoint{"before step", name} }

// AfterStep is the point after the result of that step was stored, but before the handler receives it.
func AfterStep(name string) CrashPoint { return CrashPoint{"after step", name} }

// String returns the point in words.
func (p CrashPoint) String() string { return p.moment + " " + p.name }

// Crash is a crash ordered with CrashAt.
type Crash struct {
	point CrashPoint
	hit   atomic.Bool
}

// Hit reports whether the point was reached and the process crashed there.
func (c *Crash) Hit() bool { return c.hit.Load() }

// CrashAt crashes the process when it next reaches the point, once: the engine and all workers of the environment, as kill -9
// would. The next call that needs the process starts it again.
func (e *Env) CrashAt(p CrashPoint) *Crash {
	c := &Crash{point: p}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	e.points.ordered = append(e.points.ordered, c)
	return c
}

// crashPoints are the points that were reached and the crashes that are still pending.
type crashPoints struct {
	mu      sync.Mutex
	met     []CrashPoint // without duplicates, in order
	ordered []*Crash
}

// reach records a point and reports whether the process crashes there.
func (c *crashPoints) reach(p CrashPoint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.met, p) {
		c.met = append(c.met, p)
	}
	place := slices.IndexFunc(c.ordered, func(crash *Crash) bool { return crash.point == p })
	if place < 0 {
		return false
	}
	c.ordered[place].hit.Store(true)
	c.ordered = slices.Delete(c.ordered, place, place+1)
	return true
}

func (c *crashPoints) seen() []CrashPoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.met)
}

// errDead is the error in goroutines of a crashed process until they end.
var errDead = errors.New("the process has crashed")

// BeforeCommit refuses every commit of a crashed process, and crashes it here if ordered.
func (p *process) BeforeCommit(commands []string) error { return p.atCommit(BeforeCommit, commands) }

// AfterCommit discards the answers of a process that has crashed.
func (p *process) AfterCommit(commands []string) error { return p.atCommit(AfterCommit, commands) }

func (p *process) atCommit(point func(string) CrashPoint, commands []string) error {
	if p.dead() {
		return errDead
	}
	for _, name := range commands {
		if p.env.points.reach(point(name)) {
			p.die()
			return errDead
		}
	}
	return nil
}
