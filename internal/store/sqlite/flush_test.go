package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/store"
)

// disk stands between a store and its syncs: each is let through by the test.
type disk struct {
	asked chan struct{} // a sync begins
	let   chan error    // and ends so
}

// slow puts a disk under an open store.
func slow(s *Store) *disk {
	d := &disk{make(chan struct{}, 100), make(chan error)}
	s.flush.sync = func() error {
		d.asked <- struct{}{}
		return <-d.let
	}
	return d
}

// insert commits an execution and returns what is reported of it.
func insert(t *testing.T, s *Store, class *core.Class) (x *core.Execution, told chan error) {
	t.Helper()
	x, told = queued(s, class), make(chan error, 1)
	commit(t, s, store.Want{}, &store.Changes{Insert: []*core.Execution{x}, Safe: func(err error) { told <- err }})
	return x, told
}

func TestThe_next_transaction_runs_while_the_last_one_is_synced_and_both_share_what_comes_after(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	class := seed(t, s).Class
	d := slow(s)
	first, told := insert(t, s, class)
	<-d.asked
	second, toldToo := insert(t, s, class)
	third, toldLast := insert(t, s, class)
	if len(told)+len(toldToo)+len(toldLast) != 0 {
		t.Fatal("told before the sync")
	}
	d.let <- nil
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	<-d.asked
	if len(toldToo)+len(toldLast) != 0 {
		t.Fatal("told by a sync that had begun before")
	}
	d.let <- nil
	if err := errors.Join(<-toldToo, <-toldLast); err != nil {
		t.Fatal(err)
	}
	if len(d.asked) != 0 {
		t.Error("two commits that waited together were synced one by one")
	}
	for _, x := range []*core.Execution{first, second, third} {
		if !exists(t, s, x.ID.UUID) {
			t.Errorf("%s is not there", x.ID.UUID)
		}
	}
}

func TestNobody_sees_what_could_still_be_lost(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	class := seed(t, s).Class
	d := slow(s)
	x, told := insert(t, s, class)
	<-d.asked
	gone, cancel := context.WithCancel(t.Context())
	seen := make(chan error, 2)
	for _, ctx := range []context.Context{t.Context(), gone} {
		go func() {
			_, err := s.Read(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}})
			seen <- err
		}()
	}
	cancel()
	if err := <-seen; store.FaultOf(err) != store.Unavailable || !errors.Is(err, context.Canceled) {
		t.Fatalf("who gave up got %v", err)
	}
	tx, loaded, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{x.ID.UUID}})
	if err != nil || len(loaded.Executions) != 1 {
		t.Fatalf("the next transaction does not see it: %v", err)
	}
	tx.Rollback(t.Context())
	looked := make(chan error, 1)
	tx.Seen(func(err error) { looked <- err })
	if len(looked)+len(seen)+len(told) != 0 {
		t.Fatal("told before the sync")
	}
	d.let <- nil
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-looked, <-seen); err != nil {
		t.Fatal(err)
	}
}

func TestWho_may_have_seen_a_commit_under_way_waits_until_it_is_written_and_synced(t *testing.T) {
	t.Parallel()
	syncs := 0
	f := &flusher{sync: func() error { syncs++; return nil }}
	f.begins()
	told := make(chan error, 1)
	f.then(func(err error) { told <- err })
	f.idle.Wait()
	if len(told) != 0 || syncs != 0 {
		t.Fatalf("told %d times after %d syncs of a log that has nothing of it yet", len(told), syncs)
	}
	f.wrote(nil)
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	f.idle.Wait()
	if err := f.settled(t.Context()); err != nil || syncs != 1 {
		t.Fatalf("%v after %d syncs", err, syncs)
	}
}

func TestAfter_a_sync_that_failed_nothing_is_promised_any_more(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	class := seed(t, s).Class
	d := slow(s)
	x, told := insert(t, s, class)
	<-d.asked
	torn := errors.New("the disk is torn")
	d.let <- torn
	if err := <-told; store.FaultOf(err) != store.Unknown || !errors.Is(err, torn) {
		t.Fatalf("the commit was told to be %v", err)
	}
	_, _, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{x.ID.UUID}})
	if store.FaultOf(err) != store.Unavailable || !errors.Is(err, torn) {
		t.Errorf("a transaction after that: %v", err)
	}
	if _, err := s.Read(t.Context(), store.Want{Executions: []base.UUID{x.ID.UUID}}); store.FaultOf(err) != store.Unavailable {
		t.Errorf("a read after that: %v", err)
	}
	if len(d.asked) != 0 {
		t.Error("the disk was asked once more")
	}
}

func TestWhat_can_be_found_out_again_is_not_synced_and_everything_else_is_before_it_returns(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	syncs, real := 0, s.flush.sync
	s.flush.sync = func() error { syncs++; return real() }
	for _, one := range []struct {
		when durability
		want int
	}{{durably, 1}, {eventually, 1}, {eventually, 1}, {durably, 2}} {
		if err := s.write(t.Context(), one.when, func(*conn) error { return nil }); err != nil {
			t.Fatal(err)
		}
		s.flush.idle.Wait()
		if syncs != one.want {
			t.Fatalf("%d syncs, want %d", syncs, one.want)
		}
	}
}

func TestU153_the_goroutine_that_syncs_belongs_to_the_opener_of_the_store_and_not_to_a_waiting_call(t *testing.T) {
	t.Parallel()
	family := quiescence.New()
	var s *Store
	var err error
	family.Do(func() { s, err = Open(t.Context(), file(t), Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	class := seed(t, s).Class
	var disk sync.Mutex
	disk.Lock()
	s.flush.sync = func() error {
		disk.Lock()
		defer disk.Unlock()
		return nil
	}
	_, told := insert(t, s, class)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := family.Await(ended); err == nil || !strings.Contains(err.Error(), "(*flusher)") {
		t.Errorf("while a commit is synced the goroutines of the store stand still: %v", err)
	}
	disk.Unlock()
	if err := <-told; err != nil {
		t.Fatal(err)
	}
}

func TestA_sync_answers_nobody_who_waits_for_a_later_commit(t *testing.T) {
	t.Parallel()
	f := &flusher{}
	for range 3 {
		f.begins()
		f.mu.Lock()
		f.written = f.begun
		f.waiting = append(f.waiting, waiting{f.written, func(error) {}})
		f.mu.Unlock()
	}
	if safe := f.reached(2, nil); len(safe) != 2 || len(f.waiting) != 1 || f.waiting[0].commit != 3 {
		t.Errorf("a sync of two commits answers %d, and %d wait on", len(safe), len(f.waiting))
	}
}

func TestI1_a_sync_that_succeeds_after_one_that_failed_answers_for_nothing(t *testing.T) {
	t.Parallel()
	torn := errors.New("the disk is torn")
	syncs := 0
	f := &flusher{sync: func() error {
		if syncs++; syncs == 1 {
			return torn
		}
		return nil
	}}
	for range 2 {
		f.begins()
		told := make(chan error, 1)
		f.wrote(func(err error) { told <- err })
		f.idle.Wait()
		if err := <-told; !errors.Is(err, torn) {
			t.Errorf("after %d syncs a commit is told: %v", syncs, err)
		}
	}
	if syncs != 1 {
		t.Errorf("the disk was asked %d times", syncs)
	}
}
