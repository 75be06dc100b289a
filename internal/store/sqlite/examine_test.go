package sqlite

import (
	"os"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestU165_a_file_tells_its_size_its_place_and_what_is_overdue(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	now := s.now()
	commit(t, s, store.Want{}, &store.Changes{AddTimers: []store.Timer{{At: now.Add(-5000), Kind: 1}, {At: now.Add(base.Hour), Kind: 1}}})
	found, err := s.Examine(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if found.Size == 0 || found.Place == "" || found.Free == 0 || found.Overdue != 1 || found.OldestDue != now.Add(-5000) || len(found.Tables) != 1 || found.Tables[0].Live == 0 {
		t.Errorf("%+v", found)
	}
	if found.Connections != nil || found.Vacuum != nil || len(found.Risks) != 1 { // a quick store is not synced
		t.Errorf("%+v", found)
	}
}

func TestU164_damage_in_a_file_is_found(t *testing.T) {
	t.Parallel()
	path := file(t)
	s, err := Open(t.Context(), path, quick())
	if err != nil {
		t.Fatal(err)
	}
	x := seed(t, s)
	changes := &store.Changes{}
	for range 500 {
		changes.Insert = append(changes.Insert, queued(s, x.Class))
	}
	commit(t, s, store.Want{}, changes)
	if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
		t.Fatalf("%v, %v", damage, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoilFile(t, path)
	again := open(t, path, quick())
	if damage, err := again.Check(t.Context()); err == nil && len(damage) == 0 {
		t.Error("nothing is found")
	}
}

// spoilFile writes over the last page of a file, which holds rows.
func spoilFile(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), info.Size()-4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
