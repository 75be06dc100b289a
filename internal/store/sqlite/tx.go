package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/internal/store"
)

// durability states when a commit must have reached the disk.
type durability bool

const (
	// durably: before it is reported to any caller.
	durably durability = true
	// eventually: with the next durable commit. For changes that are redone after a power loss.
	eventually durability = false
)

// retryPause bounds the pauses between attempts to write while a transaction of the user holds the file.
const retryPause = 20 * time.Millisecond

// beginWriting takes the only writing connection and begins a transaction on it. There is then no other one in this process. It waits for a
// transaction of the user (L88), at most for patience.
func (s *Store) beginWriting(ctx context.Context, patience time.Duration) (*conn, error) {
	c, err := s.take(ctx, s.writer, patience)
	if err != nil {
		return nil, err
	}
	if c.raw == nil {
		err = s.reconnect(c)
	}
	if err == nil {
		err = s.flush.fault()
	}
	if err == nil {
		err = beginImmediate(ctx, c, patience)
	}
	if err != nil {
		s.writer <- c
		return nil, fault(err)
	}
	return c, nil
}

func beginImmediate(ctx context.Context, c *conn, patience time.Duration) error {
	err := c.run("begin immediate")
	if !isBusy(err) {
		return err
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for pause := time.Millisecond; isBusy(err); pause = min(2*pause, retryPause) {
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			err = c.run("begin immediate")
		case <-ctx.Done():
			again.Stop()
			return &store.Fault{Kind: store.Busy, Err: ctx.Err()}
		case <-enough.C:
			again.Stop()
			return err
		}
	}
	return err
}

// reconnect replaces a connection that was closed.
func (s *Store) reconnect(c *conn) error {
	fresh, err := s.connectWriter()
	if err != nil {
		return err
	}
	*c = *fresh
	return nil
}

// abort rolls back the transaction on the writing connection and returns the connection. If the rollback fails, the connection is closed and opened
// again by the next writer.
func (s *Store) abort(c *conn) {
	if err := c.run("rollback"); err != nil {
		_ = c.close() // it is not used again
	}
	s.writer <- c
}

// commit commits the transaction on the writing connection and returns the connection, for changes that may be lost: it must not have changed the
// dictionary.
func (s *Store) commit(c *conn) error {
	if err := c.run("commit"); err != nil {
		s.abort(c)
		return commitFault(err)
	}
	s.writer <- c
	return nil
}

// commitDurably is commit for changes that must not be lost. next is the dictionary after the transaction, nil if unchanged. If told is nil, it
// returns when the commit is durable; otherwise told is called then.
func (s *Store) commitDurably(c *conn, next *dictionary, done func(error)) error {
	var safe chan error
	if done == nil {
		safe = make(chan error, 1)
		done = func(err error) { safe <- err }
	}
	s.flush.begins()
	if err := c.run("commit"); err != nil {
		s.flush.wrote(nil)
		s.abort(c)
		return commitFault(err)
	}
	if next != nil {
		s.dictionary.Store(next)
	}
	s.flush.wrote(func(err error) { done(unsynced(err)) })
	s.writer <- c
	if safe == nil {
		return nil
	}
	return <-safe
}

// unsynced is the fault of a commit of which it is unknown whether it has reached the disk.
func unsynced(err error) error {
	if err == nil {
		return nil
	}
	return &store.Fault{Kind: store.Unknown, Err: fmt.Errorf("the log could not be synced: %w", err)}
}

// write runs do in a transaction of its own.
func (s *Store) write(ctx context.Context, when durability, do func(*conn) error) error {
	c, err := s.beginWriting(ctx, s.cfg.BusyTimeout)
	if err != nil {
		return err
	}
	if err := s.doWriting(c, do); err != nil {
		s.abort(c)
		return fault(err)
	}
	if when == durably {
		return s.commitDurably(c, nil, nil)
	}
	return s.commit(c)
}

// doWriting runs do. If it panics, the transaction is rolled back and the connection is returned: it is the only writing one.
func (s *Store) doWriting(c *conn, do func(*conn) error) error {
	returned := false
	defer func() {
		if !returned {
			s.abort(c)
		}
	}()
	err := do(c)
	returned = true
	return err
}

// read runs do on a reading connection. It returns when all that do may have seen is durable.
func (s *Store) read(ctx context.Context, do func(*conn) error) error {
	c, err := s.take(ctx, s.readers, s.cfg.BusyTimeout)
	if err != nil {
		return err
	}
	if err := s.doReading(c, do); err != nil {
		return fault(err)
	}
	return s.settled(ctx)
}

// doReading runs do and returns the connection, even if do panics.
func (s *Store) doReading(c *conn, do func(*conn) error) error {
	defer func() { s.readers <- c }()
	return do(c)
}

// settled waits until everything that is visible now is durable.
func (s *Store) settled(ctx context.Context) error {
	if err := s.flush.settled(ctx); err != nil {
		return unavailable(err)
	}
	return nil
}

// snapshot runs do on a reading connection, in one transaction.
func (s *Store) snapshot(ctx context.Context, do func(*conn) error) error {
	return s.read(ctx, func(c *conn) (err error) {
		if err := c.run("begin"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.run("rollback")) }() // even if do panics
		return do(c)
	})
}

// Begin takes the right to write, which is the only lock of this store, and loads what want names. Without rows to load, the transaction begins
// with Commit.
func (s *Store) Begin(ctx context.Context, want store.Want) (begun store.Tx, loaded *store.Loaded, err error) {
	t := &tx{s: s}
	if isEmpty(&want) {
		if err := ctx.Err(); err != nil {
			return nil, nil, unavailable(err)
		}
		return t, s.nothing(), nil
	}
	defer func() {
		if begun == nil { // even if Load panics
			t.Rollback(ctx)
		}
	}()
	if loaded, err = t.Load(ctx, want); err != nil {
		return nil, nil, err
	}
	return t, loaded, nil
}

// Read loads what want names in one snapshot.
func (s *Store) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded := s.nothing()
	if isEmpty(&want) { // clock, dictionary version and incarnation are known
		return loaded, s.settled(ctx)
	}
	err := s.snapshot(ctx, func(c *conn) error { return s.load(c, &want, loaded, reading) })
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

// nothing returns an answer without rows.
func (s *Store) nothing() *store.Loaded {
	return &store.Loaded{Now: s.now(), Dictionary: s.dictionary.Load().Version, Incarnation: s.incarnation}
}

// tx is a transaction. It has no connection before it loads something, and none after it has ended.
type tx struct {
	s     *Store
	c     *conn
	ended bool
}

var errEnded = errors.New("the transaction has ended")

// morePatience is how much longer a patient transaction waits than others.
const morePatience = time.Second

// start begins the transaction unless it has begun.
func (t *tx) start(ctx context.Context, patient bool) error {
	switch {
	case t.ended:
		return &store.Fault{Kind: store.Broken, Err: errEnded}
	case ctx.Err() != nil:
		return unavailable(ctx.Err())
	case t.c != nil:
		return nil
	}
	patience := t.s.cfg.BusyTimeout
	if patient {
		patience += morePatience
	}
	var err error
	t.c, err = t.s.beginWriting(ctx, patience)
	return err
}

// Load loads more rows.
func (t *tx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if err := t.start(ctx, want.Patient); err != nil {
		return nil, err
	}
	loaded := t.s.nothing()
	if err := t.s.load(t.c, &want, loaded, writing); err != nil {
		return nil, fault(err)
	}
	return loaded, nil
}

// Commit writes the changes and ends the transaction.
func (t *tx) Commit(ctx context.Context, ch *store.Changes) error {
	if err := t.start(ctx, false); err != nil {
		t.Rollback(ctx)
		return err
	}
	out, err := t.write(ch)
	c := t.c
	t.c, t.ended = nil, true
	if err != nil {
		t.s.abort(c)
		return fault(err)
	}
	ch.Seq = out.seq
	err = t.s.commitDurably(c, out.dictionary, ch.Safe)
	if err == nil && !ch.NewLogID.IsZero() {
		t.s.logID.Store(&ch.NewLogID)
	}
	return err
}

// write writes the changes. A panic is returned as an error: nothing is committed yet, so the fault is Broken.
func (t *tx) write(ch *store.Changes) (out outcome, err error) {
	defer func() { err = store.Caught(recover(), err) }()
	return t.s.apply(t.c, ch)
}

// Seen calls safe when everything that was written before is durable.
func (t *tx) Seen(safe func(error)) {
	t.s.flush.then(func(err error) { safe(unsynced(err)) })
}

// Rollback ends the transaction without changes.
func (t *tx) Rollback(context.Context) {
	if t.c != nil {
		t.s.abort(t.c)
	}
	t.c, t.ended = nil, true
}

// Await returns at once: transactions are serialized, and no row that a caller could name is held.
func (s *Store) Await(context.Context, store.Lock, time.Duration) error { return nil }
