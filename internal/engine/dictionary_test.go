package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// reread is a store that counts how often all lanes and classes are read.
type reread struct {
	store.Store
	times atomic.Int64
}

func (r *reread) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	r.times.Add(1)
	return r.Store.Dictionary(ctx)
}

func TestS1_a_new_lane_or_class_is_known_without_reading_all_others(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{PollInterval: time.Minute}, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		counted := &reread{Store: w.store}
		w.store = counted
		w.e = w.openEngine(counted)
		before := counted.times.Load()
		r := ask()
		r.Lanes = []string{"default", "lane1", "lane3"}
		for i := range 5 {
			lane := fmt.Sprint("lane", i)
			for _, kind := range []string{"a", "b"} {
				for _, s := range []core.Submission{{Kind: kind + lane}, {Kind: kind, Lane: lane}} {
					id := w.submit(s)
					if s.Lane == "" || lane == "lane1" || lane == "lane3" { // the claims of one worker learn of each class as it comes
						same(t, "claimed", given(w.claimAs(r)), id)
						slices.Reverse(r.Lanes)
					}
				}
			}
		}
		// Who looks at the store between a registration and its end reads everything.
		if reads := counted.times.Load() - before; reads > 10 {
			t.Fatalf("%d reads for 20 classes", reads)
		}
	})
}

// beforeCommits acts before each commit of commands, which runs alone here.
type beforeCommits struct{ act func() }

// BeforeCommit acts.
func (b *beforeCommits) BeforeCommit([]string) error {
	if act := b.act; act != nil {
		b.act = nil
		act()
	}
	return nil
}

// AfterCommit takes nothing away.
func (*beforeCommits) AfterCommit([]string) error { return nil }

// registerKind makes the class of a kind known, as the submit of an execution does before it is created.
func registerKind(ctx context.Context, e *engine.Engine, kind string) error {
	_, err := e.Dict.ClassOf(ctx, core.Class{Namespace: "default", Lane: "default", Kind: kind})
	return err
}

func TestS1_what_is_registered_beside_a_submit_is_known_without_reading_all_others(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		counted, probe := &reread{Store: w.store}, &beforeCommits{}
		w.store, w.cfg.Probe = counted, probe
		w.restart()
		w.submit(core.Submission{})
		before := counted.times.Load()
		for i := range 5 {
			probe.act = func() { ok(t, registerKind(w.ctx(), w.e, fmt.Sprint("beside", i))) }
			w.submit(core.Submission{})
			same(t, "it was registered before the commit", probe.act == nil, true)
		}
		same(t, "reads", counted.times.Load()-before, 0)
	})
}

func TestS1_what_another_process_registered_in_between_is_read(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		for i := range 3 {
			for _, e := range []*engine.Engine{w.e, other} {
				must(e.Submit(w.ctx(), client, core.Submission{Kind: fmt.Sprintf("kind%d", i)}))(t)
				must(e.Submit(w.ctx(), client, core.Submission{Kind: fmt.Sprintf("kind%d-%p", i, e)}))(t)
			}
		}
		for range 12 {
			w.complete(w.claim())
		}
		w.nothing()
	})
}

// overheard is a store whose hints are told by a test.
type overheard struct {
	reread
	hear chan func(store.Hint)
}

func (o *overheard) Listen(ctx context.Context, hear func(store.Hint)) error {
	o.hear <- hear
	<-ctx.Done()
	return ctx.Err()
}

func TestS69_hints_of_changes_that_are_known_read_no_classes(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{PollInterval: time.Hour}, func(t *testing.T, w *world) {
		other := w.another()
		o := &overheard{reread: reread{Store: w.store}, hear: make(chan func(store.Hint), 1)}
		w.store = o
		w.restart()
		hear := <-o.hear
		for i := range 5 {
			ok(t, registerKind(w.ctx(), other, fmt.Sprint("elsewhere", i)))
		}
		before := o.times.Load()
		for range 5 { // one of each registration
			hear(store.Hint{Dictionary: true})
		}
		if n := o.times.Load() - before; n > 1 { // none if the poll at the start came late
			t.Errorf("%d reads of what one read shows", n)
		}
	})
}

// thronged is a store in which somebody is always in the way of the next few registrations.
type thronged struct {
	store.Store
	left atomic.Int64
}

func (c *thronged) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (store.Registered, error) {
	if c.left.Add(-1) >= 0 {
		return store.Registered{}, &store.Fault{Kind: store.Busy, Err: errors.New("somebody registers")}
	}
	return c.Store.Register(ctx, lanes, classes)
}

func TestS73_a_registration_that_meets_a_lock_is_tried_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		busy := &thronged{Store: w.store}
		w.e = w.openEngine(busy)
		busy.left.Store(3)
		id := w.submit(core.Submission{Kind: "new"})
		same(t, "claimed", given(w.claim()), id)
		busy.left.Store(100)
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "newer"})
		refused(t, err, base.CodeStoreUnavailable)
	})
}
