package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// How long a transaction waits for a lock, in the server's words: a batch that others wait behind, and a command alone (L82).
const (
	impatient = "50ms"
	patient   = "1s"
)

// goodbye bounds the end of a transaction whose caller has gone already.
const goodbye = 5 * time.Second

// tx is a transaction. It has no connection until it has something to say.
type tx struct {
	s        *Store
	conn     *pgxpool.Conn
	lockWait string
	taken    rank
	places   places    // of the rows locked
	counters []string  // locked, perhaps made by locking them
	now      core.Time // as last answered
	ended    bool
}

var errEnded = errors.New("the transaction has ended")

// Begin opens a transaction, locks and loads what want names, and reads the clock, in one trip.
func (s *Store) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	t := &tx{s: s, lockWait: impatient}
	if want.Patient {
		t.lockWait = patient
	}
	if wantsRows(&want) {
		loaded, err := t.Load(ctx, want)
		if err != nil {
			return nil, nil, err
		}
		return t, loaded, nil
	}
	l := s.newLoad(&want, true, nothingTaken)
	var err error
	if l.out.Now, l.out.Dictionary, err = s.carried(ctx); err != nil {
		return nil, nil, err
	}
	t.now = l.out.Now
	return t, l.out, nil
}

// start takes a connection, if there is none yet, and begins a trip that opens the transaction.
func (t *tx) start(ctx context.Context) (*trip, error) {
	if t.ended {
		return nil, &store.Fault{Kind: store.Broken, Err: errEnded}
	}
	if t.conn != nil {
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

// Load locks and loads more rows. A failure ends the transaction.
func (t *tx) Load(ctx context.Context, want store.Want) (*store.Loaded, error) {
	ctx, cancel := t.s.bounded(ctx)
	defer cancel()
	tr, err := t.start(ctx)
	if err != nil {
		return nil, err
	}
	l := t.s.newLoad(&want, true, t.taken)
	l.places = &t.places
	l.add(tr)
	if err := tr.run(ctx); err != nil {
		t.Rollback(ctx)
		return nil, fault(err)
	}
	loaded, err := l.finish(ctx, t.conn)
	if err != nil {
		t.Rollback(ctx)
		return nil, err
	}
	t.taken = max(t.taken, rankOf(&want))
	t.counters = append(t.counters, want.Counters...)
	t.now = loaded.Now
	return loaded, nil
}

// Seen calls safe at once: nobody sees what is not.
func (t *tx) Seen(safe func(error)) { safe(nil) }

// Rollback ends the transaction without a trace.
func (t *tx) Rollback(ctx context.Context) {
	if t.ended {
		return
	}
	t.ended = true
	if t.conn == nil {
		return
	}
	defer t.conn.Release() // which gives up a connection whose transaction could not be ended
	if t.conn.Conn().IsClosed() || t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	tr := t.s.trip(t.conn)
	tr.add("rollback", nil)
	if err := tr.run(ctx); err != nil {
		_ = t.conn.Conn().Close(ctx)
	}
}

// Read loads committed rows of one snapshot.
func (s *Store) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	t := s.trip(conn)
	t.add("begin_snapshot", nil)
	t.settings(impatient)
	l := s.newLoad(&want, false, nothingTaken)
	l.add(t)
	t.add("commit", nil)
	if err := t.run(ctx); err != nil {
		return nil, fault(err)
	}
	return l.finish(ctx, conn)
}
