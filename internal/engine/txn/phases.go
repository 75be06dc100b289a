package txn

import (
	"github.com/flowfabric/flowfabric/internal/store"
)

// Phases are what a room does at the fixed points of every transaction. A phase that is nil does nothing. Rooms register their phases before the
// engine starts, in lock order: where two rooms lock rows in the same phase, the one that registered first locks first (S73, see Tx).
type Phases struct {
	// Committed updates what the room caches, after a commit that the cache may be updated with (incarnation.go). The answers may not have been sent.
	Committed func(u *Tx)
}

// OnPhases registers the phases of a room behind those that are registered already.
func (e *Engine) OnPhases(p Phases) { e.phases = append(e.phases, p) }

// UseDispatcher sets what gives work to waiting calls. It must be set before Start.
func (e *Engine) UseDispatcher(d Dispatcher) { e.dispatcher, e.Dict.changed = d, d.Rescan }

// Listener hears what other processes commit.
type Listener struct {
	Heard  func(c *store.Commit)    // one commit
	Read   func(all []store.Commit) // all that were read together, after Heard was called for each
	Missed func()                   // commits whose events are unknown: everything that depends on the log is to be read again
}

// OnCommits registers what hears the commits of other processes.
func (e *Engine) OnCommits(l Listener) { e.listeners = append(e.listeners, l) }

// OnReborn registers what drops a cache: the database has another incarnation, and nothing that was remembered of the former one may be used (R3).
func (e *Engine) OnReborn(forget func()) { e.forgets = append(e.forgets, forget) }
