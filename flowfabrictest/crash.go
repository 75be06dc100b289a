package flowfabrictest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// CrashPoint is a moment in the life of the process. The functions that make one say which.
type CrashPoint struct {
	moment string
	name   string
}

// BeforeCommit is the moment before a transaction with that command commits: the command never happened. Commands have the names
// of the wire: submit, claim, step, complete, fail, delay, release, suspend, signal, approve, heartbeat, register, cancel, replay and
// so on; wake is the engine's own when a timer is due.
func BeforeCommit(command string) CrashPoint { return CrashPoint{"before commit", command} }

// AfterCommit is the moment after a transaction with that command has committed: it happened and nobody was told.
func AfterCommit(command string) CrashPoint { return CrashPoint{"after commit", command} }

// BeforeStep is the moment before the result of that step is stored: its function has run, and nothing remembers it. A name that
// is used again in one call of the handler is found as "name#2", "name#3".
func BeforeStep(name string) CrashPoint { return CrashPoint{"before step", name} }

// AfterStep is the moment after the result of that step was stored: the handler was not told.
func AfterStep(name string) CrashPoint { return CrashPoint{"after step", name} }

// String names the point as the functions do.
func (p CrashPoint) String() string { return p.moment + " " + p.name }

// Crash is a death that was ordered with CrashAt.
type Crash struct {
	point CrashPoint
	hit   atomic.Bool
}

// Hit reports whether the point was reached and the process died there.
func (c *Crash) Hit() bool { return c.hit.Load() }

// CrashAt lets the process die when it next reaches the point, once: the engine and all workers of the environment, as by kill
// -9. It is started again by the next call that needs it.
func (e *Env) CrashAt(p CrashPoint) *Crash {
	c := &Crash{point: p}
	e.points.mu.Lock()
	defer e.points.mu.Unlock()
	e.points.ordered = append(e.points.ordered, c)
	return c
}

// crashPoints are the points that were met and the deaths that are still to come.
type crashPoints struct {
	mu      sync.Mutex
	met     []CrashPoint // each once, in order
	ordered []*Crash
}

// reach notes a point and reports whether the process dies there.
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

// errDead is what the goroutines of a dead process see until they end.
var errDead = errors.New("the process is dead")

// BeforeCommit refuses every commit of a dead process, and lets it die here if that was ordered.
func (p *process) BeforeCommit(commands []string) error { return p.atCommit(BeforeCommit, commands) }

// AfterCommit takes the answers away from a process that has died.
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
