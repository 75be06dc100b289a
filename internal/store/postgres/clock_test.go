package postgres

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// until waits until the server's clock has passed a time, and returns its reading.
func until(t *testing.T, s *Store, at base.Time) (now base.Time) {
	t.Helper()
	for now <= at {
		var err error
		if now, err = s.Now(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return now
}

func TestRule2_a_transaction_reads_the_clock_after_it_has_waited_for_its_locks(t *testing.T) {
	t.Parallel()
	s, _ := openNew(t, Config{})
	c := newCycler(t, s, "default")
	want := store.Want{LockLanes: []int32{c.lane.ID}, Patient: true}
	holder, held, err := s.Begin(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	type begun struct {
		now base.Time
		err error
	}
	waited := make(chan begun, 1)
	go func() {
		tx, loaded, err := s.Begin(t.Context(), want)
		if err != nil {
			waited <- begun{err: err}
			return
		}
		tx.Rollback(t.Context())
		waited <- begun{now: loaded.Now}
	}()
	released := until(t, s, held.Now.Add(100))
	holder.Rollback(t.Context())
	if got := <-waited; got.err != nil || got.now < released {
		t.Errorf("the lock came free at %d, and the clock of the transaction that waited for it says %d: %v", released, got.now, got.err)
	}
}

func TestL18_a_row_from_a_cache_is_not_written_once_its_timer_was_due_though_the_transaction_began_before(t *testing.T) {
	t.Parallel()
	s, _ := openNew(t, Config{})
	c := newCycler(t, s, "default")
	c.submit(t, 1)
	id := c.claim(t, 1)[0]
	for _, late := range []bool{false, true} {
		tx, loaded, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{id}})
		if err != nil {
			t.Fatal(err)
		}
		due := loaded.Now.Add(base.Hour)
		if late {
			due = loaded.Now.Add(20)
			until(t, s, due)
		}
		err = tx.Commit(t.Context(), &store.Changes{Assume: []*core.Execution{loaded.Executions[id]}, AssumeUntil: due})
		if late && store.FaultOf(err) != store.Conflict || !late && err != nil {
			t.Errorf("late %v: %v", late, err)
		}
	}
}
