package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// Statements measures a store's SQL statements and connections (U213).
type Statements struct {
	seconds *Histograms
	byName  map[string]*Statement
	now     func() time.Duration
	// Connections returns busy, idle and maximum connections; may be nil.
	Connections func() (busy, idle, most int)
}

// Statement counts the runs of one statement. A nil Statement counts nothing.
type Statement struct {
	all     *Statements
	name    string
	every   uint64
	runs    atomic.Uint64
	seconds func() *Observer // created on first use, because many statements are never run
}

// NewStatements measures the statements with these names, and the duration of one in every n runs.
func NewStatements(names []string, every uint64, now func() time.Duration) *Statements {
	s := &Statements{seconds: StoreQuerySeconds.New(), byName: make(map[string]*Statement, len(names)), now: now}
	for _, name := range names {
		s.byName[name] = &Statement{
			all: s, name: name, every: every,
			seconds: sync.OnceValue(func() *Observer { return s.seconds.With(name) }),
		}
	}
	return s
}

// Of returns a statement by name; nil if it is not measured.
func (s *Statements) Of(name string) *Statement {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// Now is the clock for durations.
func (s *Statements) Now() time.Duration {
	if s == nil {
		return 0
	}
	return s.now()
}

// Begin counts a run. It returns the start time if the duration is to be measured; pass it to End.
func (s *Statement) Begin() (began time.Duration) {
	if s == nil || (s.runs.Add(1)-1)%s.every != 0 {
		return untimed
	}
	return s.all.now()
}

// untimed marks a run whose duration is not measured.
const untimed = time.Duration(-1)

// End records the duration of a run.
func (s *Statement) End(began time.Duration) {
	if began != untimed {
		s.seconds().Observe((s.all.now() - began).Seconds())
	}
}

// Took counts a run with this duration.
func (s *Statement) Took(d time.Duration) {
	if s != nil {
		s.runs.Add(1)
		s.seconds().Observe(d.Seconds())
	}
}

// Collect tells what was measured.
func (s *Statements) Collect() []Family {
	queries, pool := StoreQueries.Family(), StorePool.Family()
	for _, statement := range s.byName {
		if runs := statement.runs.Load(); runs > 0 {
			queries.Add(float64(runs), statement.name)
		}
	}
	if s.Connections != nil {
		busy, idle, most := s.Connections()
		pool.Add(float64(busy), "busy")
		pool.Add(float64(idle), "idle")
		pool.Add(float64(most), "max")
	}
	return append(s.seconds.Collect(), queries, pool)
}
