package memory

import (
	"context"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Names and numbers of Info.
const (
	kind    = "memory"
	version = "1"
	schema  = 1
	pool    = 8 // transactions are not bounded; engines derive from it how many of them may wait
)

// freshness is the maximum age of a clock reading for a transaction that only creates (L5).
const freshness = time.Second

// Store is the handle of one process on a Database.
type Store struct {
	d    *Database
	host clock.Clock
	gate func(Point)

	// The rest is protected by d.mu.
	closed  bool
	holders []*holder
	logID   base.UUID // as of the last dictionary
	carried reading
	ears    []*ear
}

// reading is the last answer of the database's clock, with what was read at the same time.
type reading struct {
	now         base.Time
	dictionary  int64
	incarnation string
	at          time.Time // by the host's clock
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.Sizer       = (*Store)(nil)
	_ store.TxSubmitter = (*Store)(nil)
)

// Open returns a handle for a process.
func (d *Database) Open(p Process) *Store {
	if p.Clock == nil {
		p.Clock = d.cfg.Clock
	}
	if p.Gate == nil {
		p.Gate = func(Point) {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Store{d: d, host: p.Clock, gate: p.Gate, logID: d.rows.logID}
	d.stores = append(d.stores, s)
	return s
}

// Close ends the handle with its open transactions, whose locks become free.
func (s *Store) Close() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.breakOff()
	s.d.stores = slices.DeleteFunc(s.d.stores, func(other *Store) bool { return other == s })
	return nil
}

// Break ends the open transactions of the handle, as a server does that ends idle sessions: their locks become free, and what follows in them
// fails. New transactions work.
func (s *Store) Break() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.breakOff()
}

// breakOff ends all open transactions. d.mu is held.
func (s *Store) breakOff() {
	for _, h := range s.holders {
		close(h.broken)
		s.d.release(h)
	}
	s.holders, s.carried = nil, reading{}
}

// usable refuses calls whose context or store has ended.
func (s *Store) usable(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return &store.Fault{Kind: store.Unavailable, Err: err}
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.open()
}

// open refuses calls on a store that was closed. d.mu is held.
func (s *Store) open() error {
	if s.closed {
		return &store.Fault{Kind: store.Unavailable, Err: errBroken}
	}
	return nil
}

// holder makes the owner of locks of a new transaction. d.mu is held.
func (s *Store) holder() *holder {
	h := &holder{broken: make(chan struct{}), gate: s.gate}
	if s.closed {
		close(h.broken)
		return h
	}
	s.holders = append(s.holders, h)
	return h
}

// leave ends a transaction. d.mu is held.
func (s *Store) leave(h *holder) {
	s.d.release(h)
	s.holders = slices.DeleteFunc(s.holders, func(other *holder) bool { return other == h })
}

// during runs do with the database locked, if ctx and store have not ended.
func (s *Store) during(ctx context.Context, do func() error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return do()
}

// Info describes the store.
func (s *Store) Info() store.Info {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return store.Info{Kind: kind, Version: version, Schema: schema, Installation: s.d.rows.installation, LogID: s.logID, Shared: true, Pool: pool}
}

// Now reads the database's clock.
func (s *Store) Now(ctx context.Context) (now base.Time, err error) {
	err = s.during(ctx, func() error {
		now = s.observe().now
		return nil
	})
	return now, err
}

// observe reads the clock, and carries the reading on to transactions that need no trip. d.mu is held.
func (s *Store) observe() reading {
	s.carried = reading{s.d.cfg.Now(), s.d.rows.version, s.d.rows.name(), s.host.Now()}
	return s.carried
}

// extrapolate returns the last reading as of now, if it is fresh, else a new one. d.mu is held.
func (s *Store) extrapolate() reading {
	r, host := s.carried, s.host.Now()
	age := host.Sub(r.at)
	if r.now == 0 || age < 0 || age > freshness {
		return s.observe()
	}
	r.now, r.at = r.now.Add(age.Milliseconds()), host
	return r
}

// Size estimates the bytes of everything that is stored.
func (s *Store) Size(ctx context.Context) (size int64, err error) {
	err = s.during(ctx, func() error {
		size = s.d.rows.size()
		return nil
	})
	return size, err
}

// perRow is what a row costs beside its bytes.
const perRow = 64

func (m *image) size() int64 {
	size := perRow
	for _, row := range m.executions {
		size += perRow + len(row.Origin) + len(row.State) + len(row.Input)
	}
	for _, entries := range m.history {
		for _, row := range entries {
			size += perRow + len(row.Body) + len(row.Result) + len(row.PatchBody)
		}
	}
	for _, docs := range m.docs {
		for i := range docs {
			size += perRow + len(docs[i].Body) + len(docs[i].Data)
		}
	}
	for i := range m.log {
		size += perRow + len(m.log[i].events)
	}
	for _, row := range m.inbox {
		size += perRow + len(row.Body)
	}
	for _, rows := range m.queues {
		size += perRow * len(rows)
	}
	return int64(size + perRow*(len(m.keys)+len(m.timers)+len(m.search)+len(m.counters)))
}

// Maintain drops log rows older than logBefore.
func (s *Store) Maintain(ctx context.Context, logBefore base.Time) error {
	return s.during(ctx, func() error {
		m := s.d.rows
		for logBefore != 0 && len(m.log) > 0 && m.log[0].state != drawn && m.log[0].at < logBefore {
			m.logStart, m.log = m.log[0].seq, m.log[1:]
		}
		for subject, seqs := range m.mentions {
			if kept := seqs[above(seqs, m.logStart):]; len(kept) > 0 {
				m.mentions[subject] = kept
			} else {
				delete(m.mentions, subject)
			}
		}
		return nil
	})
}
