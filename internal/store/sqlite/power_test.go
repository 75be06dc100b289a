package sqlite

import (
	"os"
	"testing"

	"github.com/flowfabric/flowfabric/internal/store"
)

// unsyncable puts a pipe in the place of the write-ahead log that is synced: the operating system refuses to sync a pipe, so that a sync that
// is reported as done was not asked for. SQLite itself continues to write the log.
func unsyncable(t *testing.T, s *Store) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log := s.log.file
	s.log.file = read
	t.Cleanup(func() {
		s.flush.idle.Wait()
		s.log.file = log
		_ = read.Close()
		_ = write.Close()
	})
}

func TestI1_a_commit_is_acknowledged_only_after_the_operating_system_has_synced_its_log(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	class := seed(t, s).Class
	_, told := insert(t, s, class)
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	synced, err := s.log.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if written, err := os.Stat(s.path + "-wal"); err != nil || !os.SameFile(synced, written) || written.Size() == 0 {
		t.Fatalf("the file that is synced is not the one that SQLite writes: %v, %v", written, err)
	}
	unsyncable(t, s)
	_, told = insert(t, s, class)
	if err := <-told; store.FaultOf(err) != store.Unknown {
		t.Errorf("a commit was acknowledged that was not synced: %v", err)
	}
}

func TestI1_a_read_waits_for_a_commit_that_was_written_while_another_was_synced(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), Config{})
	class := seed(t, s).Class
	d := slow(s)
	_, told := insert(t, s, class)
	<-d.asked
	_, toldToo := insert(t, s, class)
	d.let <- nil
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	<-d.asked // the second commit is in the log, and not synced yet
	looked := make(chan error, 1)
	s.flush.then(func(err error) { looked <- err })
	if len(looked) != 0 {
		t.Error("a reader sees a commit that the sync did not cover")
	}
	d.let <- nil
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if err := <-toldToo; err != nil {
		t.Fatal(err)
	}
}

func TestI1_SQLite_itself_syncs_checkpoints_unless_durability_is_given_up(t *testing.T) {
	t.Parallel()
	for unsafe, want := range map[bool]int64{false: 1, true: 0} { // normal and off
		s := open(t, file(t), Config{UnsafeDurability: unsafe})
		c := <-s.writer
		var got int64
		err := c.search(t.Context(), "pragma synchronous", func(r row) error { got = r.Int(0); return nil }, nil)
		s.writer <- c
		if err != nil || got != want {
			t.Errorf("unsafe durability %v: synchronous = %d, %v; want %d", unsafe, got, err, want)
		}
	}
}
