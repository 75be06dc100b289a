package txn

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Dispatcher gives queued work to the calls that wait for it. The room of claims implements it; the kernel calls it at the points of a transaction
// at which waiting calls may get something, and tells it what has changed.
//
// Its methods are called by any goroutine. None of them decides anything by its arguments alone: what a Dispatcher caches is checked by the store
// when a transaction is written, so news that are lost only delay work until the next poll.
type Dispatcher interface {
	// Run serves waiting calls, in transactions of their own, until stop is closed.
	Run(stop <-chan struct{})
	// Serve leases work that the transaction is going to queue to waiting calls, in that transaction. It returns nil if there is nothing to lease or
	// no call that can take it. Whatever it takes out of its own state it has passed to Lend first, so that a panic gives it back.
	Serve(ctx context.Context, u *Tx) (Served, error)
	// Excess returns a function that counts new work of a class against the waiting calls. It reports whether none is left for it although nothing of
	// the class is queued.
	Excess() func(class *core.Class) bool
	// Filed applies what a commit of this process means for waiting calls. Everything that one commit did is passed in one call (News).
	Filed(news News)
	// Hinted applies the hint of another process.
	Hinted(hint store.Hint)
	// Room says that admission keys may have room again.
	Room(keys []string)
	// Held says that other transactions hold rows which this process was about to lock for work that it leases. Freed says that one may be free.
	Held(locks []store.Lock)
	Freed(lock store.Lock)
	// Rescan drops everything that is known of queues: a lane has opened, a limit has changed, or a class is new.
	Rescan()
	// RescanWorkers makes calls read the records of these instances again.
	RescanWorkers(instances ...string)
	// Poll returns what the next poll of the store is to ask, about queues only if queues is set. learn is called with the answer.
	Poll(queues bool) (ask store.PollAsk, learn func(seen *store.PollAnswer))
}

// Served are the calls that a transaction serves besides its commands.
type Served interface {
	// Spans returns the spans of the calls.
	Spans() []Span
	// Committed answers the calls that got something. The others keep waiting.
	Committed(u *Tx)
	// Undo lets all calls keep waiting: the transaction was not committed, for that reason.
	Undo(why error)
	// Lost answers all calls with an error: it is unknown what they got.
	Lost(err error)
}

// News is what a commit of this process means for calls that wait for work. A pick plans with what is known at one moment. Everything that one
// commit did must become known in one step: a pick between two steps would serve what the first one made possible, although the second one may make
// something possible that comes before it.
type News struct {
	Filed  []Filing // rows that were put into queues, or unlocked there
	Lanes  bool     // the rules of lanes have changed: everything known of queues is void
	Places bool     // a place in a lane came free; what is known of its queues stays valid
	Keys   []string // admission keys that got room; "*": all may have room
}

// Filing is a row in the queue of a class.
type Filing struct {
	Class *core.Class
	Block int32
	Order int64
	Size  int // of the input
}

// commitAndServe commits the transaction. On the first try of a batch it also leases work to waiting calls: what it creates or resumes, and on a
// store where transactions take turns also what is queued. If that makes the commit fail, the calls wait on, and the caller tries the batch again
// without them (errHandOver).
func (u *Tx) commitAndServe(ctx context.Context, commands []string, mode BatchMode) error {
	if mode != (BatchMode{}) {
		return u.Commit(ctx, commands)
	}
	served, err := u.Engine.Dispatcher.Serve(ctx, u)
	if served == nil {
		return u.Commit(ctx, commands)
	}
	if err == nil {
		u.AttachSpans(served.Spans())
		err = u.Commit(ctx, append(commands, "claim"))
	}
	if err != nil {
		u.TakeBack(err)
		return fmt.Errorf("%w: %w", errHandOver, err)
	}
	u.notifyServed(served)
	return nil
}

// Lend records the calls that the transaction serves besides its commands: if it fails, also by a panic, they are undone.
func (u *Tx) Lend(served Served) { u.lent = served }

// TakeBack lets the calls keep waiting that the transaction was to serve.
func (u *Tx) TakeBack(why error) {
	if served := u.lent; served != nil {
		u.lent = nil
		_ = u.Engine.Guard(InClaim, func() { served.Undo(why) })
	}
	u.Handing = false
}

// notifyServed answers the calls after the commit. If that panics, they get the answer that their outcome is unknown: they may have leases.
func (u *Tx) notifyServed(served Served) {
	u.lent, u.Handing = nil, false
	if err := u.Engine.Guard(InClaim, func() { served.Committed(u) }); err != nil {
		served.Lost(err)
	}
}

// release reports the queued rows that the transaction had locked and has left where they were, because their commands were refused or it failed. A
// pick may have passed over them meanwhile (S9).
func (u *Tx) release(failed bool) {
	if !u.Engine.Store.Info().Shared {
		return // transactions take turns: no pick ran meanwhile
	}
	var rows []Filing
	for _, ent := range u.Entries {
		if ent.Filed != nil && (failed || !ent.Changed) {
			rows = append(rows, Filing{ent.Exec.Class, ent.Filed.Block, ent.Filed.Order, ent.Exec.Input.Size})
		}
	}
	u.remembers(func() { u.Engine.Dispatcher.Filed(News{Filed: rows}) })
}

// idle is the dispatcher of a kernel without one: no call waits for work.
type idle struct{}

func (idle) Run(stop <-chan struct{})                   { <-stop }
func (idle) Serve(context.Context, *Tx) (Served, error) { return nil, nil }
func (idle) Excess() func(*core.Class) bool             { return func(*core.Class) bool { return false } }
func (idle) Filed(News)                                 {}
func (idle) Hinted(store.Hint)                          {}
func (idle) Room([]string)                              {}
func (idle) Held([]store.Lock)                          {}
func (idle) Freed(store.Lock)                           {}
func (idle) Rescan()                                    {}
func (idle) RescanWorkers(...string)                    {}
func (idle) Poll(bool) (store.PollAsk, func(*store.PollAnswer)) {
	return store.PollAsk{}, func(*store.PollAnswer) {}
}
