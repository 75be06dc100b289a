package migrated_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

var cluster = migrated.New()

func TestMain(m *testing.M) { goleak.VerifyTestMain(cluster.Around(m)) }

// seen is what a test finds in the database that it is given.
type seen struct {
	url     string
	rows    []string
	info    store.Info
	backend int
}

// use takes a database, does something in it and tells what was there before.
func use(t *testing.T, name string, do func(t *testing.T, d *migrated.Database, s *postgres.Store)) (found seen) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		d := cluster.Again(t)
		found.url, found.rows = d.URL, rowsOf(t, d.URL)
		s := openOn(t, d)
		found.info, found.backend = s.Info(), backendOf(t, d.URL)
		do(t, d, s)
	})
	return found
}

func openOn(t *testing.T, d *migrated.Database) *postgres.Store {
	t.Helper()
	s, err := d.Open(t.Context(), postgres.Config{PoolSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// rowsOf lists the rows of all tables and the positions of all sequences, without what makes each installation another.
func rowsOf(t *testing.T, url string) []string {
	t.Helper()
	conn := connect(t, url)
	tables := query(t, conn, "select oid::regclass::text from pg_class where relnamespace = 'flowfabric'::regnamespace and relkind in ('r', 'p') order by 1")
	rows := query(t, conn, "select sequencename || ' ' || coalesce(last_value, 0) from pg_sequences where schemaname = 'flowfabric' order by 1")
	for _, table := range tables {
		for _, row := range query(t, conn, "select (to_jsonb(t) - array['id', 'log_id', 'database', 'applied_at'])::text from "+table+" t order by 1") {
			rows = append(rows, table+" "+row)
		}
	}
	return rows
}

// backendOf is the process of the oldest session of a store.
func backendOf(t *testing.T, url string) (pid int) {
	t.Helper()
	err := connect(t, url).QueryRow(t.Context(), `select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
		and pid <> pg_backend_pid() and query like '%clock_timestamp%' order by backend_start limit 1`).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func query(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func nothing(*testing.T, *migrated.Database, *postgres.Store) {}

// fill writes into tables with rows of their own and with sequences.
func fill(t *testing.T, d *migrated.Database, _ *postgres.Store) {
	t.Helper()
	conn := connect(t, d.URL)
	execute(t, conn, "insert into timer (due, at, kind, ids, texts) select n, n, 1, '{}', '{}' from generate_series(1, 3) n")
	execute(t, conn, "update projection set position = 7")
	execute(t, conn, "update installation set log_floor = 5, dictionary = dictionary + 1")
	execute(t, conn, "insert into log (seq, at, body) select nextval('log_seq'), 1, '' from generate_series(1, 9)")
	execute(t, conn, "delete from schema_migration where version = 1")
}

func TestDatabases_are_used_again_and_as_new(t *testing.T) {
	t.Parallel()
	// One after the other, so that each is given what the last has given back.
	t.Run("a database that is used again is as new and keeps its sessions", asNew)
	t.Run("a database is dropped when more than rows is left behind", dropped)
	t.Run("a database is used again although a pooler keeps sessions with it", pooled)
	t.Run("a closed store does not use the sessions of the next", closedStore)
}

func asNew(t *testing.T) {
	first := use(t, "first", fill)
	second := use(t, "second", nothing)
	if first.url != second.url || first.backend != second.backend {
		t.Errorf("the second test was given %s and session %d, the first %s and %d", second.url, second.backend, first.url, first.backend)
	}
	if !slices.Equal(first.rows, second.rows) || len(first.rows) == 0 {
		t.Errorf("the first test found\n%q\nthe second\n%q", first.rows, second.rows)
	}
	if first.info.Installation == second.info.Installation || first.info.LogID == second.info.LogID {
		t.Errorf("both tests had installation %s, log %s", second.info.Installation, second.info.LogID)
	}
}

func dropped(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, d *migrated.Database, s *postgres.Store){
		"a column": func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
			execute(t, connect(t, d.URL), "alter table lane add column more int")
		},
		"a trigger": func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
			execute(t, connect(t, d.URL), "create trigger none before update on lane for each row execute function suppress_redundant_updates_trigger()")
		},
		"a right": func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
			execute(t, connect(t, d.URL), "revoke insert on lane from flowfabric")
		},
		"a setting": func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
			conn := connect(t, d.URL)
			execute(t, conn, "alter database "+conn.Config().Database+" set synchronous_commit = off")
		},
		"a session": func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
			conn, err := pgx.Connect(context.Background(), d.URL)
			if err != nil {
				t.Fatal(err)
			}
			execute(t, conn, "begin; select pg_advisory_lock(1)")
		},
	} {
		before := use(t, name, spoil)
		if after := use(t, "after "+name, nothing); before.url == after.url {
			t.Errorf("the database was used again after a test that left %s behind", name)
		}
	}
}

func pooled(t *testing.T) {
	through := cluster.Pooler(t)
	work := func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
		s, err := d.OpenAt(t.Context(), through(d.URL), postgres.Config{PoolSize: 2, DirectURL: d.URL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
	}
	first, second := use(t, "first", work), use(t, "second", work)
	if first.url != second.url {
		t.Errorf("the second test was given %s, the first %s", second.url, first.url)
	}
	left := use(t, "left", func(t *testing.T, d *migrated.Database, _ *postgres.Store) {
		conn, err := pgx.Connect(context.Background(), through(d.URL)+"&default_query_exec_mode=exec")
		if err != nil {
			t.Fatal(err)
		}
		execute(t, conn, "begin")
	})
	if after := use(t, "after", nothing); left.url == after.url {
		t.Error("the database was used again after a test that left a transaction of a pooler open")
	}
}

func closedStore(t *testing.T) {
	var closed *postgres.Store
	use(t, "first", func(_ *testing.T, _ *migrated.Database, s *postgres.Store) { closed = s })
	use(t, "second", func(t *testing.T, _ *migrated.Database, _ *postgres.Store) {
		if now, err := closed.Now(t.Context()); err == nil {
			t.Errorf("a closed store read the clock: %v", now)
		}
	})
}
