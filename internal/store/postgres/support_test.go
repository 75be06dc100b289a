package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connectAt opens a connection that belongs to the test.
func connectAt(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func beginAt(t testing.TB, url string) pgx.Tx {
	t.Helper()
	tx, err := connectAt(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// execer is a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// execute runs a statement that must succeed.
func execute(t testing.TB, conn execer, sql string, values ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, values...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
