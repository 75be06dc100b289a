package sqlite

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqltext"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// oldestSafe is the first SQLite that does not lose acknowledged commits of a write-ahead log (RELIABILITY rule 10).
var oldestSafe = [3]int{3, 51, 3}

// Open opens the file at path, creating it if it does not exist, and migrates its schema. A file that another engine has open is store_locked
// (U133). A path that does not name a database or names one that is not writable, a schema that is newer than this program, a SQLite that is too
// old and an invalid setting are invalid_argument. A damaged database is corruption.
func Open(ctx context.Context, path string, cfg Config) (*Store, error) {
	s, err := prepare(ctx, path, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fault(unfit(err)), s.abandon())
	}
	return s, nil
}

// prepare takes the lock of a file without connecting to it.
func prepare(ctx context.Context, path string, cfg Config) (*Store, error) {
	if err := cfg.normalize(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	path, err := resolve(path)
	if err != nil {
		return nil, base.Invalid("store", "the file cannot be opened: %w", err)
	}
	if found, err := os.Stat(path); err == nil && !found.Mode().IsRegular() { //nolint:gosec // G703: the path is a setting of the operator
		return nil, base.Invalid("store", "%s is a %s, not a file", path, kindOf(found)).WithHint(ownFile)
	}
	statements, err := sqltext.Load(statementFiles, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	makePrivate(path)
	inode, taken := lockInode(path)
	if !taken {
		return nil, errors.Join(base.Errorf(base.CodeStoreLocked, "another engine has this file open, perhaps by another name").
			WithHint("a SQLite file has one engine and one name: use the engine that runs, and remove hard links to the file"), lock.release())
	}
	lock.inode = inode
	s := &Store{
		incarnation: rand.Text(), path: path, cfg: cfg, statements: statements, lock: lock, closed: make(chan struct{}),
		writer: make(chan *conn, 1), readers: make(chan *conn, cfg.Readers), log: &writeAhead{path: path + "-wal"},
		awaited: make(chan base.UUID, 1),
	}
	s.flush.sync = s.log.sync
	if cfg.UnsafeDurability {
		s.flush.sync = func() error { return nil }
	}
	s.measure()
	return s, nil
}

// privateFile is the mode of every file that a store creates: they contain inputs, results and signing secrets.
const privateFile = 0o600

// makePrivate creates a missing file with access for its owner only. SQLite gives its other files the mode of the first. Errors are ignored: SQLite
// opens the file next and reports them.
func makePrivate(path string) {
	if file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile); err == nil { //nolint:gosec // G703: the path is a setting of the operator
		_ = file.Close()
	}
}

// kindOf names a path that is not a regular file.
func kindOf(found os.FileInfo) string {
	if found.IsDir() {
		return "directory"
	}
	return "device, pipe or socket"
}

// Hints about a file that is not a store.
const (
	ownFile  = "name a file of its own; one that is not there is made"
	writable = "let the process write the file and its directory"
	restore  = "go back to a copy that flowfabric backup made"
)

// unfit explains why a file cannot be a store. Other errors are returned unchanged.
func unfit(err error) error {
	switch codeOf(err) & primary {
	case sqlite3.SQLITE_NOTADB:
		return base.Invalid("store", "the file is no SQLite database: %w", err).WithHint(ownFile)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return base.Invalid("store", "the file cannot be opened for writing: %w", err).WithHint(writable)
	case sqlite3.SQLITE_CORRUPT:
		return base.Errorf(base.CodeCorruption, "the file is damaged: %w", err).WithHint(restore)
	default:
		return err
	}
}

// resolve returns the canonical name of the file, so that all paths to it use the same lock.
func resolve(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return "", fmt.Errorf("%q is not the name of a file", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// start opens the connections, migrates, and identifies the file.
func (s *Store) start(ctx context.Context) error {
	s.flush.serve()
	c, err := s.connectWriter()
	if err != nil {
		return err
	}
	s.writer <- c
	if err := s.checkVersion(c); err != nil {
		return err
	}
	if err := takeOverLog(c); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := s.identify(c); err != nil {
		return err
	}
	known, err := loadDictionary(c, &dictionary{})
	if err != nil {
		return err
	}
	s.dictionary.Store(known)
	for range cap(s.readers) {
		reader, err := s.connectReader()
		if err != nil {
			return err
		}
		s.readers <- reader
	}
	return nil
}

// takeOverLog moves what another process has left in the write-ahead log into the file. After a failed sync the log may have a hole that only the
// operating system's cache hides: everything after it would be lost with it.
func takeOverLog(c *conn) error {
	return c.each("take over log", func(row) error { return nil })
}

// abandon releases what a failed start has opened.
func (s *Store) abandon() error {
	var errs []error
	for _, pool := range []chan *conn{s.readers, s.writer} {
		for len(pool) > 0 {
			c := <-pool
			errs = append(errs, c.close())
		}
	}
	s.flush.end()
	return errors.Join(append(errs, s.log.close(), s.lock.release())...)
}

// Settings of connections.
const (
	impatient    = "busy_timeout = 0" // the store itself waits for the right to write, until its context ends
	flushed      = "fullfsync = on"   // where a sync alone does not reach the disk (macOS)
	synced       = "synchronous = full"
	syncedBeside = "synchronous = normal" // SQLite syncs what a checkpoint needs; the flusher syncs commits
	neverSynced  = "synchronous = off"
	writerCache  = "cache_size = -16384" // KiB; SQLite scans all of it in many commits
	readerCache  = "cache_size = -8192"
	checkpointAt = "wal_autocheckpoint = 4000" // pages
	keptLog      = "journal_size_limit = 67108864"
)

func (s *Store) connectWriter() (*conn, error) {
	c, err := connect(s.path, s.statements, s.patience(), "journal_mode = wal", s.durable(), flushed, "temp_store = memory",
		writerCache, checkpointAt, keptLog, impatient)
	if err != nil {
		return nil, err
	}
	c.meter = s.meter
	if err := checkWriter(c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// checkWriter refuses a connection that cannot write, or cannot use a write-ahead log.
func checkWriter(c *conn) error {
	if err := c.raw.Writable(); err != nil {
		return err
	}
	mode := ""
	err := c.each("journal mode", func(r row) error { mode = r.Text(0); return nil })
	if err == nil && mode != "wal" {
		err = base.Invalid("store", "the journal mode of the file is %q: it cannot be opened with a write-ahead log", mode)
	}
	return err
}

func (s *Store) connectReader() (*conn, error) {
	c, err := connect(s.path, s.statements, s.patience(), "query_only = on", "temp_store = memory", readerCache)
	if err == nil {
		c.meter = s.meter
	}
	return c, err
}

// patience lets SQLite itself wait for a lock: while opening, and while a reader meets the recovery or the reset of the log.
func (s *Store) patience() string {
	return "busy_timeout = " + strconv.FormatInt(s.cfg.BusyTimeout.Milliseconds(), 10)
}

// durable returns the setting under which a commit survives a power loss once the flusher has reported it as durable.
func (s *Store) durable() string {
	if s.cfg.UnsafeDurability {
		return neverSynced
	}
	return syncedBeside
}

func (s *Store) checkVersion(c *conn) error {
	err := c.each("sqlite version", func(r row) error { s.info.Version = r.Text(0); return nil })
	if err != nil || s.cfg.UnsafeDurability || atLeast(s.info.Version, oldestSafe) {
		return err
	}
	return base.Invalid("store", "SQLite %s can lose acknowledged commits", s.info.Version).With(store.CheckDetail, "version").
		WithHint("use a build with SQLite %d.%d.%d or newer", oldestSafe[0], oldestSafe[1], oldestSafe[2])
}

// atLeast compares a version in SQLite's format.
func atLeast(version string, least [3]int) bool {
	for i, part := range strings.SplitN(version, ".", 3) {
		n, err := strconv.Atoi(part)
		if err != nil || n < least[i] {
			return false
		}
		if n > least[i] {
			return true
		}
	}
	return true
}

// identify reads the row that identifies the installation.
func (s *Store) identify(c *conn) error {
	s.info.Kind = "sqlite"
	return c.each("read installation", func(r row) error {
		logID := r.uuid(1)
		s.logID.Store(&logID)
		s.info.Installation, s.info.Schema = r.uuid(0), int(r.Int(2))
		return nil
	})
}

// mint makes a new id for the time.
func mint(now base.Time) base.UUID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return base.MintUUID(now, random)
}
