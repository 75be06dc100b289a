package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestReliability5_each_answer_of_the_server_is_the_right_fault(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	conn := connectAt(t, url)
	execute(t, conn, "create table code (code text)")
	execute(t, conn, `create function refuse() returns trigger language plpgsql set search_path = flowfabric as
		$$ begin raise exception 'refused' using errcode = (select code from code); end $$`)
	execute(t, conn, "create trigger refuse before insert on exec for each row execute function refuse()")
	for code, want := range map[string]store.FaultKind{
		"23505": store.Conflict, "55P03": store.Busy, "40001": store.Retry, "40P01": store.Retry,
		"57014": store.Unavailable, "53300": store.Unavailable, "53100": store.Unavailable, "XX001": store.Broken, "25006": store.Unavailable,
		"08006": store.Unknown, "23514": store.Broken, "22012": store.Broken,
	} {
		execute(t, conn, "delete from code")
		execute(t, conn, "insert into code values ($1)", code)
		tx, got, err := s.Begin(t.Context(), store.Want{})
		if err != nil {
			t.Fatal(err)
		}
		err = tx.Commit(t.Context(), &store.Changes{Insert: []*core.Execution{c.execution(got.Now)}})
		if store.FaultOf(err) != want {
			t.Errorf("SQLSTATE %s: %v, want %v", code, err, want)
		}
		told := map[string]base.Code{"53100": base.CodeStoreFull, "XX001": base.CodeCorruption}[code]
		if told != "" && base.CodeOf(err) != told {
			t.Errorf("SQLSTATE %s: %v, want code %s", code, err, told)
		}
	}
}

// terminate ends every other backend on the database.
func terminate(t *testing.T, conn execer) {
	t.Helper()
	execute(t, conn, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
}

func TestA_connection_lost_before_the_commit_was_sent_is_unavailable(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	killer := connectAt(t, url)
	list := c.submit(t, 1)
	tx, _, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{list[0].ID.UUID}})
	if err != nil {
		t.Fatal(err)
	}
	terminate(t, killer)
	_, err = tx.Load(t.Context(), store.Want{Counters: []string{"a"}})
	if store.FaultOf(err) != store.Unavailable {
		t.Fatalf("Load on a lost connection: %v, want unavailable", err)
	}
	if _, err := s.Now(t.Context()); err != nil && store.FaultOf(err) != store.Unavailable {
		t.Fatalf("Now after all connections were lost: %v", err)
	}
	if _, err := s.Read(t.Context(), store.Want{Executions: []base.UUID{list[0].ID.UUID}}); err != nil {
		t.Fatalf("the store does not recover: %v", err)
	}
}

func TestA_connection_lost_with_the_changes_under_way_writes_nothing_or_is_unknown(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	killer := connectAt(t, url)
	list := c.submit(t, 1)
	tx, got, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{list[0].ID.UUID}})
	if err != nil {
		t.Fatal(err)
	}
	terminate(t, killer)
	x := c.execution(got.Now)
	err = tx.Commit(t.Context(), &store.Changes{Insert: []*core.Execution{x}})
	if kind := store.FaultOf(err); err == nil || kind != store.Unavailable && kind != store.Unknown {
		t.Fatalf("Commit on a lost connection: %v", err)
	}
	loaded, err := s.Read(t.Context(), store.Want{Executions: []base.UUID{x.ID.UUID}})
	if err != nil || len(loaded.Executions) != 0 {
		t.Fatalf("the lost transaction left %v, %v", loaded.Executions, err)
	}
}

// holdCommits makes commits that insert executions wait until no transaction holds the row of the table gate.
func holdCommits(t *testing.T, conn execer) {
	t.Helper()
	execute(t, conn, "create table gate (one int)")
	execute(t, conn, "insert into gate values (1)")
	execute(t, conn, `create function wait() returns trigger language plpgsql set lock_timeout = 0 set search_path = flowfabric as
		$$ begin perform from gate for share; return null; end $$`)
	execute(t, conn, "create constraint trigger wait after insert on exec deferrable initially deferred for each row execute function wait()")
}

// waitUntil waits for a query to answer true.
func waitUntil(t *testing.T, url, query string) {
	t.Helper()
	conn := connectAt(t, url)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	bound := time.NewTimer(5 * time.Minute)
	defer bound.Stop()
	for {
		var done bool
		if err := conn.QueryRow(t.Context(), query).Scan(&done); err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-bound.C:
			t.Fatalf("never: %s", query)
		}
	}
}

const commitWaits = "select exists (select from pg_stat_activity where datname = current_database() and query = 'commit' and wait_event_type = 'Lock')"

func TestReliability3_a_connection_lost_while_committing_is_unknown(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	keeper := connectAt(t, url)
	holdCommits(t, keeper)
	gate := beginAt(t, url)
	execute(t, gate, "select from gate for update")
	answer := make(chan error)
	go func() {
		tx, got, err := s.Begin(context.WithoutCancel(t.Context()), store.Want{})
		if err == nil {
			err = tx.Commit(t.Context(), &store.Changes{Insert: []*core.Execution{c.execution(got.Now)}})
		}
		answer <- err
	}()
	waitUntil(t, url, commitWaits)
	execute(t, keeper, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'commit'")
	if err := <-answer; store.FaultOf(err) != store.Unknown {
		t.Fatalf("killed in the commit: %v, want unknown", err)
	}
}

func TestReliability3_a_deadline_while_committing_is_unknown_and_may_have_happened(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	keeper := connectAt(t, url)
	holdCommits(t, keeper)
	gate := beginAt(t, url)
	execute(t, gate, "select from gate for update")
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	x := c.execution(1)
	go func() {
		tx, _, err := s.Begin(ctx, store.Want{})
		if err == nil {
			err = tx.Commit(ctx, &store.Changes{Insert: []*core.Execution{x}})
		}
		answer <- err
	}()
	waitUntil(t, url, commitWaits)
	cancel()
	if err := <-answer; store.FaultOf(err) != store.Unknown {
		t.Fatalf("given up in the commit: %v, want unknown", err)
	}
}
