package lossyfs

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// file makes a file with a durable name in a directory.
func file(d *Disk, name string) *inode {
	n := d.newInode(syscall.S_IFREG | 0o600)
	d.root.set(name, n)
	d.sync(d.root)
	return n
}

func write(t *testing.T, d *Disk, n *inode, offset int64, text string) {
	t.Helper()
	if errno := d.write(n, offset, []byte(text)); errno != 0 {
		t.Fatal(errno)
	}
}

// cuts draws many cuts and returns what the file had after each.
func cuts(t *testing.T, prepare func(*Disk) *inode) map[string]int {
	t.Helper()
	after := map[string]int{}
	for seed := range uint64(200) {
		d := NewDisk()
		n := prepare(d)
		d.CutPower(rand.New(rand.NewPCG(seed, 1)))
		after[string(n.live)]++
	}
	return after
}

func TestWhat_was_synced_survives_and_what_was_not_may_be_lost(t *testing.T) {
	t.Parallel()
	after := cuts(t, func(d *Disk) *inode {
		n := file(d, "a")
		write(t, d, n, 0, "synced")
		d.sync(n)
		write(t, d, n, 6, " and not")
		return n
	})
	if len(after) != 2 || after["synced"] < 50 || after["synced and not"] < 50 {
		t.Errorf("after 200 cuts: %v", after)
	}
}

func TestWrites_that_were_not_synced_survive_in_any_combination(t *testing.T) {
	t.Parallel()
	after := cuts(t, func(d *Disk) *inode {
		n := file(d, "a")
		write(t, d, n, 0, "..")
		d.sync(n)
		write(t, d, n, 0, "1")
		write(t, d, n, 1, "2")
		return n
	})
	for _, want := range []string{"..", "1.", ".2", "12"} {
		if after[want] == 0 {
			t.Errorf("after 200 cuts never %q: %v", want, after)
		}
	}
}

func TestA_torn_write_ends_at_a_sector(t *testing.T) {
	t.Parallel()
	old, fresh := bytes.Repeat([]byte("o"), 4096), bytes.Repeat([]byte("n"), 2048)
	after := cuts(t, func(d *Disk) *inode {
		n := file(d, "a")
		write(t, d, n, 0, string(old))
		d.sync(n)
		write(t, d, n, 100, string(fresh))
		return n
	})
	torn := 0
	for text := range after {
		if len(text) != 4096 {
			t.Fatalf("the file has %d bytes", len(text))
		}
		end := bytes.LastIndexByte([]byte(text), 'n') + 1
		if end == 0 || end == 100+2048 {
			continue
		}
		if torn++; end%sector != 0 || text[100:end] != string(fresh[:end-100]) {
			t.Errorf("torn at %d", end)
		}
	}
	if torn == 0 {
		t.Error("no write was torn")
	}
}

func TestA_size_is_lost_or_kept_like_a_write(t *testing.T) {
	t.Parallel()
	after := cuts(t, func(d *Disk) *inode {
		n := file(d, "a")
		write(t, d, n, 0, "abc")
		d.sync(n)
		d.resize(n, 1)
		d.resize(n, 2)
		return n
	})
	if after["abc"] == 0 || after["a\x00"] == 0 {
		t.Errorf("after 200 cuts: %v", after)
	}
}

// exported is what a cut leaves, as files.
func exported(t *testing.T, d *Disk, seed uint64) map[string]string {
	t.Helper()
	d.CutPower(rand.New(rand.NewPCG(seed, 2)))
	directory := t.TempDir()
	if err := d.Export(directory); err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{}
	for _, entry := range found {
		data, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		left[entry.Name()] = string(data)
	}
	return left
}

func TestA_name_is_durable_only_after_a_sync_of_its_directory(t *testing.T) {
	t.Parallel()
	lost := 0
	for seed := range uint64(50) {
		d := NewDisk()
		n := d.newInode(syscall.S_IFREG | 0o600)
		d.root.set("a", n)
		write(t, d, n, 0, "synced")
		d.sync(n)
		if left := exported(t, d, seed); len(left) == 0 {
			lost++
		} else if left["a"] != "synced" {
			t.Fatalf("left: %q", left)
		}
		d = NewDisk()
		n = file(d, "a")
		write(t, d, n, 0, "synced")
		d.sync(n)
		if left := exported(t, d, seed); left["a"] != "synced" {
			t.Fatalf("after both syncs: %q", left)
		}
	}
	if lost == 0 || lost == 50 {
		t.Errorf("the name was lost %d times in 50 cuts", lost)
	}
}

func TestChanges_of_a_directory_survive_in_order(t *testing.T) {
	t.Parallel()
	seen := map[int]int{}
	for seed := range uint64(100) {
		d := NewDisk()
		for _, name := range []string{"a", "b", "c"} {
			n := d.newInode(syscall.S_IFREG | 0o600)
			d.root.set(name, n)
		}
		left := exported(t, d, seed)
		for i, name := range []string{"a", "b", "c"} {
			if _, there := left[name]; there != (i < len(left)) {
				t.Fatalf("left: %q", left)
			}
		}
		seen[len(left)]++
	}
	if seen[0] == 0 || seen[1] == 0 || seen[3] == 0 {
		t.Errorf("number of names left: %v", seen)
	}
}

func TestA_full_disk_refuses_growth_and_a_disk_that_cannot_sync_makes_nothing_durable(t *testing.T) {
	t.Parallel()
	d := NewDisk()
	n := file(d, "a")
	write(t, d, n, 0, "abc")
	d.sync(n)
	d.Set(Full)
	if errno := d.write(n, 1, []byte("xyz")); errno != syscall.ENOSPC {
		t.Error(errno)
	}
	write(t, d, n, 1, "x")
	d.Set(Unsyncing)
	if errno := d.sync(n); errno != syscall.EIO {
		t.Error(errno)
	}
	if string(n.durable) != "abc" || string(n.live) != "axc" || d.Stats().Failed != 2 {
		t.Errorf("durable %q, live %q, %+v", n.durable, n.live, d.Stats())
	}
}
