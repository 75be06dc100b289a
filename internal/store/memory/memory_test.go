package memory

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// late is a process whose commits with events wait behind their drawn position.
func late() (p Process, draws, goOn chan struct{}) {
	draws, goOn = make(chan struct{}), make(chan struct{})
	p.Gate = func(at Point) {
		if at == Drawn {
			draws <- struct{}{}
			<-goOn
		}
	}
	return p, draws, goOn
}

func commitEvent(t *testing.T, s *Store) error {
	t.Helper()
	tx, _, err := s.Begin(t.Context(), store.Want{})
	if err != nil {
		return err
	}
	return tx.Commit(t.Context(), &store.Changes{Events: []core.Event{{Kind: "lane.changed", AttemptIndex: -1}}})
}

func logOf(t *testing.T, s *Store) (seqs []int64, events int) {
	t.Helper()
	commits, err := s.Log(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		seqs, events = append(seqs, c.Seq), events+len(c.Events)
	}
	return seqs, events
}

func TestE33_a_reader_waits_for_a_commit_that_is_late(t *testing.T) {
	t.Parallel()
	p, draws, goOn := late()
	s := New(Config{}).Open(p)
	defer func() { _ = s.Close() }()
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- commitEvent(t, s) }()
		<-draws
	}
	if seqs, _ := logOf(t, s); len(seqs) != 0 {
		t.Fatalf("positions %v of open transactions are visible", seqs)
	}
	for range 2 {
		goOn <- struct{}{}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if seqs, events := logOf(t, s); len(seqs) != 2 || events != 2 {
		t.Fatalf("positions %v with %d events", seqs, events)
	}
}

func TestE33_the_position_of_a_process_that_ended_holds_up_no_reader(t *testing.T) {
	t.Parallel()
	p, draws, goOn := late()
	d := New(Config{})
	dying, s := d.Open(p), d.Open(p)
	defer func() { _ = s.Close() }()
	ended := make(chan error, 2)
	go func() { ended <- commitEvent(t, dying) }()
	<-draws
	go func() { ended <- commitEvent(t, s) }()
	<-draws
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	var failed int
	for range 2 {
		goOn <- struct{}{}
		if err := <-ended; err != nil {
			failed++
		}
	}
	if seqs, events := logOf(t, s); failed != 1 || len(seqs) != 2 || events != 1 {
		t.Fatalf("%d commits failed; positions %v with %d events", failed, seqs, events)
	}
}

func TestS73_a_process_that_ends_frees_its_rows_for_those_that_wait(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{}, 1)
	d := New(Config{})
	dying, s := d.Open(Process{}), open(t, d)
	want := store.Want{Counters: []string{"a"}, Patient: true}
	tx, _, err := dying.Begin(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		waiting <- struct{}{}
		second, _, err := s.Begin(t.Context(), want)
		if err == nil {
			second.Rollback(t.Context())
		}
		got <- err
	}()
	<-waiting
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context(), &store.Changes{Counters: map[string]int64{"a": 1}}); err == nil {
		t.Fatal("a transaction of a process that ended was committed")
	}
}

func TestS73_a_session_that_the_server_ended_commits_nothing(t *testing.T) {
	t.Parallel()
	s := open(t, New(Config{}))
	want := store.Want{Counters: []string{"a"}}
	tx, _, err := s.Begin(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	s.Break()
	if err := tx.Commit(t.Context(), &store.Changes{Counters: map[string]int64{"a": 1}}); store.FaultOf(err) != store.Retry {
		t.Fatalf("commit: %v", err)
	}
	again, loaded, err := s.Begin(t.Context(), want)
	if err != nil || loaded.Counters["a"] != 0 {
		t.Fatalf("afterwards: %v, %v", loaded, err)
	}
	again.Rollback(t.Context())
}

func TestTheSameCallsGiveTheSameContent(t *testing.T) {
	t.Parallel()
	run := func() base.UUID {
		d := New(Config{Seed: 7, Now: func() base.Time { return 1_000_000 }})
		s := open(t, d)
		if err := commitEvent(t, s); err != nil {
			t.Fatal(err)
		}
		return s.Info().LogID
	}
	if a, b := run(), run(); a != b {
		t.Fatalf("two databases of one seed have the logs %s and %s", a, b)
	}
}
