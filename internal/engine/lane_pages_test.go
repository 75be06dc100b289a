package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestU100_a_page_of_lanes_asks_the_store_as_often_as_one_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		s := w.searching()
		const lanes = 40
		since := w.now()
		for i := range lanes {
			w.submit(core.Submission{Lane: fmt.Sprintf("l%02d", i)})
		}
		w.turn(70)
		for i := range lanes {
			for range i % 3 {
				w.cancel(w.submit(core.Submission{Lane: fmt.Sprintf("l%02d", i)}))
			}
		}
		for name, caller := range map[string]engine.Caller{"sees all": client, "sees its own": {Principal: "me", Actor: "client", Namespaces: []string{"default"}}} {
			s.n.Store(0)
			views, _, err := w.e.Lanes(w.ctx(), caller, "", ptr(1000))
			ok(t, err)
			same(t, name+": lanes", len(views), lanes)
			for i, view := range views {
				want := map[core.Status]int{core.Ready: 1}
				if i%3 > 0 {
					want[core.Cancelled] = i % 3
				}
				same(t, name+": "+view.Lane.Name, []any{view.Counts, view.OldestReady, view.AtLeast}, []any{want, since, false})
			}
			same(t, name+": questions", s.n.Load(), 2)
		}
	})
}

func TestI14_the_counts_and_the_oldest_of_a_page_of_lanes_are_those_of_the_callers_namespaces(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Namespace: "other", Lane: "shared"})
		w.turn(30)
		w.submit(core.Submission{Namespace: "mine", Lane: "shared"})
		since := w.now()
		w.submit(core.Submission{Namespace: "other", Lane: "theirs"})
		views, _, err := w.e.Lanes(w.ctx(), engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{"mine"}}, "", nil)
		ok(t, err)
		same(t, "lanes", len(views), 1)
		same(t, "shared", []any{views[0].Lane.Name, views[0].Counts, views[0].OldestReady}, []any{"shared", map[core.Status]int{core.Ready: 1}, since})
	})
}

// oneCrowded is a store in which one lane has so many executions that no count comes to those of others.
type oneCrowded struct{ *searches }

func (c *oneCrowded) CountBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) ([]store.Group, error) {
	groups, err := c.searches.CountBy(ctx, q, by, limit)
	for _, group := range groups {
		if group.Text == "huge" {
			group.Rows = limit
			return []store.Group{group}, err
		}
	}
	return groups, err
}

func TestU100_L136_a_lane_with_very_many_executions_hides_none_of_another_lane(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		s := &oneCrowded{&searches{Store: w.store}}
		w.e = w.openEngine(s)
		w.submit(core.Submission{Lane: "huge"})
		w.submit(core.Submission{Lane: "small"})
		w.cancel(w.submit(core.Submission{Lane: "small"}))
		s.n.Store(0)
		views, _, err := w.e.Lanes(w.ctx(), client, "", nil)
		ok(t, err)
		same(t, "huge", []any{views[0].Counts, views[0].AtLeast}, []any{map[core.Status]int{core.Ready: 10_000}, true})
		same(t, "small", []any{views[1].Counts, views[1].AtLeast}, []any{map[core.Status]int{core.Ready: 1, core.Cancelled: 1}, false})
		if n := s.n.Load(); n > 16 {
			t.Fatalf("the store was asked %d times", n)
		}
	})
}
