package lossyfs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/tools/crash/lossyfs"
)

// The test binary, started with this variable, is a program that uses a file system: this process, which serves the file system, must not use it.
const (
	variableProgram = "FF_LOSSYFS_PROGRAM"
	variablePath    = "FF_LOSSYFS_PATH"
)

func TestMain(m *testing.M) {
	programs := map[string]func(path string) error{
		"files": files, "unsynced rename": unsyncedRename, "synced rename": syncedRename,
		"durable": func(path string) error { return submits(path, false) },
		"unsafe":  func(path string) error { return submits(path, true) },
	}
	if run, found := programs[os.Getenv(variableProgram)]; found {
		if err := run(os.Getenv(variablePath)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// on mounts a fresh disk and runs a program that uses it, until the program ends or has written enough lines, which kills it. It returns the disk,
// which is not mounted any more, and the lines. Where file systems cannot be mounted the output of the test says so and ok is false.
func on(t *testing.T, program string, enough int) (disk *lossyfs.Disk, lines []string, ok bool) {
	t.Helper()
	if why := lossyfs.Unavailable(); why != "" {
		t.Logf("the file system was NOT mounted: %s", why)
		return nil, nil, false
	}
	disk = lossyfs.NewDisk()
	directory := t.TempDir()
	mounted, err := disk.Mount(directory)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), variableProgram+"="+program, variablePath+"="+directory)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(out); said.Scan(); {
		if strings.HasPrefix(said.Text(), "error") {
			t.Error(said.Text())
		}
		if lines = append(lines, said.Text()); len(lines) == enough {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	if err := mounted.Unmount(); err != nil {
		t.Fatal(err)
	}
	return disk, lines, true
}

// left cuts the power and returns the files that are left.
func left(t *testing.T, disk *lossyfs.Disk, seed uint64) string {
	t.Helper()
	disk.CutPower(rand.New(rand.NewPCG(seed, 0)))
	directory := t.TempDir()
	if err := disk.Export(directory); err != nil {
		t.Fatal(err)
	}
	return directory
}

// files uses the calls that programs use, and looks at what they see.
func files(path string) error {
	if err := os.MkdirAll(filepath.Join(path, "a", "b"), 0o700); err != nil {
		return err
	}
	name := filepath.Join(path, "a", "b", "c")
	if err := os.WriteFile(name, []byte("hello world"), 0o600); err != nil {
		return err
	}
	if err := os.Truncate(name, 5); err != nil {
		return err
	}
	if err := os.Rename(name, filepath.Join(path, "d")); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(path, "d"))
	if err != nil || string(data) != "hello" {
		return fmt.Errorf("read %q, %w", data, err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the old name: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" || !entries[0].IsDir() {
		return fmt.Errorf("the directory has %v, %w", entries, err)
	}
	if err := os.Remove(filepath.Join(path, "a")); !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("removing a directory that is not empty: %w", err)
	}
	return errors.Join(os.Remove(filepath.Join(path, "a", "b")), os.Remove(filepath.Join(path, "d")))
}

func TestPrograms_see_a_file_system(t *testing.T) {
	t.Parallel()
	disk, _, ok := on(t, "files", 0)
	if ok && disk.Stats().Writes == 0 {
		t.Error("nothing was written")
	}
}

// renames replaces a durable file by a new one.
func renames(path string) error {
	for _, name := range []string{"old", "new"} {
		file, err := os.Create(filepath.Join(path, name))
		if err != nil {
			return err
		}
		if _, err := file.WriteString(name); err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close(), syncDirectory(path)); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(path, "new"), filepath.Join(path, "old"))
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func unsyncedRename(path string) error { return renames(path) }

func syncedRename(path string) error { return errors.Join(renames(path), syncDirectory(path)) }

func TestA_rename_may_be_lost_unless_its_directory_was_synced(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]map[string]bool{"unsynced rename": {"old": true, "new": true}, "synced rename": {"new": true}} {
		seen := map[string]bool{}
		for seed := uint64(0); seed < 20 && len(seen) < len(want); seed++ {
			disk, _, ok := on(t, program, 0)
			if !ok {
				return
			}
			data, err := os.ReadFile(filepath.Join(left(t, disk, seed), "old"))
			if err != nil {
				t.Fatal(err)
			}
			seen[string(data)] = true
		}
		if len(seen) != len(want) || !seen["new"] {
			t.Errorf("%s: after cuts the file was %v", program, seen)
		}
	}
}

var work flowfabric.Kind[string, string] = "work"

// submits opens a store and writes a line for each submit that was acknowledged, until it is killed. Four goroutines submit, so that commits
// are written while others are synced.
func submits(path string, unsafe bool) error {
	ctx := context.Background()
	cfg := embedded.Config{}
	cfg.UnsafeDurability = unsafe
	client, err := embedded.Open(ctx, "sqlite:"+filepath.Join(path, "app.db"), cfg)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for lane := range 4 {
		go func() {
			for i := 0; ; i++ {
				run, err := work.Submit(ctx, client, strings.Repeat("x", 100*lane), flowfabric.SubmitOptions{IdempotencyKey: fmt.Sprint(lane, "-", i)})
				if err != nil {
					failed <- err
					return
				}
				// A read that shows a commit promises it too.
				if x, err := client.Get(ctx, run.ID()); err != nil || x.ID != run.ID() {
					failed <- fmt.Errorf("reading %s: %w", run.ID(), err)
					return
				}
				fmt.Println(run.ID())
			}
		}()
	}
	return <-failed
}

// lost cuts the power after some acknowledged submits, opens what is left, and counts those that are gone.
func lost(t *testing.T, program string, seed uint64) (missing int, stats lossyfs.Stats, ok bool) {
	t.Helper()
	disk, acknowledged, ok := on(t, program, 40+int(seed)*7)
	if !ok {
		return 0, stats, false
	}
	stats = disk.Stats()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(left(t, disk, seed), "app.db"))
	if err != nil {
		if program == "durable" {
			t.Fatal(err)
		}
		return len(acknowledged), stats, true
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	for _, id := range acknowledged {
		if _, err := client.Get(t.Context(), flowfabric.ID(id)); flowfabric.CodeOf(err) == "execution_not_found" {
			missing++
		} else if err != nil {
			t.Error(err)
		}
	}
	if found, err := client.Admin().Integrity(t.Context()); err != nil || !found.OK {
		t.Errorf("integrity after the cut: %+v, %v", found, err)
	}
	return missing, stats, true
}

func TestI1_what_SQLite_acknowledged_survives_a_power_loss(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		missing, stats, ok := lost(t, "durable", seed)
		if !ok {
			return
		}
		if missing > 0 || stats.Syncs == 0 || stats.DirSyncs == 0 {
			t.Errorf("seed %d: %d acknowledged submits are gone, after %+v", seed, missing, stats)
		}
	}
}

// The test above can fail: without syncs submits are lost.
func TestWithout_syncs_a_power_loss_is_noticed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		missing, _, ok := lost(t, "unsafe", seed)
		if !ok || missing > 0 {
			return
		}
	}
	t.Error("nothing that was never synced was lost in 20 cuts")
}
