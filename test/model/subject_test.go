package model

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
	"github.com/flowfabric/flowfabric/test/around"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// patience bounds every call in real time; nothing waits for it to pass.
const patience = 5 * time.Minute

// reader sees everything.
var reader = engine.Caller{Principal: "reader", Actor: "client"}

// subject is an engine on a store, together with what its event log has told so far.
type subject struct {
	name    string
	store   store.Store
	own     *sql.DB // the user's own connection
	e       *engine.Engine
	family  *quiescence.Family
	clock   *sleepy.Clock
	mu      sync.Mutex
	ids     idSource
	cursor  string
	told    map[base.UUID][]core.Event
	agreed  map[base.UUID]int // how many events of an execution are known to be those of the model
	lanesOf []core.Event
}

// caseTB lends a testing.TB to one case of rapid: what it cleans up ends with the case.
type caseTB struct {
	testing.TB
	cleanup func(func())
}

// Cleanup runs f when the case ends.
func (c caseTB) Cleanup(f func()) { c.cleanup(f) }

// openSubjects opens an engine on every store, by one clock. They are one family: nothing moves the clock before all of them are at rest.
func openSubjects(tb testing.TB, c *sleepy.Clock) []*subject {
	family := quiescence.New()
	return []*subject{openSQLite(tb, c, family), openPostgres(tb, c, family)}
}

func openSQLite(tb testing.TB, c *sleepy.Clock, family *quiescence.Family) *subject {
	s := newSubject("sqlite", c, family)
	path := filepath.Join(tb.TempDir(), "model.db")
	s.open(tb, "sqlite", path, func(ctx context.Context) (store.Store, error) {
		opened, err := sqlite.Open(ctx, path, sqlite.Config{Clock: c.Now, UnsafeDurability: true, Readers: 2})
		if err != nil {
			return nil, err
		}
		return struct {
			watched
			store.Checker
		}{watchedBy(family, opened), opened}, nil
	})
	return s
}

func openPostgres(tb testing.TB, c *sleepy.Clock, family *quiescence.Family) *subject {
	s := newSubject("postgres", c, family)
	database := cluster.Again(tb)
	s.open(tb, "pgx", database.URL, func(ctx context.Context) (store.Store, error) {
		// On a busy machine a transaction may take long: a claim must not pass over what it has locked, and take something else.
		opened, err := database.Open(ctx, postgres.Config{Now: c.StoreNow, PoolSize: 4, UnsafeDurability: true, LockWait: patience})
		if err != nil {
			return nil, err
		}
		return watchedBy(family, opened), nil
	})
	return s
}

// watched is a store during whose calls the family is known to go on, without a look at its goroutines. It has the abilities that an engine
// asks for in these tests.
type watched struct {
	*around.Store
	store.TxSubmitter
	store.Scrubber
}

func watchedBy(family *quiescence.Family, s interface {
	store.Store
	store.TxSubmitter
	store.Scrubber
},
) watched {
	during := func(_ string, _ bool, run func() error) error { return family.During(run) }
	return watched{&around.Store{Store: s, Around: during}, s, s}
}

func newSubject(name string, c *sleepy.Clock, family *quiescence.Family) *subject {
	return &subject{name: name, clock: c, family: family, cursor: "start", told: map[base.UUID][]core.Event{}, agreed: map[base.UUID]int{}}
}

func (s *subject) open(tb testing.TB, driver, source string, openStore func(context.Context) (store.Store, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	seed := seedOf(firstKid)
	s.family.Do(func() {
		if s.store, err = openStore(ctx); err != nil {
			return
		}
		s.e, err = engine.Open(ctx, s.store, engine.Config{
			Clock: s.clock, Mint: s.mint, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), SigningKey: &seed,
		})
	})
	if err == nil {
		s.own, err = openOwn(driver, source)
	}
	if err != nil {
		tb.Fatalf("%s: open: %v", s.name, err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.own.Close(); err != nil {
			tb.Errorf("%s: close the user's connection: %v", s.name, err)
		}
		if err := s.e.Close(ctx); err != nil {
			tb.Errorf("%s: close: %v", s.name, err)
		}
		if err := s.store.Close(); err != nil {
			tb.Errorf("%s: close the store: %v", s.name, err)
		}
	})
}

func (s *subject) mint() base.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.next()
}

func (s *subject) begin(command uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.begin(command)
}

// rest waits until the loops of the engines have nothing to do before somebody is woken.
func rest(subjects []*subject) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := subjects[0].family.Await(ctx); err != nil {
		return fmt.Errorf("the loops do not come to rest: %w", err)
	}
	return nil
}

// state is what the store holds at one moment.
type state struct {
	records  map[base.UUID]*record
	queue    []store.QueueRow
	counters map[string]int64
	marks    []string // by which waitpoints, links and suspended executions are found
}

// read takes everything out of the store that belongs to these executions, and the new events.
func (s *subject) read(ids []base.UUID, classes []int32) (*state, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	want := store.Want{Executions: ids, Inputs: true, Results: true, Counters: []string{"lane:a", "lane:b", "lane:" + fairLane}}
	for _, id := range ids {
		want.History = append(want.History, store.HistoryRef{ID: id, All: true})
	}
	for _, class := range classes {
		want.Pick = append(want.Pick, store.Pick{Class: class, Floor: -1 << 63, Limit: 1000})
	}
	wantWaits(&want, ids)
	loaded, err := s.store.Read(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", s.name, err)
	}
	got := &state{records: map[base.UUID]*record{}, queue: loaded.Picked, counters: loaded.Counters, marks: marksIn(loaded)}
	for _, id := range ids {
		if x := loaded.Executions[id]; x != nil {
			d, err := waitsIn(loaded, id)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			got.records[id] = &record{x: x, d: d}
		}
	}
	for _, entry := range loaded.History {
		if r := got.records[entry.ExecutionID.UUID]; r != nil {
			r.history = append(r.history, entry)
		}
	}
	return got, s.follow(ctx)
}

// follow reads the events that were not read before.
func (s *subject) follow(ctx context.Context) error {
	for {
		page, err := s.e.ReadEvents(ctx, reader, engine.EventsRequest{After: s.cursor, Limit: 1000})
		if err != nil {
			return fmt.Errorf("%s: read events: %w", s.name, err)
		}
		s.cursor = page.Next
		for _, logged := range page.Events {
			switch {
			case !logged.ExecutionID.IsZero():
				s.told[logged.ExecutionID.UUID] = append(s.told[logged.ExecutionID.UUID], logged.Event)
			case logged.Kind == "lane.changed":
				s.lanesOf = append(s.lanesOf, logged.Event)
			}
		}
		if page.AtEnd {
			return nil
		}
	}
}

// steps lists the steps of the present run.
func (s *subject) steps(id base.ID) ([]core.StepRecord, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	page, err := s.e.Steps(ctx, reader, id.Given(), engine.StepsRequest{})
	return page.Records, err
}

// classesOf collects the numbers of the classes seen.
func (got *state) classesOf(known []int32) []int32 {
	for _, r := range got.records {
		if !slices.Contains(known, r.x.Class.ID) {
			known = append(known, r.x.Class.ID)
		}
	}
	return known
}
