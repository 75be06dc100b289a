package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// stopAfter lets a number of transactions with a command of that name through and refuses those that follow, as if the
// database were gone.
type stopAfter struct {
	name    string
	left    int64
	refused atomic.Int64
	open    atomic.Bool

	mu sync.Mutex
}

// BeforeCommit counts.
func (s *stopAfter) BeforeCommit(commands []string) error {
	if !slices.Contains(commands, s.name) || s.open.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		s.left--
		return nil
	}
	s.refused.Add(1)
	return errors.New("no further")
}

// AfterCommit takes nothing away.
func (s *stopAfter) AfterCommit([]string) error { return nil }

// counted is a store that counts what is asked of it.
type counted struct {
	store.Store
	callers bool         // only what is asked for the sake of a caller of theCaller, nothing of the engine's own loops
	queries atomic.Int64 // everything but listening
	writes  atomic.Int64
	polls   atomic.Uint64 // safety polls that are over
}

type callerKey struct{}

// theCaller marks everything that is asked for the sake of one call.
func theCaller(ctx context.Context) context.Context { return context.WithValue(ctx, callerKey{}, true) }

func (c *counted) asked(ctx context.Context) {
	if !c.callers || ctx.Value(callerKey{}) != nil {
		c.queries.Add(1)
	}
}

func (c *counted) Now(ctx context.Context) (base.Time, error) {
	c.asked(ctx)
	return c.Store.Now(ctx)
}

func (c *counted) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	c.asked(ctx)
	tx, loaded, err := c.Store.Begin(ctx, want)
	return countedTx{tx, c}, loaded, err
}

func (c *counted) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	c.asked(ctx)
	return c.Store.Read(ctx, want)
}

func (c *counted) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	c.asked(ctx)
	return c.Store.Dictionary(ctx)
}

func (c *counted) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	c.asked(ctx)
	return c.Store.TakeDue(ctx, limit, hide, except...)
}

func (c *counted) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	c.asked(ctx)
	return c.Store.HideTimers(ctx, timers, hide)
}

func (c *counted) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	c.asked(ctx)
	if safetyPoll(ask) {
		defer c.polls.Add(1) // when it is over, so that a test can wait for it
	}
	return c.Store.Poll(ctx, ask)
}

// safetyPoll tells the poll of each second from the others: that of the sweep after timers were due, those of readers of events and of the search rows.
func safetyPoll(ask store.PollAsk) bool { return ask.Queues != nil }

func (c *counted) Log(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	c.asked(ctx)
	return c.Store.Log(ctx, after, limit)
}

func (c *counted) Project(ctx context.Context, p store.Projection) error {
	c.asked(ctx)
	c.writes.Add(1)
	return c.Store.Project(ctx, p)
}

func (c *counted) Index(ctx context.Context, part store.IndexPart) error {
	c.asked(ctx)
	c.writes.Add(1)
	return c.Store.Index(ctx, part)
}

func (c *counted) LogOf(ctx context.Context, ask store.LogOf) ([]store.Commit, int64, error) {
	c.asked(ctx)
	return c.Store.LogOf(ctx, ask)
}

func (c *counted) Notify(ctx context.Context, hint store.Hint) error {
	c.asked(ctx)
	return c.Store.Notify(ctx, hint)
}

func (c *counted) Maintain(ctx context.Context, before base.Time) error {
	c.asked(ctx)
	return c.Store.Maintain(ctx, before)
}

type countedTx struct {
	store.Tx
	c *counted
}

func (t countedTx) Commit(ctx context.Context, ch *store.Changes) error {
	t.c.asked(ctx)
	t.c.writes.Add(1)
	return t.Tx.Commit(ctx, ch)
}

// poisoned is a store that cannot write one execution.
type poisoned struct {
	store.Store
	id   base.UUID
	cure atomic.Bool
}

func (p *poisoned) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := p.Store.Begin(ctx, want)
	return poisonedTx{tx, p}, loaded, err
}

type poisonedTx struct {
	store.Tx
	p *poisoned
}

func (t poisonedTx) Commit(ctx context.Context, ch *store.Changes) error {
	for _, x := range slices.Concat(ch.Update, ch.Renew) {
		if x.ID.UUID == t.p.id && !t.p.cure.Load() {
			t.Tx.Rollback(ctx)
			return errors.New("this row cannot be written")
		}
	}
	return t.Tx.Commit(ctx, ch)
}

// dying is the store of a process that dies as soon as it has taken timers.
type dying struct {
	store.Store
	taken chan struct{} // closed then
	once  sync.Once
}

func (d *dying) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	timers, err := d.Store.TakeDue(ctx, limit, hide, except...)
	if len(timers) == 0 {
		return timers, err
	}
	d.once.Do(func() { close(d.taken) })
	<-ctx.Done()
	return nil, ctx.Err()
}

// deaf is a store whose hints are all lost.
type deaf struct{ store.Store }

func (deaf) Notify(context.Context, store.Hint) error { return nil }

func (deaf) Listen(ctx context.Context, _ func(store.Hint)) error {
	<-ctx.Done()
	return ctx.Err()
}

// gate holds transactions with a command of that name back until it is opened.
type gate struct {
	name    string
	reached chan struct{} // closed when the first one comes
	open    chan struct{}
	once    sync.Once
}

func newGate(name string) *gate {
	return &gate{name: name, reached: make(chan struct{}), open: make(chan struct{})}
}

// BeforeCommit waits.
func (g *gate) BeforeCommit(commands []string) error {
	if slices.Contains(commands, g.name) {
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
	return nil
}

// AfterCommit takes nothing away.
func (g *gate) AfterCommit([]string) error { return nil }

// forgetful takes the answer of the next transaction with a command of that name away: it happened, and its caller does not know.
type forgetful struct {
	mu   sync.Mutex
	name string
}

func (f *forgetful) next(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.name = name
}

// BeforeCommit lets everything through.
func (f *forgetful) BeforeCommit([]string) error { return nil }

// AfterCommit loses the answer.
func (f *forgetful) AfterCommit(commands []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name == "" || !slices.Contains(commands, f.name) {
		return nil
	}
	f.name = ""
	return errors.New("the connection was lost")
}
