package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
)

// checksumSuffix is the suffix of the checksum file of a copy, which has the format of sha256sum.
const checksumSuffix = ".sha256"

func (s *session) backup() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write a consistent copy of a store into a file, and a checksum next to it", Args: counted(cobra.ExactArgs(1)),
		Long: "Write a consistent copy of a store into a file, and a checksum next to it. The store may be in use.\n\n" +
			"A SQLite store is copied by the running server, or with --store from a file that no server has open. A Postgres store is named with --store;\n" +
			"pg_dump, which must be on the PATH, copies its tables, and the result is read again and compared with the store.",
		Example: examples("flowfabric backup monday.db\nflowfabric backup monday.db --store sqlite:ff.db\n" +
			"flowfabric backup monday.dump --store postgres://flowfabric@db/flowfabric"),
	}
	storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !namesStore(cmd) {
			return s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error { return s.writeBackup(args[0], s.copyOf(ctx, c)) })
		}
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		if isPostgres(settings.Get[string](values, "store")) {
			return s.during(cmd, func(ctx context.Context) error { return s.writeBackup(args[0], s.dumpOf(ctx, values)) })
		}
		return s.during(cmd, func(ctx context.Context) error {
			err := s.withStore(ctx, values, api.MigrateOff, func(c *flowfabric.Client) error { return s.writeBackup(args[0], s.copyOf(ctx, c)) })
			if flowfabric.CodeOf(err) == "store_locked" {
				return show.Invalid("--store", "omit --store: the server that has the store open makes the copy", "%s", err)
			}
			return err
		})
	}
	cmd.AddCommand(s.backupVerify())
	return cmd
}

// source writes a copy of a store, and checks the file afterwards; check may be nil.
type source struct {
	write func(w io.Writer) error
	check func(path string) error
}

// copyOf is the copy that a client gets of a SQLite store.
func (s *session) copyOf(ctx context.Context, c *flowfabric.Client) source {
	progress := s.printer.NewProgress("pages", isTerminal(s.Err))
	return source{write: func(w io.Writer) error {
		defer progress.End()
		return c.Admin().Backup(ctx, w, ops.BackupOptions{Progress: progress.At})
	}}
}

// writeBackup writes to a temporary name and renames the copy when it is complete.
func (s *session) writeBackup(path string, from source) error {
	if path == "-" {
		return from.write(s.Out)
	}
	if _, err := os.Lstat(path); err == nil {
		return show.Invalid("FILE", "choose another name", "%s already exists", path)
	}
	partial := path + ".partial"
	file, err := createPrivate(partial)
	if err != nil {
		return show.Invalid("FILE", "", "%s", err)
	}
	sum := sha256.New()
	err = errors.Join(from.write(io.MultiWriter(file, sum)), file.Sync(), file.Close())
	if err == nil && from.check != nil {
		err = from.check(partial)
	}
	if err == nil {
		err = writePrivate(path+checksumSuffix, fmt.Appendf(nil, "%x  %s\n", sum.Sum(nil), filepath.Base(path)))
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	s.printer.Note("copied to %s, its checksum to %s; check it: flowfabric backup verify %s", path, path+checksumSuffix, path)
	return nil
}

// verdict is the result of checking a copy.
type verdict struct {
	OK          bool             `json:"ok"`
	Checksum    string           `json:"checksum"` // ok, or missing: no checksum file
	Checked     []string         `json:"checked"`
	Differences []api.Difference `json:"differences,omitempty"`
}

var verdictView = show.View[verdict]{
	ID: func(v verdict) string { return fmt.Sprint(v.OK) },
	Columns: []show.Column[verdict]{
		{Name: "STATE", Text: func(v verdict) string {
			if v.OK {
				return "ok"
			}
			return "fail"
		}},
		{Name: "CHECKSUM", Text: func(v verdict) string { return v.Checksum }},
		{Name: "CHECKED", Text: func(v verdict) string { return strings.Join(v.Checked, ", ") }},
		{Name: "DIFFERENCES", Text: func(v verdict) string {
			var all []string
			for _, d := range v.Differences {
				all = append(all, fmt.Sprintf("%s %s: stored %d, found %d", d.What, d.Key, d.Stored, d.Found))
			}
			return strings.Join(all, "; ")
		}},
	},
}

func (s *session) backupVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check a backup: checksum, pages, schema, counts, indexes; exit 1 on a finding", Args: counted(cobra.ExactArgs(1)),
		Example: examples("flowfabric backup verify monday.db\nflowfabric backup verify monday.db --json\nflowfabric backup verify /backups/monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.during(cmd, func(ctx context.Context) error {
				if dump, err := isDump(args[0]); err != nil || dump {
					return errors.Join(err, s.verifyDump(ctx, args[0]))
				}
				return onCopy(args[0], func(path, checksum string) error { return s.verify(ctx, path, checksum) })
			})
		},
	}
}

// verify checks a temporary copy of the copy.
func (s *session) verify(ctx context.Context, path, checksum string) error {
	found := verdict{Checksum: checksum}
	err := s.withOpened(ctx, "sqlite:"+path, embedded.Config{EngineConfig: flowfabric.EngineConfig{Migrate: api.MigrateOff}}, func(c *flowfabric.Client) error {
		report, err := c.Admin().Integrity(ctx)
		found.OK, found.Checked, found.Differences = report.OK, report.Checked, report.Differences
		return err
	})
	if err != nil {
		return err
	}
	if err := show.One(s.printer, verdictView, found); err != nil {
		return err
	}
	if !found.OK {
		return show.Exit(show.ExitFailed)
	}
	return nil
}

// onCopy checks a temporary copy of the file, so that the file itself is not changed. A file that does not match its checksum is
// refused.
func onCopy(path string, do func(path, checksum string) error) error {
	dir, err := os.MkdirTemp("", "flowfabric")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "copy.db")
	sum, err := copyFile(path, copied)
	if err != nil {
		return show.Invalid("FILE", "", "%s", err)
	}
	checksum, err := compareChecksum(path, sum)
	if err != nil {
		return err
	}
	return do(copied, checksum)
}

// compareChecksum compares a file with its recorded checksum.
func compareChecksum(path, sum string) (state string, err error) {
	text, err := os.ReadFile(path + checksumSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return "missing", nil
	}
	if err != nil {
		return "", err
	}
	want, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if want != sum {
		return "", fmt.Errorf("%s was changed or damaged: its SHA-256 is %s, but %s says %s", path, sum, path+checksumSuffix, want)
	}
	return "ok", nil
}

// createPrivate creates a file that only its owner can read, because a copy contains everything the store contains. What has the name is
// removed: where others may create files, it may be a link to another file, or a file that they keep open.
func createPrivate(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// writePrivate writes a file that only its owner can read.
func writePrivate(path string, content []byte) error {
	file, err := createPrivate(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// copyFile copies a file and returns the checksum of the copied bytes.
func copyFile(from, to string) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	out, err := createPrivate(to)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), in)
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, out.Sync(), out.Close())
}
