package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// watched is a store that notes which executions are loaded to be changed.
type watched struct {
	store.Store
	mu  sync.Mutex
	ids []base.UUID
}

// Begin notes what is asked for.
func (s *watched) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	s.mu.Lock()
	s.ids = append(s.ids, want.Executions...)
	s.mu.Unlock()
	return s.Store.Begin(ctx, want)
}

func (s *watched) loaded(id base.GivenID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ids, id.UUID)
}

// watch puts an engine on a watched store in place of the world's.
func (w *world) watch() *watched {
	w.t.Helper()
	closeEngine(w.t, w.e)
	s := &watched{Store: w.store}
	w.e = w.openEngine(s)
	return s
}

func TestRemembered_the_commands_of_a_lease_are_decided_without_loading_the_row(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.watch()
		task := w.started(core.Submission{})
		half := 50
		ok(t, w.e.Progress(w.ctx(), client, given(task), fence(task), &half, nil))
		w.renewed(task)
		w.complete(task)
		same(t, "loaded", s.loaded(given(task)), false)
		x := w.is(given(task), core.Succeeded, core.Completed)
		same(t, "progress", *x.Progress.Percent, 50)
		same(t, "story", w.story(given(task)), []string{"execution.submitted", "lease.acquired", "execution.completed"})
	})
}

func TestI3_a_refusal_is_never_given_from_memory(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.watch()
		task := w.started(core.Submission{})
		stale := fence(task)
		stale.Epoch++
		_, err := w.e.Complete(w.ctx(), client, given(task), stale, nil)
		refused(t, err, base.CodeStaleLease)
		same(t, "loaded", s.loaded(given(task)), true)
		w.complete(task)
	})
}

// other is another process where the store can be shared, else the same one.
func (w *world) other() *engine.Engine {
	w.t.Helper()
	if w.path != "" {
		return w.e
	}
	return w.another()
}

func TestI3_a_worker_of_a_deleted_execution_writes_nothing_into_the_next_one_of_that_id(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		other := w.other()
		id := must(base.ParseID("0190f0c2-1111-7aaa-8bbb-0123456789ab"))(t)
		w.submit(core.Submission{ID: &id})
		old := w.claim()
		must(other.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{}))(t)
		ok(t, other.Delete(w.ctx(), operator, id, engine.Operator{}))
		again := core.Submission{Kind: "k", ID: &id, Input: core.Payload{Data: []byte("another")}}
		same(t, "the id is free again", must(other.Submit(w.ctx(), client, again))(t).Outcome, "created")
		r := ask()
		r.InstanceID, r.Wait = "w2", patience
		now := must(other.Claim(w.ctx(), client, r))(t).Tasks[0]
		before := w.get(id)
		_, err := w.e.Complete(w.ctx(), client, id, fence(old), &core.Payload{Data: []byte("of the old one")})
		refused(t, err, base.CodeStaleLease)
		same(t, "untouched", w.get(id), before)
		must(other.Complete(w.ctx(), client, id, fence(now), nil))(t)
		w.is(id, core.Succeeded, core.Completed)
	})
}

func TestI13_what_another_process_did_meanwhile_counts(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		for name, did := range map[string]struct {
			act  func(id base.GivenID) error
			code base.Code
		}{
			"cancel": {func(id base.GivenID) error {
				_, err := other.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{})
				return err
			}, base.CodeExecutionNotActive},
			"revoke": {func(id base.GivenID) error {
				_, err := other.Revoke(w.ctx(), operator, id, engine.RevokeRequest{}, engine.Operator{})
				return err
			}, base.CodeLeaseRevoked},
		} {
			task, sibling := w.started(core.Submission{}), w.started(core.Submission{})
			ok(t, did.act(given(task)))
			before := w.get(given(task))
			var both sync.WaitGroup
			both.Go(func() {
				_, err := w.e.Complete(w.ctx(), client, given(task), fence(task), nil)
				if base.CodeOf(err) != did.code {
					t.Errorf("%s: complete answered %v, want %s", name, err, did.code)
				}
			})
			both.Go(func() { w.complete(sibling) })
			both.Wait()
			same(t, name, w.get(given(task)), before)
			w.is(given(sibling), core.Succeeded, core.Completed)
			w.cancel(given(task))
		}
	})
}
