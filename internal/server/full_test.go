package server_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/server"
)

// A Postgres whose disk is full answers every insert with SQLSTATE 53100; a trigger makes it do so. What SQLite says on a full disk is
// tested where its files are opened.
func TestU114_a_server_whose_store_is_full_is_not_ready(t *testing.T) {
	t.Parallel()
	address := cluster.Database(t)
	w := serveStore(t, address, server.Config{Open: true})
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	run := func(text string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run(`create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$`)
	run(`create trigger full_disk before insert on exec for each row execute function full_disk()`)
	run(`create trigger full_disk before insert on doc for each row execute function full_disk()`)
	w.post(t, "/v1/executions", `{"kind":"k"}`).refuses(t, 503, "store_full")
	if full := w.get(t, "/readyz").wants(t, 503); full.text(t, "checks.store.detail") != "store_full" {
		t.Fatalf("%s", full.body)
	}
}
