package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// timedRuns states that one of so many runs of a statement is timed. Reading the clock twice costs as much as a short statement.
const timedRuns = 64

// measure makes the store count its statements.
func (s *Store) measure() {
	s.meter = metrics.NewStatements(slices.Collect(maps.Keys(s.statements)), timedRuns, clock.Stopwatch())
	s.meter.Connections = func() (busy, idle, most int) {
		most = cap(s.readers) + cap(s.writer)
		idle = len(s.readers) + len(s.writer)
		return most - idle, idle, most
	}
}

// Collector returns the metrics of the store.
func (s *Store) Collector() metrics.Collector { return s.meter }

// Size returns the size of the file and of its write-ahead log.
func (s *Store) Size(context.Context) (int64, error) {
	var bytes int64
	for _, path := range []string{s.path, s.path + "-wal"} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, unavailable(err)
		}
		bytes += info.Size()
	}
	return bytes, nil
}
