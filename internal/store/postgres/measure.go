package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// measure makes the store count the statements of its trips.
func (s *Store) measure() {
	s.meter = metrics.NewStatements(slices.Collect(maps.Keys(s.texts)), 1, clock.Stopwatch())
	s.meter.Connections = func() (busy, idle, most int) {
		stat := s.pool.Stat()
		return int(stat.AcquiredConns()), int(stat.IdleConns()), int(stat.MaxConns())
	}
}

// Collector returns the metrics of the store.
func (s *Store) Collector() metrics.Collector { return s.meter }

// Size returns the size of the whole database.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	err = s.ask(ctx, "size", func(r row) error {
		bytes = r.bigint(0)
		return nil
	})
	return bytes, err
}
