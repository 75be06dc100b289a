package upgrade_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrictest"
	"github.com/flowfabric/flowfabric/ops"
)

// unpacked returns the contents of a fixture. The program of commit 28c0dafd has written them: the oldest one that knows the whole schema 2 of
// SQLite and 4 of Postgres.
func unpacked(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestU265_rows_of_an_older_program_are_read_and_worked_off_on_sqlite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	if err := os.WriteFile(path, unpacked(t, "sqlite-2.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	readsAndGoesOn(t, "sqlite:"+path, "sqlite-2.json")
}

func TestU265_rows_of_an_older_program_are_read_and_worked_off_on_postgres(t *testing.T) {
	t.Parallel()
	store := cluster.Empty(t)
	for _, c := range []struct{ at, statements string }{
		{cluster.AdminURL(t, store), "grant all on schema public to public"}, // as before version 15
		{store, string(unpacked(t, "postgres-4.sql"))},
		{store, "update public.installation set database = (select oid from pg_database where datname = current_database())"}, // it is no copy
	} {
		conn, err := pgx.Connect(t.Context(), c.at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().Exec(t.Context(), c.statements).ReadAll(); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	readsAndGoesOn(t, store, "postgres-4.json")
}

// readsAndGoesOn compares what is read with what the older program has read, and brings all work to its end.
func readsAndGoesOn(t *testing.T, store, name string) {
	t.Helper()
	var before fixture
	if err := json.Unmarshal(unpacked(t, name), &before); err != nil {
		t.Fatal(err)
	}
	env := flowfabrictest.New(t, flowfabrictest.Config{Store: store, Start: before.At})
	before.compare(t, env.Client)

	ctx, c := t.Context(), env.Client
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Lanes().Resume(ctx, "closed")
	check(err)
	_, err = c.Operate().ReleaseHold(ctx, before.IDs["held"])
	check(err)
	_, err = c.Operate().Approve(ctx, before.IDs["asking"], ops.Approve{Action: ops.Action{Reason: "yes"}})
	check(err)
	found, err := all(c.Waitpoints().Suspended(ctx))
	check(err)
	for _, waits := range found {
		w, err := c.Waitpoints().Token(ctx, waits.ExecutionID, waits.Waitpoints[0].ID)
		check(err)
		_, err = c.Signal(ctx, flowfabric.Signal{WaitpointID: w.ID, Token: w.Token, Name: "go", Payload: flowfabric.Text("on")})
		check(err)
	}
	if len(found) != 2 {
		t.Errorf("%d executions wait for a signal", len(found))
	}
	env.Worker(flowfabric.WorkerConfig{Concurrency: 4, Lanes: []string{"default", "closed", later}, Capabilities: []string{"gpu"}}, talk(true))
	for range 5 {
		env.Advance(12 * time.Hour)
	}
	for name, id := range before.IDs {
		if name == "flow" {
			view, err := c.Flows().Get(ctx, id)
			check(err)
			if view.State != "completed" {
				t.Errorf("the flow is %s", view.State)
			}
			continue
		}
		want := map[string]flowfabric.Status{"failed": flowfabric.StatusFailed, "cancelled": flowfabric.StatusCancelled}[name]
		if want == "" {
			want = flowfabric.StatusSucceeded
		}
		x, err := c.Get(ctx, id)
		check(err)
		if x.Status != want {
			t.Errorf("%s is %s, not %s", name, x.Status, want)
		}
	}
}
