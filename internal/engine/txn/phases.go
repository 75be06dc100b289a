package txn

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Phases are what a room does at the fixed points of every transaction. A phase that is nil does nothing. Rooms register their phases before the
// engine starts. Where two rooms lock rows in the same phase, the one whose place comes first locks first (S73, see Tx).
type Phases struct {
	// At is the room's place in the lock order.
	At Place
	// Loaded loads what the room needs behind rows that were just loaded. It is called after every load.
	Loaded func(ctx context.Context, u *Tx) error
	// Last loads what is locked last of all, once nothing follows from the changes any more.
	Last func(ctx context.Context, u *Tx) error
	// Lock locks and loads what the commands of a batch need and the first loads could not name. It runs before any of them is decided.
	Lock func(ctx context.Context, u *Tx, batch []*Request) error
	// Refuse returns why a command may not be decided, right before it would be. It must change nothing.
	Refuse func(u *Tx, cmd Command) error
	// Absorb takes in the room's rows among those that were loaded. Rows that the transaction has already keep the state in which its commands left them.
	Absorb func(u *Tx, want *store.Want, loaded *store.Loaded)
	// Keep takes in what a command or a timer did besides changing its record.
	Keep func(u *Tx, fx *core.Effects)
	// Decided is called once all commands are decided. An error has the batch tried again, by its fault.
	Decided func(u *Tx) error
	// Settle does what follows from the changes so far. It is repeated, for all rooms in turn, as long as a room reports that it is unsettled: what
	// one room does may concern another.
	Settle    func(ctx context.Context, u *Tx) error
	Unsettled func(u *Tx) bool
	// Row brings up to date what the room keeps beside an execution that has changed, or that is removed.
	Row func(u *Tx, row *Row)
	// WantRemovable adds the rows that the removal of an execution needs, and Remove removes those that do not go with it.
	WantRemovable func(u *Tx, row *Row, want *store.Want)
	Remove        func(u *Tx, row *Row)
	// Vanished reports whether an execution whose record is there counts as removed, because what it was part of is; WantVanished adds the rows that this
	// takes.
	Vanished     func(u *Tx, row *Row) bool
	WantVanished func(row *Row, want *store.Want)
	// Retained is called for an execution that is kept longer than retention would.
	Retained func(u *Tx, row *Row)
	// Flush turns the changes of the room into rows, once nothing follows from them any more.
	Flush func(u *Tx)
	// Needs reports whether a command needs a row of the room that another transaction holds. u shows what was loaded by then.
	Needs func(u *Tx, cmd Command, held store.Lock) bool
	// RowNeeds reports whether what was done to an execution so far needs such a row.
	RowNeeds func(row *Row, held store.Lock) bool
	// Committed updates what the room caches, after a commit that the cache may be updated with (incarnation.go). The answers may not have been sent.
	Committed func(u *Tx)
}

// OnPhases registers the phases of a room, at their place and behind those that are registered there already.
func (e *Engine) OnPhases(p Phases) {
	e.phases = append(e.phases, p)
	slices.SortStableFunc(e.phases, func(a, b Phases) int { return cmp.Compare(a.At, b.At) })
	e.points = points{}
	for _, p := range e.phases {
		e.points.add(&p)
	}
}

// Place is a place in the lock order of what is locked behind executions (S73, see Tx). A room at a place locks nothing of a later one.
type Place int

// The lock order behind executions.
const (
	AtExecutions Place = iota // nothing but what executions own
	AtAdmission               // what admission is charged to, then counters
	AtLanes
	AtAudit  // heads of audit chains
	AtGraphs // graphs of executions
)

func (l *points) add(p *Phases) {
	l.absorb = appendSet(l.absorb, p.Absorb, p.Absorb != nil)
	l.keep = appendSet(l.keep, p.Keep, p.Keep != nil)
	l.row = appendSet(l.row, p.Row, p.Row != nil)
	l.removable = appendSet(l.removable, p.WantRemovable, p.WantRemovable != nil)
	l.remove = appendSet(l.remove, p.Remove, p.Remove != nil)
	l.vanished = appendSet(l.vanished, p.Vanished, p.Vanished != nil)
	l.wantVanished = appendSet(l.wantVanished, p.WantVanished, p.WantVanished != nil)
	l.retained = appendSet(l.retained, p.Retained, p.Retained != nil)
	l.loaded = appendSet(l.loaded, p.Loaded, p.Loaded != nil)
	l.refuse = appendSet(l.refuse, p.Refuse, p.Refuse != nil)
	l.decided = appendSet(l.decided, p.Decided, p.Decided != nil)
	l.last = appendSet(l.last, p.Last, p.Last != nil)
}

// points are those phases that run once for each row or command, and not once for each transaction: the lists have no holes.
type points struct {
	absorb       []func(*Tx, *store.Want, *store.Loaded)
	keep         []func(*Tx, *core.Effects)
	row          []func(*Tx, *Row)
	removable    []func(*Tx, *Row, *store.Want)
	remove       []func(*Tx, *Row)
	vanished     []func(*Tx, *Row) bool
	wantVanished []func(*Row, *store.Want)
	retained     []func(*Tx, *Row)
	loaded       []func(context.Context, *Tx) error
	refuse       []func(*Tx, Command) error
	decided      []func(*Tx) error
	last         []func(context.Context, *Tx) error
}

func appendSet[F any](list []F, f F, set bool) []F {
	if !set {
		return list
	}
	return append(list, f)
}

// Slot is the place of a room's state in a transaction. Each room that has some has a number of its own: its place in the order of rooms.
type Slot int

// slots is the number of places.
const slots = 8

// State returns the state that a room keeps in a transaction, made when it is first asked for.
func State[T any](u *Tx, slot Slot) *T {
	if state, ok := u.parts[slot].(*T); ok {
		return state
	}
	state := new(T)
	u.parts[slot] = state
	return state
}

// UseRoom keeps the value of a room in the engine, for its functions that have only a transaction. It must be set before Start.
func UseRoom[T any](e *Engine, slot Slot, room *T) { e.rooms[slot] = room }

// Room returns the value of a room.
func Room[T any](e *Engine, slot Slot) *T {
	room, _ := e.rooms[slot].(*T)
	return room
}

// Known returns the state that a room keeps in a transaction; nil: it was not asked for yet.
func Known[T any](u *Tx, slot Slot) *T {
	state, _ := u.parts[slot].(*T)
	return state
}

// UseVanished sets what finds the executions among some that count as removed, because what they were part of is. It must be set before Start.
func (e *Engine) UseVanished(find func(ctx context.Context, xs []*core.Execution) (map[base.UUID]bool, error)) {
	e.vanished = find
}

// UseDispatcher sets what gives work to waiting calls. It must be set before Start.
func (e *Engine) UseDispatcher(d Dispatcher) { e.Dispatcher, e.Dict.changed = d, d.Rescan }

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

// lock is a method that locks, as a phase.
func lock(method func(*Tx, context.Context, []*Request) error) func(context.Context, *Tx, []*Request) error {
	return func(ctx context.Context, u *Tx, batch []*Request) error { return method(u, ctx, batch) }
}
