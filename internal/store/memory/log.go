package memory

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// logRow is a position of the log.
type logRow struct {
	seq    int64
	state  logState
	at     base.Time
	events []byte
}

// logState is what has become of a position.
type logState uint8

const (
	drawn     logState = iota // its transaction is open
	committed                 // it has events
	void                      // its transaction failed: readers pass it
)

// draw takes the next position.
func (m *image) draw() int64 {
	seq := m.logStart + int64(len(m.log)) + 1
	m.log = append(m.log, logRow{seq: seq})
	m.logOpen++
	return seq
}

// settle decides what becomes of a position that was drawn from this image.
func (m *image) settle(seq int64, state logState, at base.Time, events []byte) {
	m.logOpen--
	m.log[seq-m.logStart-1] = logRow{seq, state, at, events}
}

func (r *logRow) read() store.Commit {
	c := store.Commit{Seq: r.seq, At: r.at, Stored: len(r.events)}
	if len(r.events) > 0 {
		c.Events, c.Unreadable = store.DecodeCommit(r.events)
	}
	return c
}

// logEnd returns the position up to which everything is decided.
func (m *image) logEnd() int64 {
	for i := 0; m.logOpen > 0 && i < len(m.log); i++ {
		if m.log[i].state == drawn {
			return m.log[i].seq - 1
		}
	}
	return m.logStart + int64(len(m.log))
}

// logNewest returns the position of the newest commit.
func (m *image) logNewest() int64 {
	for i := len(m.log) - 1; i >= 0; i-- {
		if m.log[i].state != drawn {
			return m.log[i].seq
		}
	}
	return m.logStart
}

// Log returns consecutive commits after a position.
func (s *Store) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = s.during(ctx, func() error {
		m := s.d.rows
		for i := max(0, after-m.logStart); i < int64(len(m.log)) && !store.Full(commits, limit) && m.log[i].state != drawn; i++ {
			commits = append(commits, m.log[i].read())
		}
		return nil
	})
	return commits, err
}
