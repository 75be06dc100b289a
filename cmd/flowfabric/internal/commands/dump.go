package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"strconv"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
)

// postgresConfig returns the settings for a dump or its restoration.
func postgresConfig(v *settings.Values) postgres.Config {
	return postgres.Config{
		Schema: settings.Get[string](v, "store-schema"), DirectURL: settings.Get[string](v, "store-direct-url"), UnsafeDurability: settings.Get[bool](v, "unsafe-durability"),
	}
}

// dumpOf is the dump of a Postgres store.
func (s *session) dumpOf(ctx context.Context, v *settings.Values) source {
	var dumped postgres.Dumped
	return source{
		write: func(w io.Writer) (err error) {
			progress := s.printer.NewProgress("KiB", isTerminal(s.Err))
			defer progress.End()
			dumped, err = postgres.Dump(ctx, settings.Get[string](v, "store"), postgresConfig(v), &counting{Writer: w, at: progress.At})
			return notOpened(api.AsError(err))
		},
		check: func(path string) error {
			found, err := postgres.ReadDump(ctx, path)
			if err == nil && !maps.Equal(found.Rows, dumped.Rows) {
				return errors.New("the backup has other numbers of rows than the store")
			}
			return api.AsError(err)
		},
	}
}

// counting is a writer that reports how much was written.
type counting struct {
	io.Writer
	written int
	at      func(done, total int)
}

// Write writes and reports.
func (c *counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.written += n
	c.at(c.written>>10, 0)
	return n, err
}

// isDump reports whether a backup is one of Postgres.
func isDump(path string) (bool, error) {
	dump, err := postgres.IsDump(path)
	if err != nil {
		return false, show.Invalid("FILE", "", "%s", err)
	}
	return dump, nil
}

// verifyDump reads a dump completely.
func (s *session) verifyDump(ctx context.Context, path string) error {
	checksum, err := checkFile(path)
	if err != nil {
		return err
	}
	dumped, err := postgres.ReadDump(ctx, path)
	if err != nil {
		return api.AsError(err)
	}
	checked := []string{"archive", "tables: " + strconv.Itoa(len(dumped.Rows)), "rows: " + strconv.FormatInt(dumped.Total(), 10)}
	return show.One(s.printer, verdictView, verdict{OK: true, Checksum: checksum, Checked: checked})
}

// checkFile compares a file with its recorded checksum.
func checkFile(path string) (state string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", show.Invalid("FILE", "", "%s", err)
	}
	defer func() { _ = in.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return compareChecksum(path, hex.EncodeToString(hash.Sum(nil)))
}

// restoreDump loads a dump into a database and checks the store that it has then.
func (s *session) restoreDump(ctx context.Context, from string, v *settings.Values, force bool) error {
	dump, err := isDump(from)
	if err != nil {
		return err
	}
	if !dump {
		return show.Invalid("FILE", "restore it with --store sqlite:PATH if it is a copy of a SQLite store", "%s is not a backup of a Postgres store", from)
	}
	if _, err := checkFile(from); err != nil {
		return err
	}
	address := settings.Get[string](v, "store")
	dumped, err := postgres.Restore(ctx, address, postgresConfig(v), from, force)
	if err != nil {
		return notOpened(api.AsError(err))
	}
	s.printer.Note("restored %d rows of %d tables into schema %s", dumped.Total(), len(dumped.Rows), dumped.Schema)
	return s.checkRestored(ctx, v)
}

// checkRestored checks the counts and records of a store, unless its schema is older than this program.
func (s *session) checkRestored(ctx context.Context, v *settings.Values) error {
	schema, err := embedded.SchemaOf(ctx, settings.Get[string](v, "store"), migrateConfig(v))
	if err != nil {
		return err
	}
	if schema.Level < schema.Known {
		s.printer.Note("its schema is older than this program: a server migrates it at start, as flowfabric migrate up does")
		return nil
	}
	return s.withStore(ctx, v, api.MigrateOff, func(c *flowfabric.Client) error {
		report, err := c.Admin().Integrity(ctx)
		if err != nil || report.OK {
			return err
		}
		found := verdict{Checksum: "ok", Checked: report.Checked, Differences: report.Differences}
		return errors.Join(show.One(s.printer, verdictView, found), show.Exit(show.ExitFailed))
	})
}
