package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// Statements are the measurements that a store makes of its own statements and connections (U213).
type Statements struct {
	seconds *Histograms
	byName  map[string]*Statement
	now     func() time.Duration
	// Connections tells how many connections are busy, idle and allowed; nil while there are none.
	Connections func() (busy, idle, most int)
}

// Statement counts the runs of one statement. The runs of nil are not counted.
type Statement struct {
	all     *Statements
	name    string
	every   uint64
	runs    atomic.Uint64
	seconds func() *Observer // made when it is first used: many statements never are
}

// NewStatements measures the statements of these names, and the time of one of every so many runs.
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

// Of finds a statement by name; nil when it is not measured.
func (s *Statements) Of(name string) *Statement {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// Now is the clock by which runs are timed.
func (s *Statements) Now() time.Duration {
	if s == nil {
		return 0
	}
	return s.now()
}

// Begin counts a run. It returns when that began if its time is wanted; hand it to End.
func (s *Statement) Begin() (began time.Duration) {
	if s == nil || (s.runs.Add(1)-1)%s.every != 0 {
		return untimed
	}
	return s.all.now()
}

// untimed is when a run began whose time nobody wants.
const untimed = time.Duration(-1)

// End notes how long a run took.
func (s *Statement) End(began time.Duration) {
	if began != untimed {
		s.seconds().Observe((s.all.now() - began).Seconds())
	}
}

// Took counts a run that took so long.
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
