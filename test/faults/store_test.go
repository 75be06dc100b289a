package faults

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/standstill"
	"github.com/flowfabric/flowfabric/internal/store"
)

// fault is what happens to one call of the store.
type fault string

const (
	deadlock fault = "before it is applied" // nothing happens, the database says so and asks to try again
	dropped  fault = "connection dropped"   // nothing happens, nobody says anything
	lost     fault = "after it is applied"  // it happens, the answer is lost

	// The same of calls that write alone, where those that read are nothing new.
	aborted        fault = "before its write is applied"
	unacknowledged fault = "after its write is applied"
)

var errInjected = errors.New("the test failed this call")

// faulty is a store of which one call fails.
type faulty struct {
	store.Store
	family  *standstill.Family // whose calls these are
	mu      sync.Mutex
	left    int // calls until the fault; 0: none comes
	kind    fault
	reached string // the call that failed
}

// arm makes the n-th call from now on fail.
func (f *faulty) arm(n int, kind fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.kind, f.reached = n, kind, ""
}

// disarm ends it and names the call that failed, "" when none did.
func (f *faulty) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
	return f.reached
}

// strike tells what happens to this call.
func (f *faulty) strike(call string, writes bool) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 || !writes && (f.kind == aborted || f.kind == unacknowledged) {
		return ""
	}
	if f.left--; f.left > 0 {
		return ""
	}
	f.reached = call
	return f.kind
}

// around runs a call, or what the fault leaves of it. A lost answer of a call that only reads is as good as no call.
func (f *faulty) around(call string, writes bool, run func() error) error {
	switch f.strike(call, writes) {
	case deadlock, aborted:
		return &store.Fault{Kind: store.Retry, Err: errInjected}
	case dropped:
		return &store.Fault{Kind: store.Unavailable, Err: errInjected}
	case lost, unacknowledged:
		if err := f.family.During(run); err != nil {
			return err
		}
		if !writes {
			return &store.Fault{Kind: store.Unavailable, Err: errInjected}
		}
		return &store.Fault{Kind: store.Unknown, Err: errInjected}
	default:
		return f.family.During(run)
	}
}

func (f *faulty) Now(ctx context.Context) (now core.Time, err error) {
	err = f.around("now", false, func() (err error) { now, err = f.Store.Now(ctx); return err })
	return now, err
}

func (f *faulty) Begin(ctx context.Context, want store.Want) (tx store.Tx, loaded *store.Loaded, err error) {
	err = f.around("begin", false, func() (err error) { tx, loaded, err = f.Store.Begin(ctx, want); return err })
	if err != nil {
		if tx != nil {
			tx.Rollback(ctx)
		}
		return nil, nil, err
	}
	return &faultyTx{Tx: tx, f: f}, loaded, nil
}

func (f *faulty) Read(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = f.around("read", false, func() (err error) { loaded, err = f.Store.Read(ctx, want); return err })
	return loaded, err
}

func (f *faulty) Dictionary(ctx context.Context) (d *store.Dictionary, err error) {
	err = f.around("dictionary", false, func() (err error) { d, err = f.Store.Dictionary(ctx); return err })
	return d, err
}

func (f *faulty) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (known store.Registered, err error) {
	err = f.around("register", true, func() (err error) { known, err = f.Store.Register(ctx, lanes, classes); return err })
	return known, err
}

func (f *faulty) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) (timers []store.Timer, err error) {
	err = f.around("take due", true, func() (err error) { timers, err = f.Store.TakeDue(ctx, limit, hide, except...); return err })
	return timers, err
}

func (f *faulty) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	return f.around("hide timers", true, func() error { return f.Store.HideTimers(ctx, timers, hide) })
}

func (f *faulty) Poll(ctx context.Context, ask store.PollAsk) (answer store.PollAnswer, err error) {
	err = f.around("poll", false, func() (err error) { answer, err = f.Store.Poll(ctx, ask); return err })
	return answer, err
}

func (f *faulty) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = f.around("log", false, func() (err error) { commits, err = f.Store.Log(ctx, after, limit); return err })
	return commits, err
}

func (f *faulty) Project(ctx context.Context, p store.Projection) error {
	return f.around("project", true, func() error { return f.Store.Project(ctx, p) })
}

func (f *faulty) Find(ctx context.Context, q store.Query) (hits []store.Hit, err error) {
	err = f.around("find", false, func() (err error) { hits, err = f.Store.Find(ctx, q); return err })
	return hits, err
}

func (f *faulty) Count(ctx context.Context, q store.Query, limit int) (n int, err error) {
	err = f.around("count", false, func() (err error) { n, err = f.Store.Count(ctx, q, limit); return err })
	return n, err
}

func (f *faulty) Notify(ctx context.Context, hint store.Hint) error {
	return f.around("notify", true, func() error { return f.Store.Notify(ctx, hint) })
}

// faultyTx is a transaction of a faulty store.
type faultyTx struct {
	store.Tx
	f *faulty
}

func (t *faultyTx) Load(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	err = t.f.around("load", false, func() (err error) { loaded, err = t.Tx.Load(ctx, want); return err })
	return loaded, err
}

// Commit ends the transaction whatever happens, as the contract says.
func (t *faultyTx) Commit(ctx context.Context, ch *store.Changes) error {
	defer t.Tx.Rollback(ctx)
	return t.f.around("commit", true, func() error { return t.Tx.Commit(ctx, ch) })
}
