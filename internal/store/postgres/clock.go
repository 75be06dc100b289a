package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// freshness is the maximum age of a clock reading for a transaction that only creates (L5).
const freshness = time.Second

// carriedClock is the last reading of the database's clock, with the dictionary version that was read at the same time.
type carriedClock struct {
	mu         sync.Mutex
	now        base.Time
	dictionary int64
	read       time.Time // when, by the host's monotonic clock
}

func (c *carriedClock) set(now base.Time, dictionary int64, read time.Time) {
	c.mu.Lock()
	c.now, c.dictionary, c.read = now, dictionary, read
	c.mu.Unlock()
}

// forget makes the next transaction read the clock again, because the dictionary has changed.
func (c *carriedClock) forget() { c.set(0, 0, time.Time{}) }

// at extrapolates the last reading; ok is false if the reading is too old.
func (c *carriedClock) at(host time.Time) (now base.Time, dictionary int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := host.Sub(c.read)
	return c.now.Add(age.Milliseconds()), c.dictionary, c.now != 0 && age >= 0 && age <= freshness
}

// observe records a reading and returns it. The host's clock is read after the database's, so that the extrapolated time is never ahead.
func (s *Store) observe(m *memory, now base.Time, dictionary int64) base.Time {
	m.carry.set(now, dictionary, s.cfg.Clock.Now())
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return now
}

// ownTime translates the time bound of the changes to the database's clock if Config.Now replaces that clock.
func (s *Store) ownTime(ch *store.Changes) {
	if s.cfg.Now == nil || ch.AssumeUntil == 0 {
		return
	}
	until := ch.AssumeUntil
	if ch.AssumeUntil = 0; s.cfg.Now() >= until {
		ch.AssumeUntil = 1
	}
}

// carried returns the clock without a trip if that is allowed, else with one, and the memory that it belongs to.
func (s *Store) carried(ctx context.Context) (base.Time, int64, *memory, error) {
	m := s.memory.Load()
	now, dictionary, ok := m.carry.at(s.cfg.Clock.Now())
	if ok {
		if s.cfg.Now != nil {
			now = s.cfg.Now()
		}
		return now, dictionary, m, nil
	}
	return s.readClock(ctx)
}

// Now reads the database's clock.
func (s *Store) Now(ctx context.Context) (base.Time, error) {
	now, _, _, err := s.readClock(ctx)
	return now, err
}

func (s *Store) readClock(ctx context.Context) (now base.Time, dictionary int64, m *memory, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, 0, nil, err
	}
	defer conn.Release()
	t := s.trip(conn)
	t.add("clock", func(r row) error {
		now, dictionary, m = r.time(0), r.bigint(1), s.remembered(r.text(2))
		return nil
	})
	if err := t.run(ctx); err != nil {
		return 0, 0, nil, fault(err)
	}
	return s.observe(m, now, dictionary), dictionary, m, nil
}
