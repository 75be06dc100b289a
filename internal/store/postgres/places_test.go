package postgres

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A row that another transaction moved while we waited for it is written where it lies now.
func TestAn_execution_that_was_waited_for_is_written_where_it_lies_then(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	c := newCycler(t, s, "default")
	list := c.submit(t, 3)
	ids := []base.UUID{list[0].ID.UUID, list[1].ID.UUID, list[2].ID.UUID}
	first, loaded, err := s.Begin(t.Context(), store.Want{Executions: ids, Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		waiting, loaded, err := s.Begin(t.Context(), store.Want{Executions: ids, Patient: true})
		if err == nil {
			for _, id := range ids {
				loaded.Executions[id].Priority += 10
			}
			err = waiting.Commit(t.Context(), &store.Changes{Update: inOrder(loaded, ids)})
		}
		second <- err
	}()
	waitUntil(t, url, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')")
	for _, id := range ids {
		loaded.Executions[id].Priority++
	}
	if err := first.Commit(t.Context(), &store.Changes{Update: inOrder(loaded, ids)}); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	got, err := s.Read(t.Context(), store.Want{Executions: ids})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if priority := got.Executions[id].Priority; priority != 11 {
			t.Errorf("priority %d after 1 and 10 were added", priority)
		}
	}
}

func inOrder(loaded *store.Loaded, ids []base.UUID) (list []*core.Execution) {
	for _, id := range ids {
		list = append(list, loaded.Executions[id])
	}
	return list
}

// Rows that were not picked by this transaction are found by their key.
func TestQueue_rows_are_removed_whether_picked_or_not(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	c := newCycler(t, s, "default")
	list := c.submit(t, 6)
	want := store.Want{Pick: []store.Pick{{Class: c.class.ID, Floor: c.floor, Limit: 3}}}
	c.within(t, want, func(got *store.Loaded) *store.Changes {
		ch := &store.Changes{Dequeue: got.Picked[1:]} // the first stays
		for _, x := range list {
			if got.Executions[x.ID.UUID] == nil {
				ch.Dequeue = append(ch.Dequeue, queued(x))
			}
		}
		return ch
	})
	var left int
	if err := connectAt(t, url).QueryRow(t.Context(), "select count(*) from queue").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 1 {
		t.Errorf("%d queue rows are left, want 1", left)
	}
}
