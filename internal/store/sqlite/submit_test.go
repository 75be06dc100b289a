package sqlite

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// beginOwn begins a transaction of the user's own program, which takes the right to write with its first change.
func beginOwn(t *testing.T, s *Store) *sql.Tx {
	t.Helper()
	db, err := sql.Open("sqlite", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// readIn lets the user's transaction read something, so that it has a snapshot.
func readIn(t *testing.T, tx *sql.Tx) {
	t.Helper()
	var n int
	if err := tx.QueryRowContext(t.Context(), "select count(*) from sqlite_schema").Scan(&n); err != nil {
		t.Fatal(err)
	}
}

// beginEngine begins a transaction of the engine and returns how it is committed.
func beginEngine(t *testing.T, s *Store) (commit func()) {
	t.Helper()
	tx, _, err := s.Begin(t.Context(), store.Want{Counters: []string{"c"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback(t.Context()) })
	return func() {
		if err := tx.Commit(t.Context(), &store.Changes{Counters: map[string]int64{"c": 1}}); err != nil {
			t.Error(err)
		}
	}
}

func submissionRow() store.InboxRow {
	return store.InboxRow{ID: base.IDOf(base.UUID{1}), Body: []byte("body")}
}

// expectLocked wants the refusal of a transaction that may not write: a code, and a hint that helps.
func expectLocked(t *testing.T, err error) {
	t.Helper()
	var refusal *base.Error
	if !errors.As(err, &refusal) || refusal.Code != base.CodeStoreUnavailable || !strings.Contains(refusal.Hint, "_txlock=immediate") {
		t.Fatalf("SubmitTx: %v, want store_unavailable with a hint at _txlock=immediate", err)
	}
}

func TestU137_a_transaction_that_only_began_waits_for_its_turn_to_write(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{UnsafeDurability: true})
	own := beginOwn(t, s)
	commit := beginEngine(t, s)
	answer := make(chan error)
	go func() {
		_, err := s.SubmitTx(t.Context(), own, nil, submissionRow())
		answer <- err
	}()
	commit()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	if err := own.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestU137_a_transaction_that_meets_a_writer_is_refused_and_can_try_again(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	own := beginOwn(t, s)
	readIn(t, own)
	tx, _, err := s.Begin(t.Context(), store.Want{Counters: []string{"c"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.SubmitTx(t.Context(), own, nil, submissionRow())
	expectLocked(t, err)
	tx.Rollback(t.Context())
	if existing, err := s.SubmitTx(t.Context(), own, nil, submissionRow()); existing != nil || err != nil {
		t.Fatalf("SubmitTx after the other has ended: %v, %v", existing, err)
	}
	if err := own.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestU137_a_transaction_whose_snapshot_is_old_is_told_to_begin_again_and_can_read_on(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{UnsafeDurability: true})
	own := beginOwn(t, s)
	readIn(t, own)
	beginEngine(t, s)()
	_, err := s.SubmitTx(t.Context(), own, nil, submissionRow())
	expectLocked(t, err)
	readIn(t, own)
	if err := own.Rollback(); err != nil {
		t.Fatal(err)
	}
	if existing, err := s.SubmitTx(t.Context(), beginOwn(t, s), nil, submissionRow()); existing != nil || err != nil {
		t.Fatalf("SubmitTx in a new transaction: %v, %v", existing, err)
	}
}
