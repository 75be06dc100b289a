// Package sqlite keeps executions in one SQLite file (DESIGN section 5): it implements the contract of package store on an embedded database, for
// one process at a time. One connection writes, in whole batches; a few others read committed snapshots. It moves rows without interpreting them:
// that is the task of package core.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Config configures how a file is opened. The zero value is suitable for production.
type Config struct {
	// Clock is the store's clock. Nil: the host's.
	Clock func() time.Time
	// UnsafeDurability gives up durability after a power loss: nothing is synced, and a SQLite with known defects (before 3.51.3) is accepted. For
	// tests.
	UnsafeDurability bool
	// Migrate states what to do with a schema that is older than this program: auto (default) migrates it, check refuses it, off uses it unchanged.
	// A newer one is always refused.
	Migrate string
	// BusyTimeout bounds every wait for the right to write. 0: 5 s.
	BusyTimeout time.Duration
	// Readers is the number of reading connections. 0: 4.
	Readers int
	// Logger logs migrations of the schema. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultBusyTimeout = 5 * time.Second
	defaultReaders     = 4
)

// normalize fills in the defaults and reports every problem at once.
func (c *Config) normalize() error {
	var problems []error
	if c.Clock == nil {
		c.Clock = clock.System().Now
	}
	switch c.Migrate {
	case "":
		c.Migrate = migrateAuto
	case migrateAuto, migrateCheck, migrateOff:
	default:
		problems = append(problems, fmt.Errorf("migrate is auto, check or off, not %q", c.Migrate))
	}
	if c.BusyTimeout == 0 {
		c.BusyTimeout = defaultBusyTimeout
	}
	if c.Readers == 0 {
		c.Readers = defaultReaders
	}
	if c.BusyTimeout < 0 {
		problems = append(problems, errors.New("the busy timeout is negative"))
	}
	if c.Readers < 0 {
		problems = append(problems, errors.New("the number of readers is negative"))
	}
	if len(problems) > 0 {
		return base.Invalid("store", "%w", errors.Join(problems...))
	}
	return nil
}

// Store is an open file. Its methods are safe for concurrent use.
type Store struct {
	path        string
	cfg         Config
	info        store.Info                // except the identity of the log
	logID       atomic.Pointer[base.UUID] // as of the last commit that changed it
	incarnation string                    // of this handle: no other process has the file open
	statements  map[string]string
	lock        *fileLock
	dictionary  atomic.Pointer[dictionary]
	policies    store.Policies
	meter       *metrics.Statements

	writer  chan *conn // holds the only writing connection while it is not in use
	readers chan *conn
	flush   flusher
	log     *writeAhead
	awaited chan base.UUID // the submission that Listen looks for next
	closing sync.Once
	closed  chan struct{}
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.TxSubmitter = (*Store)(nil)
	_ store.Backuper    = (*Store)(nil)
	_ store.Sizer       = (*Store)(nil)
)

// Info describes this store.
func (s *Store) Info() store.Info {
	info := s.info
	info.LogID = *s.logID.Load()
	return info
}

// Now reads the store's clock.
func (s *Store) Now(ctx context.Context) (base.Time, error) {
	if err := ctx.Err(); err != nil {
		return 0, unavailable(err)
	}
	return s.now(), nil
}

func (s *Store) now() base.Time { return base.TimeOf(s.cfg.Clock()) }

// Notify does nothing: no other process has the file open.
func (s *Store) Notify(ctx context.Context, _ store.Hint) error { return ctx.Err() }

var errClosed = errors.New("the store is closed")

// Close waits for transactions to end, at most the busy timeout, closes the connections and releases the file. Later calls return the fault
// Unavailable.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		close(s.closed)
		patience, cancel := context.WithTimeout(context.Background(), s.cfg.BusyTimeout)
		defer cancel()
		err = errors.Join(drain(patience, s.readers, cap(s.readers)), s.endWriting(patience), s.lock.release())
	})
	return err
}

var errStillOpen = &store.Fault{Kind: store.Busy, Err: errors.New("a transaction was still open when the store was closed")}

// endWriting closes the writing connection once everything that it wrote is durable.
func (s *Store) endWriting(patience context.Context) error {
	c := comesBack(patience, s.writer)
	if c == nil {
		s.flush.stop()
		return errors.Join(errStillOpen, s.log.close())
	}
	s.flush.end()
	return errors.Join(s.log.close(), c.close()) // the log is removed with the last connection
}

// drain closes n connections as they are returned.
func drain(patience context.Context, pool chan *conn, n int) error {
	var errs []error
	for range n {
		c := comesBack(patience, pool)
		if c == nil {
			return errStillOpen
		}
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// comesBack waits for a connection; it returns nil if the connection is still in use when patience ends. An available connection is taken even
// then: closing the previous ones may have used up the time.
func comesBack(patience context.Context, pool chan *conn) *conn {
	select {
	case c := <-pool:
		return c
	default:
	}
	select {
	case c := <-pool:
		return c
	case <-patience.Done():
		return nil
	}
}

// take takes a connection from a pool. It waits at most for patience.
func (s *Store) take(ctx context.Context, pool chan *conn, patience time.Duration) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	select {
	case <-s.closed:
		return nil, unavailable(errClosed)
	default:
	}
	select {
	case c := <-pool:
		return c, nil
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case c := <-pool:
		return c, nil
	case <-s.closed:
		return nil, unavailable(errClosed)
	case <-ctx.Done():
		return nil, &store.Fault{Kind: store.Busy, Err: ctx.Err()}
	case <-enough.C:
		return nil, &store.Fault{Kind: store.Busy, Err: fmt.Errorf("no connection came free within %v", patience)}
	}
}
