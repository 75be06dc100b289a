package postgres

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func submission(now base.Time, key string) (*store.KeyRow, store.InboxRow) {
	id := base.IDOf(mint(now))
	return &store.KeyRow{
		Key: store.Key{Space: store.ExecutionKeys, Namespace: "default", Text: key}, Fingerprint: []byte("print"), ID: id, ExpiresAt: now.Add(base.Day),
	}, store.InboxRow{ID: id, Body: []byte("body")}
}

func TestL88_a_transaction_of_database_sql_submits(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, row := submission(now, "once")
	if existing, err := s.SubmitTx(t.Context(), tx, key, row); err != nil || existing != nil {
		t.Fatalf("SubmitTx: %v, %v", existing, err)
	}
	again, otherRow := submission(now, "once")
	existing, err := s.SubmitTx(t.Context(), tx, again, otherRow)
	if err != nil || existing == nil || existing.ID != key.ID || string(existing.Fingerprint) != "print" {
		t.Fatalf("SubmitTx of the same key: %+v, %v", existing, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Read(t.Context(), store.Want{Inbox: 10})
	if err != nil || len(loaded.Inbox) != 1 || loaded.Inbox[0].ID != row.ID {
		t.Fatalf("inbox: %+v, %v", loaded, err)
	}
}

func TestL88_a_refusal_leaves_the_users_transaction_usable(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, second := beginAt(t, url), beginAt(t, url)
	key, row := submission(now, "held")
	if _, err := s.SubmitTx(t.Context(), first, key, row); err != nil {
		t.Fatal(err)
	}
	other, otherRow := submission(now, "held")
	if _, err := s.SubmitTx(t.Context(), second, other, otherRow); base.CodeOf(err) != base.CodeIdempotencyInProgress {
		t.Fatalf("a key held by an open transaction: %v", err)
	}
	var wait string
	if err := second.QueryRow(t.Context(), "show lock_timeout").Scan(&wait); err != nil || wait != "0" {
		t.Fatalf("the user's transaction is not as it was: lock_timeout %s, %v", wait, err)
	}
	execute(t, first, "rollback")
	if existing, err := s.SubmitTx(t.Context(), second, other, otherRow); err != nil || existing != nil {
		t.Fatalf("after the other was rolled back: %v, %v", existing, err)
	}
}

func TestL88_a_database_without_flowfabric_is_the_wrong_one_and_its_transaction_goes_on(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{})
	tx := beginAt(t, cluster.Empty(t))
	key, row := submission(1, "lost")
	if _, err := s.SubmitTx(t.Context(), tx, key, row); base.CodeOf(err) != base.CodeWrongDatabase {
		t.Fatalf("SubmitTx: %v, want wrong_database", err)
	}
	execute(t, tx, "select 1")
}

func TestL84_a_key_whose_window_has_ended_is_free_for_a_transactional_submit(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old, _ := submission(now, "old")
	old.ExpiresAt = now
	c := newCycler(t, s, "default")
	c.within(t, store.Want{}, func(*store.Loaded) *store.Changes { return &store.Changes{NewKeys: []store.KeyRow{*old}} })
	key, row := submission(now, "old")
	if existing, err := s.SubmitTx(t.Context(), beginAt(t, url), key, row); err != nil || existing != nil {
		t.Fatalf("SubmitTx: %v, %v", existing, err)
	}
}
