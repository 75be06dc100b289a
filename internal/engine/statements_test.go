package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// searches is a store that counts the questions about search rows.
type searches struct {
	store.Store
	n atomic.Int64
}

func (s *searches) Find(ctx context.Context, q store.Query) ([]store.Hit, error) {
	s.n.Add(1)
	return s.Store.Find(ctx, q)
}

func (s *searches) Count(ctx context.Context, q store.Query, limit int) (int, error) {
	s.n.Add(1)
	return s.Store.Count(ctx, q, limit)
}

func (s *searches) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) ([]store.Group, error) {
	s.n.Add(1)
	return s.Store.CountBy(ctx, q, by, limit)
}

func (s *searches) FirstOfLanes(ctx context.Context, q store.Query, each int) ([]store.LaneHit, error) {
	s.n.Add(1)
	return s.Store.FirstOfLanes(ctx, q, each)
}

// searching opens the world's engine on a store that counts.
func (w *world) searching() *searches {
	w.t.Helper()
	closeEngine(w.t, w.e)
	s := &searches{Store: w.store}
	w.e = w.openEngine(s)
	return s
}

func TestS56_S54_leases_of_many_instances_are_counted_by_one_question(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.searching()
		for i := range 12 {
			r := core.Registration{WorkerID: "w", InstanceID: fmt.Sprint("i", i), Lanes: []string{"default"}, MaxConcurrent: 1}
			must(w.e.Register(w.ctx(), client, r))(t)
		}
		w.submitMany(3, core.Submission{})
		for _, instance := range []string{"i1", "i1", "i7"} {
			w.take(engine.ClaimRequest{WorkerID: "w", InstanceID: instance, Lanes: []string{"default"}})
		}
		id := w.submit(core.Submission{})
		s.n.Store(0)
		must(w.e.Explain(w.ctx(), client, id, 0))(t)
		same(t, "questions", s.n.Load(), 1)
		views, _, err := w.e.Workers(w.ctx(), client, engine.WorkerQuery{})
		ok(t, err)
		held := map[string]int{}
		for _, view := range views {
			if view.Leases > 0 {
				held[view.Worker.InstanceID] = view.Leases
			}
		}
		same(t, "leases", held, map[string]int{"i1": 2, "i7": 1})
	})
}

func TestS39_holders_of_many_keys_are_found_by_few_questions(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.searching()
		w.quota("q", core.QuotaSettings{ConcurrencyLimit: 1, PerKey: true})
		const keys = 15
		for i := range keys {
			for range 2 {
				w.submit(attached(use("q", fmt.Sprint("k", i))))
			}
		}
		first := map[string]base.ID{}
		for _, task := range w.take(engine.ClaimRequest{WorkerID: "w", InstanceID: "i", Lanes: []string{"default"}, Max: 2 * keys}) {
			first[task.Execution.Policy.Quotas[0].Key] = task.Execution.ID
		}
		same(t, "one of each key", len(first), keys)
		for name, caller := range map[string]engine.Caller{"sees all": client, "sees its own": {Principal: "me", Actor: "client", Namespaces: []string{"default"}}} {
			s.n.Store(0)
			view := must(w.e.Quota(w.ctx(), caller, "q"))(t)
			same(t, name+": keys", len(view.Keys), keys)
			for _, key := range view.Keys {
				same(t, name+": "+key.Key, []any{key.Held, key.Holders[0], len(key.Holders), key.Blocked, key.AtLeast}, []any{1, first[key.Key], 1, 1, false})
			}
			if n := s.n.Load(); n > 6 {
				t.Errorf("%s: %d questions", name, n)
			}
		}
	})
}
