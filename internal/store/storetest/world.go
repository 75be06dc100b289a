package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	testBound   = 90 * time.Second // no test takes longer
	followBound = 30 * time.Second // by then a reader of the log has seen everything that was written
	waitBound   = 10 * time.Second // by then a store has given up waiting for a lock
	crowd       = 8                // goroutines that contend with each other
)

// reporter is what a test and a case drawn by rapid have in common.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a store with one lane and one class in it.
type world struct {
	t     reporter
	s     store.Store
	now   base.Time // of the store, when the world was made
	lane  core.Lane
	class *core.Class
}

// start opens a fresh store and registers a lane and a class. The context ends with the test.
func start(t *testing.T, f Factory) (context.Context, *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testBound)
	t.Cleanup(cancel)
	return ctx, settle(ctx, t, f.Open(t))
}

// settle makes the world of a fresh store.
func settle(ctx context.Context, t reporter, s store.Store) *world {
	t.Helper()
	now, err := s.Now(ctx)
	if err != nil {
		t.Fatalf("Now: %v", err)
	}
	w := &world{t: t, s: s, now: now}
	lanes, classes := w.register(ctx, []core.Lane{w.newLane("default")}, []core.Class{newClass("default", "mail")})
	w.lane, w.class = lanes[0], classes[0]
	return w
}

// on returns the same world, reporting to a case drawn by rapid.
func (w *world) on(t reporter) *world {
	v := *w
	v.t = t
	return &v
}

// at returns the same world with another handle on its database.
func (w *world) at(s store.Store) *world {
	v := *w
	v.s = s
	return &v
}

func (w *world) register(ctx context.Context, lanes []core.Lane, classes []core.Class) ([]core.Lane, []*core.Class) {
	w.t.Helper()
	stored, err := w.s.Register(ctx, lanes, classes)
	if err != nil {
		w.t.Fatalf("Register: %v", err)
	}
	if len(stored.Lanes) != len(lanes) || len(stored.Classes) != len(classes) {
		w.t.Fatalf("Register answered %d lanes and %d classes for %d and %d", len(stored.Lanes), len(stored.Classes), len(lanes), len(classes))
	}
	return stored.Lanes, stored.Classes
}

// change computes the changes of a transaction from what it loaded; nil: it rolls back.
type change func(*store.Loaded) *store.Changes

// apply runs one transaction. It may be called from any goroutine.
func apply(ctx context.Context, s store.Store, want store.Want, do change) error {
	tx, loaded, err := s.Begin(ctx, want)
	if err != nil {
		return err
	}
	ch := do(loaded)
	if ch == nil {
		tx.Rollback(ctx)
		return nil
	}
	return tx.Commit(ctx, ch)
}

// insist repeats a transaction while its fault indicates that a repeat may succeed.
func insist(ctx context.Context, s store.Store, want store.Want, do change) error {
	for {
		err := apply(ctx, s, want, do)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
	}
}

// passing reports whether the transaction failed only because of other transactions.
func passing(err error) bool {
	kind := store.FaultOf(err)
	return kind == store.Busy || kind == store.Retry
}

// put writes changes to rows that want locks.
func (w *world) put(ctx context.Context, want store.Want, ch *store.Changes) {
	w.t.Helper()
	if err := insist(ctx, w.s, want, func(*store.Loaded) *store.Changes { return ch }); err != nil {
		w.t.Fatalf("commit: %v", err)
	}
}

// add writes changes that need no row locked.
func (w *world) add(ctx context.Context, ch *store.Changes) {
	w.t.Helper()
	w.put(ctx, store.Want{}, ch)
}

// refuse expects the changes to fail with a fault of this kind.
func (w *world) refuse(ctx context.Context, want store.Want, ch *store.Changes, kind store.FaultKind) {
	w.t.Helper()
	err := insist(ctx, w.s, want, func(*store.Loaded) *store.Changes { return ch })
	w.expectFault(err, kind)
}

func (w *world) expectFault(err error, kind store.FaultKind) {
	w.t.Helper()
	if err == nil {
		w.t.Fatalf("no fault, want %v", kind)
	}
	if got := store.FaultOf(err); got != kind {
		w.t.Fatalf("fault %v, want %v: %v", got, kind, err)
	}
}

// begin opens a transaction that the test continues.
func (w *world) begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded) {
	w.t.Helper()
	for {
		tx, loaded, err := w.s.Begin(ctx, want)
		if err == nil {
			return tx, loaded
		}
		if ctx.Err() != nil || !passing(err) {
			w.t.Fatalf("Begin: %v", err)
		}
	}
}

func (w *world) commit(ctx context.Context, tx store.Tx, ch *store.Changes) {
	w.t.Helper()
	if err := tx.Commit(ctx, ch); err != nil {
		w.t.Fatalf("Commit: %v", err)
	}
}

// busy expects that want meets a lock, waits, and gives up by itself.
func (w *world) busy(ctx context.Context, want store.Want) {
	w.t.Helper()
	bounded, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	tx, _, err := w.s.Begin(bounded, want)
	if err == nil {
		tx.Rollback(ctx)
		w.t.Fatalf("a row that another transaction holds was given away")
	}
	if bounded.Err() != nil {
		w.t.Fatalf("the wait for a lock had no bound of its own within %v: %v", waitBound, err)
	}
	w.expectFault(err, store.Busy)
}

func (w *world) read(ctx context.Context, want store.Want) *store.Loaded {
	w.t.Helper()
	loaded, err := w.s.Read(ctx, want)
	if err != nil {
		w.t.Fatalf("Read: %v", err)
	}
	return loaded
}

// load reads one execution with all its bytes.
func (w *world) load(ctx context.Context, id base.UUID) *core.Execution {
	w.t.Helper()
	x := w.read(ctx, store.Want{Executions: []base.UUID{id}, Inputs: true, Results: true}).Executions[id]
	if x == nil {
		w.t.Fatalf("execution %v is not there", id)
	}
	return x
}

func (w *world) gone(ctx context.Context, ids ...base.UUID) {
	w.t.Helper()
	for id := range w.read(ctx, store.Want{Executions: ids}).Executions {
		w.t.Fatalf("execution %v is there", id)
	}
}

func (w *world) poll(ctx context.Context, queues ...store.Before) store.PollAnswer {
	w.t.Helper()
	answer, err := w.s.Poll(ctx, store.PollAsk{Queues: queues})
	if err != nil {
		w.t.Fatalf("Poll: %v", err)
	}
	return answer
}

func (w *world) clock(ctx context.Context) base.Time {
	w.t.Helper()
	now, err := w.s.Now(ctx)
	if err != nil {
		w.t.Fatalf("Now: %v", err)
	}
	return now
}

func (w *world) version(ctx context.Context) int64 {
	w.t.Helper()
	return w.poll(ctx).Dictionary
}

// equal compares what was written with what was read. Empty lists and maps equal absent ones; versions are assigned by the store, and checked by
// the tests of remembered rows.
func (w *world) equal(what string, want, got any) {
	w.t.Helper()
	if diff := difference(want, got); diff != "" {
		w.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// difference compares in detail only if a plain comparison fails: most values are equal, and the detailed comparison costs more than most store
// operations.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(core.Execution{}, "Version"), cmp.Comparer(samePolicy), cmp.Comparer(sameData))
}

// sameData compares the data of events by what readers see.
func sameData(a, b eventdata.Data) bool { return string(a.JSON()) == string(b.JSON()) }

func samePolicy(a, b *core.Policy) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Canonical(), b.Canonical())
}

// together runs n goroutines at once and joins their errors.
func together(n int, run func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = run(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
