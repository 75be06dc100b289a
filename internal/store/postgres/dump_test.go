package postgres

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/aptget"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// needTools makes sure that pg_dump and pg_restore are there.
func needTools(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("pg_dump"); err != nil {
		if err := aptget.Install(t.Context(), "postgresql-client"); err != nil {
			t.Fatal(err)
		}
	}
}

// dumpFile dumps the store at an address into a file.
func dumpFile(t *testing.T, url string) (string, Dumped) {
	t.Helper()
	needTools(t)
	var out bytes.Buffer
	dumped, err := Dump(t.Context(), url, Config{UnsafeDurability: true}, &out)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.dump")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, dumped
}

// someRows adds rows whose values test the escapes of COPY.
func someRows(t *testing.T, s *Store, url string) {
	t.Helper()
	conn := connectAt(t, url)
	execute(t, conn, "select set_config('search_path', $1, false)", s.schema)
	execute(t, conn, `insert into lane (name, settings, revision, since, counting, registered_by)
		select E'a\\.\n\tb' || g, '{"state":"active"}', 1, 1, false, E'\\.\n' from generate_series(1, 1000) g`)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func restored(t *testing.T, url, path string, replace bool) (Dumped, error) {
	t.Helper()
	return Restore(t.Context(), url, Config{UnsafeDurability: true}, path, replace)
}

func TestU133_a_dump_restored_elsewhere_has_the_same_rows_and_is_another_installation(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{UnsafeDurability: true})
	someRows(t, s, url)
	path, dumped := dumpFile(t, url)
	if found, err := ReadDump(t.Context(), path); err != nil || !maps.Equal(found.Rows, dumped.Rows) || found.Schema != dumped.Schema {
		t.Errorf("%v %v, want %v", found, err, dumped)
	}
	if dumped.Total() < 1000 {
		t.Errorf("%v", dumped.Rows)
	}
	other := cluster.Empty(t)
	if loaded, err := restored(t, other, path, false); err != nil || !maps.Equal(loaded.Rows, dumped.Rows) {
		t.Fatalf("%v %v", loaded, err)
	}
	before, after := s.Info(), openAt(t, other, Config{UnsafeDurability: true, Migrate: MigrateCheck}).Info()
	if before.Installation == after.Installation || before.LogID == after.LogID || before.Schema != after.Schema {
		t.Errorf("%+v\n%+v", before, after)
	}
}

// The store is in the database in which it was, whose number says nothing therefore.
func TestR5_a_store_that_a_dump_replaced_has_another_log(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	s, err := Open(t.Context(), url, Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	before := s.Info()
	path, dumped := dumpFile(t, url)
	if _, err := restored(t, url, path, true); base.CodeOf(err) != base.CodeStoreLocked {
		t.Errorf("while the store is open: %v", err)
	}
	if _, err := restored(t, url, path, false); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "already has tables") {
		t.Errorf("over a store: %v", err)
	}
	someRows(t, s, url)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if loaded := replaced(t, url, path); !maps.Equal(loaded.Rows, dumped.Rows) {
		t.Errorf("%v, want %v", loaded.Rows, dumped.Rows)
	}
	if after := openAt(t, url, Config{UnsafeDurability: true}).Info(); after.LogID == before.LogID || after.Installation == before.Installation {
		t.Errorf("%+v", after)
	}
}

// replaced replaces a store as soon as the sessions that were closed have ended.
func replaced(t *testing.T, url, path string) Dumped {
	t.Helper()
	for {
		loaded, err := restored(t, url, path, true)
		if base.CodeOf(err) == base.CodeStoreLocked && t.Context().Err() == nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
}

func TestU133_a_damaged_dump_changes_nothing(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{UnsafeDurability: true})
	someRows(t, s, url)
	path, _ := dumpFile(t, url)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := cluster.Empty(t)
	for _, share := range []int{2, 3, 10} {
		cut := filepath.Join(t.TempDir(), "cut.dump")
		if err := os.WriteFile(cut, whole[:len(whole)-len(whole)/share], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDump(t.Context(), cut); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("read without the last 1/%d: %v", share, err)
		}
		if _, err := restored(t, other, cut, false); err == nil {
			t.Errorf("restored without the last 1/%d", share)
		}
	}
	if schema, err := Plan(t.Context(), other, Config{UnsafeDurability: true}); err != nil || schema.Level != 0 {
		t.Errorf("%+v %v", schema, err)
	}
	if _, err := restored(t, other, path, false); err != nil {
		t.Errorf("the database is not as it was: %v", err)
	}
	if _, err := ReadDump(t.Context(), "/dev/null"); base.CodeOf(err) != base.CodeCorruption {
		t.Error(err)
	}
}

func TestU133_a_database_without_a_store_has_no_dump(t *testing.T) {
	t.Parallel()
	needTools(t)
	var out bytes.Buffer
	if _, err := Dump(t.Context(), cluster.Empty(t), Config{UnsafeDurability: true}, &out); base.CodeOf(err) != base.CodeInvalidArgument || out.Len() > 0 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

func TestU133_a_password_is_no_argument_of_a_program(t *testing.T) {
	t.Parallel()
	s := &Store{url: "postgres://me:hush@db:7777/ff?sslmode=disable&application_name=x"}
	if err := s.cfg.normalize(); err != nil {
		t.Fatal(err)
	}
	environ, err := s.toolEnviron()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(environ, "\n") + "\n"
	for _, line := range []string{"PGHOST=db", "PGPORT=7777", "PGUSER=me", "PGDATABASE=ff", "PGPASSWORD=hush", "PGSSLMODE=disable"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	s.url += "&sslpassword=hush"
	if _, err := s.toolEnviron(); base.CodeOf(err) != base.CodeInvalidArgument || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}

func TestU133_a_program_that_is_missing_or_too_old_is_named(t *testing.T) {
	t.Parallel()
	needTools(t)
	for name, server := range map[string]int{"pg_dump": 99, "pg_is_not_there": 0} {
		if err := checkTool(t.Context(), name, server); base.CodeOf(err) != base.CodeNotImplemented || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
