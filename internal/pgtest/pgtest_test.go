package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

var cluster = pgtest.New(func(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "create table mark (n int); insert into mark values (7)")
	_ = conn.Close(ctx)
	return err
})

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

func TestEach_test_has_its_own_copy_of_the_template(t *testing.T) {
	t.Parallel()
	first, second := connect(t, cluster.Database(t)), connect(t, cluster.Database(t))
	if _, err := first.Exec(t.Context(), "update mark set n = 8"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := second.QueryRow(t.Context(), "select n from mark").Scan(&n); err != nil || n != 7 {
		t.Fatalf("n = %d, %v; want 7", n, err)
	}
}

func TestThe_server_is_durable_private_and_gives_tests_no_superuser(t *testing.T) {
	t.Parallel()
	conn := connect(t, cluster.Database(t))
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "", "is_superuser": "off",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
}

// body is tests of a package that are one function.
type body func()

// Run runs it.
func (b body) Run() int {
	b()
	return 0
}

func TestNotifications_are_lost_where_they_are_switched_off(t *testing.T) {
	t.Setenv(pgtest.NotifyVariable, "off")
	quiet := pgtest.New(nil)
	quiet.Around(body(func() {
		t.Run("database", func(t *testing.T) { // dropped before the server ends
			conn := connect(t, quiet.Database(t))
			for _, statement := range []string{"listen x", "select pg_notify('x', 'lost')", "notify x, 'heard'"} {
				if _, err := conn.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Payload != "heard" {
				t.Fatalf("the first notification is %+v, %v", n, err)
			}
		})
	})).Run()
}

func TestA_server_ends_with_a_killed_process_and_leaves_nothing_behind(t *testing.T) {
	t.Parallel()
	if os.Getenv("FF_PGTEST_VICTIM") != "" {
		server, err := pgtest.Start(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("socket=" + server.Socket() + "\n")
		select {}
	}
	victim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), "FF_PGTEST_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	socket := readSocket(t, out)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	waitGone(t, socket)
}

func TestA_server_falls_back_to_its_mark_on_another_timeline(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Fallible(t, nil)
	look := func() (rows int, timeline string) {
		t.Helper()
		conn := connect(t, url)
		if err := conn.QueryRow(t.Context(), "select count(*), left(pg_walfile_name(pg_current_wal_lsn()), 8) from mark").Scan(&rows, &timeline); err != nil {
			t.Fatal(err)
		}
		return rows, timeline
	}
	run := func(sql string) {
		t.Helper()
		if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run("create table mark (n int); insert into mark values (1)")
	_, before := look()
	for range 2 {
		if err := server.Mark(t.Context()); err != nil {
			t.Fatal(err)
		}
		run("insert into mark values (2)")
		if err := server.FallBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, timeline := look()
		if rows != 1 || timeline == before {
			t.Fatalf("%d rows on timeline %s, before %s", rows, timeline, before)
		}
		before = timeline
	}
}

func TestA_directory_without_a_server_is_refused(t *testing.T) {
	t.Setenv(pgtest.BinVariable, t.TempDir())
	server, err := pgtest.Start(t.Context(), nil)
	if err == nil {
		server.Stop()
		t.Fatal("a server was started")
	}
	if !strings.Contains(err.Error(), pgtest.BinVariable) {
		t.Fatalf("%v does not name the variable", err)
	}
}

// The number that initdb draws tells the copies of one cluster from all others.
func TestA_server_begins_as_a_copy_of_the_one_that_serves_the_run(t *testing.T) {
	numbers := map[string]bool{}
	for range 3 { // the third copies what the second has copied
		server, err := pgtest.Start(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		t.Setenv(pgtest.Variable, server.Socket())
		var number string
		if err := connect(t, server.URL()).QueryRow(t.Context(), "select system_identifier::text from pg_control_system()").Scan(&number); err != nil {
			t.Fatal(err)
		}
		numbers[number] = true
	}
	if len(numbers) != 1 {
		t.Errorf("the servers have the numbers %v", numbers)
	}
}

func TestTemporary_files_in_memory_are_removed_in_the_end(t *testing.T) {
	t.Parallel()
	directory, end, err := pgtest.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if directory != "" { // where there is enough memory
		if err := os.WriteFile(filepath.Join(directory, "x"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	end()
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("%q is still there: %v", directory, err)
	}
}
