package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
)

// wire stands between a store and the server and counts round trips: how often the store says something after it was answered.
type wire struct {
	trips atomic.Int64
}

// between opens a way to the database that is counted.
func (w *wire) between(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(directory, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	server := filepath.Join(config.Host, ".s.PGSQL.5432")
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(client, server)
		}
	}()
	return pgtest.URL(directory, config.User, config.Database)
}

func (w *wire) carry(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", address)
	if err != nil {
		return
	}
	var answered atomic.Bool
	answered.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(client, notify{server, func() { answered.Store(true) }})
		done <- errors.Join(err, client.Close())
	}()
	_, _ = io.Copy(server, notify{client, func() {
		if answered.Swap(false) {
			w.trips.Add(1)
		}
	}})
	_ = server.Close()
	<-done
}

// notify tells of everything that is read.
type notify struct {
	io.Reader
	heard func()
}

func (n notify) Read(p []byte) (int, error) {
	count, err := n.Reader.Read(p)
	if count > 0 {
		n.heard()
	}
	return count, err
}

// during counts the trips of a call.
func (w *wire) during(t *testing.T, what string, want int64, call func()) {
	t.Helper()
	before := w.trips.Load()
	call()
	if got := w.trips.Load() - before; got != want {
		t.Errorf("%s took %d round trips, want %d", what, got, want)
	}
}

func TestReliability12_a_connection_whose_context_ended_during_a_trip_is_not_used_again(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{PoolSize: 1})
	conn, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := s.trip(conn)
	tr.add("clock", func(row) error { cancel(); return nil }) // the answers are on their way
	_ = tr.run(ctx)                                           // it may have come in time or not
	if !conn.Conn().IsClosed() {
		t.Error("the connection is kept")
	}
}

func TestPerformance5_loading_is_one_round_trip_and_committing_another(t *testing.T) {
	t.Parallel()
	var w wire
	s := openAt(t, w.between(t, cluster.Database(t)), Config{PoolSize: 1})
	c := newCycler(t, s, "default")
	c.cycle(t, 1) // makes and warms the connection
	var list []*core.Execution
	w.during(t, "a submit", 1, func() { list = c.submit(t, 3) })
	w.during(t, "a claim", 2, func() { c.claim(t, 3) })
	w.during(t, "a completion", 2, func() { c.complete(t, []base.UUID{list[0].ID.UUID, list[1].ID.UUID}) })
	w.during(t, "a renewal that is rolled back", 2, func() {
		tx, _, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{list[2].ID.UUID}, ShareLanes: []int32{c.lane.ID}, Counters: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		tx.Rollback(t.Context())
	})
	w.during(t, "a read", 1, func() {
		if _, err := s.Read(t.Context(), store.Want{Executions: []base.UUID{list[2].ID.UUID}, Results: true}); err != nil {
			t.Fatal(err)
		}
	})
	w.during(t, "a poll", 1, func() {
		if _, err := s.Poll(t.Context(), store.PollAsk{Queues: []store.Before{{Class: 1}}}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPerformance5_a_statement_is_prepared_in_the_trip_that_needs_it_first(t *testing.T) {
	t.Parallel()
	var w wire
	s := openAt(t, w.between(t, cluster.Database(t)), Config{PoolSize: 1})
	for name, text := range map[string]string{"one": "select 1", "two": "select 2", "broken": "select 1 / 0"} {
		s.texts[name], s.keeps[name] = text, true
	}
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	ask := func(names ...string) (answers int, err error) {
		trip := s.trip(conn)
		for _, name := range names {
			trip.add(name, func(row) error { answers++; return nil })
		}
		w.during(t, "a trip that prepares", 1, func() { err = trip.run(t.Context()) })
		return answers, err
	}
	if _, err := ask("broken", "one"); err == nil {
		t.Fatal("a broken statement passed")
	}
	for range 2 { // prepared in the first, although the trip before was to prepare it; known in the second
		if answers, err := ask("one", "two", "one"); err != nil || answers != 3 {
			t.Fatalf("%d answers, %v", answers, err)
		}
	}
	var kept int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_prepared_statements where name = any('{one, two, broken}')").Scan(&kept); err != nil || kept != 3 {
		t.Errorf("%d statements are kept, %v", kept, err)
	}
	if len(s.texts) < 2*kept || len(s.trip(conn).prepared) >= len(s.texts)/2 {
		t.Errorf("%d of %d statements are prepared before anybody needs them", len(s.trip(conn).prepared), len(s.texts))
	}
}
