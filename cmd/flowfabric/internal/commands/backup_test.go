package commands

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// In a directory that others may write to, they can put something in place of the files that a backup is about to create.
func TestU133_a_backup_is_written_into_files_of_its_own_alone(t *testing.T) {
	t.Parallel()
	client, _, _ := secured(t)
	for _, suffix := range []string{".partial", checksumSuffix} {
		for name, place := range map[string]func(path, victim string) error{
			"a link": func(path, victim string) error { return os.Symlink(victim, path) },
			"a file": func(path, victim string) error { return os.Link(victim, path) },
		} {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				target, victim := filepath.Join(dir, "monday.db"), filepath.Join(dir, "victim")
				if err := os.WriteFile(victim, []byte("keep"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := place(target+suffix, victim); err != nil {
					t.Fatal(err)
				}
				var out, errs bytes.Buffer
				s := &session{App: &App{Out: &out, Err: &errs}, printer: &show.Printer{Out: &out, Err: &errs, Now: time.Now}}
				if err := s.writeBackup(target, s.copyOf(t.Context(), client)); err != nil {
					t.Fatal(err)
				}
				if kept, err := os.ReadFile(victim); err != nil || string(kept) != "keep" {
					t.Errorf("%d bytes, %v", len(kept), err)
				}
				for _, path := range []string{target, target + checksumSuffix} {
					if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
						t.Errorf("%s: %v %v", path, info.Mode(), err)
					}
				}
				if err := onCopy(target, func(string, string) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What a copy is given before it has its own mode can be read by others for as long as they have it open.
func TestU133_a_private_file_is_never_one_that_was_open_before(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db.partial")
	before, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = before.Close() }()
	file, err := createPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, "secret"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if seen, err := io.ReadAll(before); err != nil || len(seen) > 0 {
		t.Errorf("%q %v", seen, err)
	}
}
