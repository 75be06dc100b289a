package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// seed is plant for tests.
func seed(t testing.TB, s *Store) *core.Execution {
	t.Helper()
	x, err := plant(s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// plant registers a lane and a class and inserts an execution that waits in the queue.
func plant(s *Store) (*core.Execution, error) {
	ctx := context.Background()
	known, err := s.Register(ctx,
		[]core.Lane{{Name: "default", Settings: core.LaneSettings{State: core.LaneActive}, Revision: 1, RegisteredBy: "submit"}},
		[]core.Class{{Namespace: "default", Lane: "default", Kind: "mail"}})
	if err != nil {
		return nil, err
	}
	x := queued(s, known.Classes[0])
	return x, put(s, store.Want{}, &store.Changes{
		Insert: []*core.Execution{x}, Enqueue: []store.QueueRow{{Class: x.Class.ID, Order: x.OrderKey, ID: x.ID.UUID}},
		Events: []core.Event{{Kind: "execution.submitted", At: x.CreatedAt, Namespace: "default", ExecutionID: x.ID, Class: x.Class, AttemptIndex: -1}},
	})
}

func queued(s *Store, class *core.Class) *core.Execution {
	now := s.now()
	return &core.Execution{
		ID: base.IDOf(mint(now)), Class: class, Input: core.Payload{ContentType: "text/plain", Data: []byte("in"), Size: 2}, Policy: core.DefaultPolicy(),
		Status: core.Ready, Reason: core.WaitingForWorker, Next: core.NextInitial, OrderKey: int64(now), CreatedAt: now,
	}
}

// commit is put for tests.
func commit(t testing.TB, s *Store, want store.Want, ch *store.Changes) {
	t.Helper()
	if err := put(s, want, ch); err != nil {
		t.Fatal(err)
	}
}

// put runs one transaction.
func put(s *Store, want store.Want, ch *store.Changes) error {
	tx, _, err := s.Begin(context.Background(), want)
	if err != nil {
		return err
	}
	return tx.Commit(context.Background(), ch)
}

func exists(t testing.TB, s *Store, id base.UUID) bool {
	t.Helper()
	loaded, err := s.Read(context.Background(), store.Want{Executions: []base.UUID{id}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Executions[id] != nil
}

func TestI1_a_store_that_is_opened_again_has_everything_and_keeps_its_identity(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	x := seed(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, Config{})
	if !exists(t, again, x.ID.UUID) || again.Info() != s.Info() {
		t.Fatalf("opened again: %+v, was %+v", again.Info(), s.Info())
	}
	known, err := again.Dictionary(t.Context())
	if err != nil || len(known.Lanes) != 1 || len(known.Classes) != 1 {
		t.Fatalf("dictionary %+v, %v", known, err)
	}
}

func TestU133_a_second_engine_is_refused_and_told_who_has_the_file(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, err := Open(t.Context(), path, quick())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(path), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := Open(t.Context(), name, quick())
		if base.CodeOf(err) != base.CodeStoreLocked || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, link, quick())
}

func TestU133_a_second_engine_is_refused_by_every_name_and_without_a_lock_file(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := open(t, path, quick())
	x := seed(t, s)
	link := filepath.Join(filepath.Dir(path), "link.db")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	refuses(t, link, base.CodeStoreLocked, "another engine")
	if runtime.GOOS == "linux" { // elsewhere nothing but the lock file tells
		if err := os.Remove(path + ".lock"); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, base.CodeStoreLocked, "another engine")
	}
	if !exists(t, s, x.ID.UUID) {
		t.Fatal("the engine that runs has lost its work")
	}
	if err := errors.Join(s.Close(), os.Remove(link)); err != nil {
		t.Fatal(err)
	}
	open(t, path, quick())
}

func TestU163_a_newer_schema_is_refused(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, err := Open(t.Context(), path, quick())
	if err != nil {
		t.Fatal(err)
	}
	newer := s.info.Schema + 1
	if err := s.write(t.Context(), durably, func(c *conn) error { return c.run("set schema", int64(newer)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{migrateAuto, migrateCheck, migrateOff} {
		cfg := quick()
		cfg.Migrate = how
		_, err := Open(t.Context(), path, cfg)
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "schema "+strconv.Itoa(newer)) {
			t.Fatalf("migrate=%s: %v", how, err)
		}
	}
}

// refuses expects that neither Open nor Migrate takes the file, and both say why.
func refuses(t *testing.T, path string, code base.Code, words string) {
	t.Helper()
	_, opened := Open(t.Context(), path, quick())
	_, migrated := Migrate(t.Context(), path, quick(), 0, func(store.SchemaStep) {})
	for _, err := range []error{opened, migrated} {
		var refusal *base.Error
		if !errors.As(err, &refusal) || refusal.Code != code || refusal.Hint == "" || !strings.Contains(err.Error(), words) {
			t.Fatalf("%v, want %s with %q and a hint", err, code, words)
		}
	}
}

func TestOpen_refuses_a_directory_and_leaves_nothing_beside_it(t *testing.T) {
	t.Parallel()
	path := file(t)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, base.CodeInvalidArgument, "is a directory")
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a lock file: %v", err)
	}
}

func TestOpen_refuses_a_file_that_is_no_database(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"short", strings.Repeat("no database at all ", 1000)} {
		path := file(t)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, base.CodeInvalidArgument, "no SQLite database")
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("the file was changed: %v", err)
		}
	}
}

// closedFile is a store that is not open.
func closedFile(t *testing.T) string {
	t.Helper()
	path := file(t)
	s, err := Open(t.Context(), path, quick())
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen_refuses_a_damaged_database(t *testing.T) {
	t.Parallel()
	path := closedFile(t)
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, whole[:len(whole)/2], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, path, base.CodeCorruption, "damaged")
}

func TestOpen_refuses_a_database_that_lost_its_installation(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, err := Open(t.Context(), path, quick())
	if err != nil {
		t.Fatal(err)
	}
	err = s.write(t.Context(), durably, func(c *conn) error { return c.raw.Script("delete from ff_installation") })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, base.CodeCorruption, "which installation it is")
}

func TestOpen_refuses_a_file_or_a_directory_that_may_not_be_written(t *testing.T) {
	t.Parallel()
	for _, place := range []func(path string) string{filepath.Clean, filepath.Dir} {
		path := closedFile(t)
		if err := os.Chmod(place(path), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(place(path), 0o755) })
		if os.Geteuid() == 0 { // who may write everything
			open(t, path, quick())
			continue
		}
		refuses(t, path, base.CodeInvalidArgument, "for writing")
	}
}

func TestA_connection_that_can_only_read_is_no_writer(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	err := s.read(t.Context(), func(c *conn) error { return c.raw.Script("delete from ff_log") })
	if store.FaultOf(err) != store.Unavailable {
		t.Fatalf("while the store is open: %v, want unavailable", err)
	}
	if err := unfit(err); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("when it is opened: %v, want invalid_argument", err)
	}
}

func TestU184_a_file_without_schema_is_refused_unless_it_may_be_migrated(t *testing.T) {
	t.Parallel()
	for _, how := range []string{migrateCheck, migrateOff} {
		path := file(t)
		cfg := quick()
		cfg.Migrate = how
		if _, err := Open(t.Context(), path, cfg); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Fatalf("migrate=%s: %v", how, err)
		}
		s, err := Open(t.Context(), path, quick()) // the refused file is not locked
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		open(t, path, cfg)
	}
}

func TestOpen_reports_every_problem_of_the_configuration_at_once(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), file(t), Config{Migrate: "maybe", BusyTimeout: -1, Readers: -1})
	for _, part := range []string{"maybe", "busy timeout", "readers"} {
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), part) {
			t.Fatalf("%q is missing in %v", part, err)
		}
	}
	for _, path := range []string{"", ":memory:", filepath.Join(t.TempDir(), "absent", "store.db")} {
		if _, err := Open(t.Context(), path, quick()); base.CodeOf(err) != base.CodeInvalidArgument {
			t.Fatalf("%q: %v", path, err)
		}
	}
}

func TestOpen_takes_names_with_special_characters_as_they_are(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20&e=ü.db")
	x := seed(t, open(t, path, quick()))
	if x.ID.IsZero() {
		t.Fatal("no execution")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

func TestRule10_an_old_sqlite_is_not_safe(t *testing.T) {
	t.Parallel()
	for version, safe := range map[string]bool{
		"3.51.3": true, "3.51.10": true, "3.52.0": true, "4.0.0": true, "3.51.2": false, "3.50.9": false, "3.9.9": false, "2.99.99": false, "strange": false,
	} {
		if atLeast(version, oldestSafe) != safe {
			t.Errorf("%s safe: %v", version, !safe)
		}
	}
}

func TestL5_the_store_reads_the_clock_it_is_given(t *testing.T) {
	t.Parallel()
	moment := time.UnixMilli(1_790_000_000_123)
	cfg := quick()
	cfg.Clock = func() time.Time { return moment }
	s := open(t, file(t), cfg)
	now, err := s.Now(t.Context())
	_, loaded, beginErr := s.Begin(t.Context(), store.Want{})
	if err := errors.Join(err, beginErr); err != nil {
		t.Fatal(err)
	}
	if now != base.TimeOf(moment) || loaded.Now != now {
		t.Fatalf("now is %v and %v", now, loaded.Now)
	}
}

func TestA_connection_that_was_given_up_is_opened_again(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	c, err := s.beginWriting(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run("rollback"); err != nil {
		t.Fatal(err)
	}
	s.abort(c) // cannot roll back a second time
	y := queued(s, x.Class)
	commit(t, s, store.Want{}, &store.Changes{Insert: []*core.Execution{y}})
	if !exists(t, s, y.ID.UUID) {
		t.Fatal("the execution is not there")
	}
}

// A reader of the file of a store can read signing secrets, and forge tokens with them.
func TestU133_the_files_of_a_store_and_its_copies_are_for_their_owner_alone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store.db"), Config{})
	if err := s.Backup(t.Context(), filepath.Join(dir, "copy.db"), nil); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 4 { // store, log, lock, copy
		t.Errorf("there are only %v", files)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %o", file.Name(), mode)
		}
	}
}
