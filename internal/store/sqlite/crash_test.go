package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// victimFile names the file that a process which is meant to be killed writes to.
const victimFile = "FLOWFABRIC_TEST_VICTIM_FILE"

// victim is the process that is killed: it says what was committed, leaves a transaction open, and waits.
func victim(path string) error {
	s, err := Open(context.Background(), path, Config{})
	if err != nil {
		return err
	}
	x, err := plant(s)
	if err != nil {
		return err
	}
	fmt.Println("committed", x.ID.UUID)
	for range 20 {
		y := queued(s, x.Class)
		if err := put(s, store.Want{}, &store.Changes{Insert: []*core.Execution{y}}); err != nil {
			return err
		}
		fmt.Println("committed", y.ID.UUID)
	}
	if err := leaveOpen(s, x); err != nil {
		return err
	}
	fmt.Println("open")
	select {}
}

// leaveOpen begins a transaction so large that its pages reach the log before it commits.
func leaveOpen(s *Store, x *core.Execution) error {
	c, err := s.beginWriting(context.Background(), time.Second)
	if err != nil {
		return err
	}
	if err := c.raw.Script("pragma cache_size = 10"); err != nil {
		return err
	}
	for range 3000 {
		y := queued(s, x.Class)
		y.Input = core.Payload{Data: make([]byte, longInput), Size: longInput}
		if err := insertExecution(c, y, 0); err != nil {
			return err
		}
	}
	return nil
}

func TestI1_what_was_acknowledged_survives_a_kill_and_an_open_transaction_does_not(t *testing.T) {
	t.Parallel()
	path := file(t)
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), victimFile+"="+path)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []base.UUID
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "open" {
		if id, found := strings.CutPrefix(lines.Text(), "committed "); found {
			uuid, _ := base.ParseUUID(id)
			acknowledged = append(acknowledged, uuid)
		}
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // it was killed
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() < 500*4096 {
		t.Fatalf("the open transaction left nothing in the write-ahead log: %v", err)
	}
	s := open(t, path, Config{})
	if n := countOf(t, s, "ff_exec"); n != int64(len(acknowledged)) || n < 20 {
		t.Fatalf("%d executions, %d were acknowledged", n, len(acknowledged))
	}
	for _, id := range acknowledged {
		if !exists(t, s, id) {
			t.Fatalf("%s was acknowledged and is gone", id)
		}
	}
}

func TestE32_a_copy_equals_the_store_but_for_the_identity_of_its_log(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	if err := s.Project(t.Context(), store.Projection{From: 0, To: 1, Rows: []*core.Execution{x}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Fatalf("beside the copy: %v, %v", left, err)
	}
	again := open(t, path, quick())
	if a, b := again.Info(), s.Info(); a.Installation != b.Installation || a.LogID == b.LogID || a.LogID.IsZero() {
		t.Fatalf("the copy is %+v, the store %+v", a, b)
	}
	for table := range map[string]int{"ff_exec": 1, "ff_queue": 1, "ff_log": 1, "ff_search": 1, "ff_lane": 1, "ff_class": 1} {
		if got, want := countOf(t, again, table), countOf(t, s, table); got != want || want == 0 {
			t.Errorf("%s has %d rows in the copy and %d in the store", table, got, want)
		}
	}
	checkIntegrity(t, again)
	if _, err := s.SubmitTx(t.Context(), ownTx(t, path), nil, store.InboxRow{ID: queued(s, x.Class).ID, Body: []byte{}}); base.CodeOf(err) != base.CodeWrongDatabase {
		t.Fatalf("a submission into the copy: %v", err)
	}
	if err := s.Backup(t.Context(), path, nil); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("a copy over a file: %v", err)
	}
}

func checkIntegrity(t *testing.T, s *Store) {
	t.Helper()
	err := s.read(t.Context(), func(c *conn) error {
		return c.search(t.Context(), "pragma integrity_check", func(r row) error {
			if r.Text(0) != "ok" {
				t.Errorf("integrity: %s", r.Text(0))
			}
			return nil
		}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownTx begins a transaction of a user's own.
func ownTx(t *testing.T, path string) *sql.Tx {
	t.Helper()
	db, err := sql.Open("sqlite", path)
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

func TestL88_while_a_transaction_of_the_user_is_open_others_wait_and_then_are_busy(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	x := seed(t, s)
	own := ownTx(t, s.path)
	row := store.InboxRow{ID: queued(s, x.Class).ID, Body: []byte("body")}
	if existing, err := s.SubmitTx(t.Context(), own, nil, row); existing != nil || err != nil {
		t.Fatal(existing, err)
	}
	want := store.Want{Executions: []base.UUID{x.ID.UUID}}
	if _, _, err := s.Begin(t.Context(), want); store.FaultOf(err) != store.Busy {
		t.Fatalf("Begin: %v", err)
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := s.Begin(ended, want); store.FaultOf(err) != store.Busy {
		t.Fatalf("Begin with little time: %v", err)
	}
	if !exists(t, s, x.ID.UUID) {
		t.Fatal("reads wait for a writer")
	}
	if err := own.Commit(); err != nil {
		t.Fatal(err)
	}
	tx, loaded, err := s.Begin(t.Context(), store.Want{Inbox: 10})
	if err != nil || len(loaded.Inbox) != 1 || loaded.Inbox[0].ID != row.ID {
		t.Fatalf("inbox %+v, %v", loaded, err)
	}
	tx.Rollback(t.Context())
}
