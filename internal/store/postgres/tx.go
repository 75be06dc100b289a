package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// patient is how long a single command waits for a lock (L82), in the server's syntax. Batches, which others wait behind, wait for Config.LockWait.
const patient = "1s"

// goodbye bounds the end of a transaction whose caller no longer waits.
const goodbye = 5 * time.Second

// tx is a transaction. It has no connection until it sends its first statement.
type tx struct {
	s        *Store
	m        *memory // used to decode rows
	conn     *pgxpool.Conn
	loaded   bool // rows were loaded, so the incarnation is known
	lockWait string
	taken    rank
	places   places    // of the rows locked
	counters []string  // locked, possibly created by the lock
	now      base.Time // as of the last answer
	answered time.Time // time of the last answer, by the host's clock
	ended    bool
}

var errEnded = errors.New("the transaction has ended")

// Begin opens a transaction, locks and loads what want names, and reads the clock, in one trip.
func (s *Store) Begin(ctx context.Context, want store.Want) (begun store.Tx, loaded *store.Loaded, err error) {
	t := &tx{s: s, lockWait: s.impatient}
	if want.Patient {
		t.lockWait = patient
	}
	defer func() {
		if begun == nil { // also if Load panics
			t.Rollback(ctx)
		}
	}()
	if wantsRows(&want) {
		err := again(func() (err error) {
			*t = tx{s: s, m: s.memory.Load(), lockWait: t.lockWait}
			loaded, err = t.Load(ctx, want)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		return t, loaded, nil
	}
	now, dictionary, m, err := s.carried(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := s.newLoad(m, &want, true, nothingTaken)
	l.out.Now, l.out.Dictionary, l.out.Incarnation = now, dictionary, m.incarnation
	t.m, t.now = m, now
	return t, l.out, nil
}

// start acquires a connection, unless there is one, and begins a trip that opens the transaction.
func (t *tx) start(ctx context.Context) (*trip, error) {
	if t.ended {
		return nil, &store.Fault{Kind: store.Broken, Err: errEnded}
	}
	if t.conn != nil {
		if err := t.stillThere(); err != nil {
			return nil, err
		}
		return t.s.trip(t.conn), nil
	}
	conn, err := t.s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	t.conn = conn
	opening := t.s.trip(conn)
	opening.add("begin", nil)
	opening.settings(t.lockWait)
	return opening, nil
}

// stillThere checks whether the server has ended the session, if this process was idle for so long that it may have. It is called before the commit
// is sent, when it is certain that nothing was written.
func (t *tx) stillThere() error {
	if t.s.cfg.Clock.Now().Sub(t.answered) < t.s.cfg.IdleLimit/4 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := t.conn.Conn().PgConn().ReceiveMessage(ctx); err != nil && !pgconn.Timeout(err) {
		return &store.Fault{Kind: store.Retry, Err: err}
	}
	return nil
}

// Load locks and loads more rows. A failure ends the transaction.
func (t *tx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	ctx, cancel := t.s.bounded(ctx)
	defer cancel()
	tr, err := t.start(ctx)
	if err != nil {
		t.Rollback(ctx)
		return nil, err
	}
	l := t.s.newLoad(t.m, &want, true, t.taken)
	l.places = &t.places
	l.add(tr)
	if err := tr.run(ctx); err != nil {
		return nil, t.endBy(ctx, tr, err, func(statement string) []store.Lock { return waitsFor(&want, statement) })
	}
	loaded, err := l.finish(ctx, t.conn)
	if err != nil {
		t.Rollback(ctx)
		return nil, err
	}
	t.answered = t.s.cfg.Clock.Now()
	t.taken = max(t.taken, rankOf(&want))
	t.counters = append(t.counters, want.Counters...)
	t.now, t.loaded = loaded.Now, true
	return loaded, nil
}

// Seen calls safe at once: only durable commits are visible.
func (t *tx) Seen(safe func(error)) { safe(nil) }

// Rollback ends the transaction without changes.
func (t *tx) Rollback(ctx context.Context) {
	if t.ended {
		return
	}
	t.ended = true
	if t.conn == nil {
		return
	}
	t.s.rollback(ctx, t.conn)
	t.conn.Release() // closes a connection whose transaction could not be ended
}

// endBy ends the transaction after a failed trip and returns the fault. If a statement timed out waiting for a lock, among returns the rows that it
// may have waited for.
func (t *tx) endBy(ctx context.Context, failed *trip, err error, among func(statement string) []store.Lock) error {
	if t.ended = true; t.conn == nil {
		return fault(err)
	}
	defer t.conn.Release()
	t.s.rollback(ctx, t.conn)
	if !isCode(err, busyCode) || failed.done >= len(failed.asked) {
		return fault(err)
	}
	return t.busy(ctx, err, among(failed.asked[failed.done].name))
}

// rollback ends the open transaction on a connection, if there is one.
func (s *Store) rollback(ctx context.Context, conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	tr := s.trip(conn)
	tr.add("rollback", nil)
	if err := tr.run(ctx); err != nil {
		_ = conn.Conn().Close(ctx)
	}
}

// Read loads committed rows of one snapshot.
func (s *Store) Read(ctx context.Context, want store.Want) (loaded *store.Loaded, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	err = again(func() error {
		loaded, err = s.readBy(ctx, s.memory.Load(), &want)
		return err
	})
	return loaded, err
}

func (s *Store) readBy(ctx context.Context, m *memory, want *store.Want) (*store.Loaded, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	t := s.trip(conn)
	t.add("begin_snapshot", nil)
	t.settings(s.impatient)
	l := s.newLoad(m, want, false, nothingTaken)
	l.add(t)
	t.add("commit", nil)
	if err := t.run(ctx); err != nil {
		return nil, fault(err)
	}
	return l.finish(ctx, conn)
}
