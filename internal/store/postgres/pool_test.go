package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// poolOf makes a pool that belongs to a user.
func poolOf(t *testing.T, url string, size int32, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = size
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// sessionSettings are what a store sets for its transactions.
const sessionSettings = `select current_setting('lock_timeout') || ' ' || current_setting('statement_timeout') || ' ' || current_setting('search_path')
	|| ' ' || current_setting('enable_seqscan') || ' ' || (select count(*) from pg_prepared_statements where name not like 'stmtcache_%')`

func TestU137_a_pool_of_the_user_s_is_used_and_stays_as_it_is(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	var before, after atomic.Int64
	pool := poolOf(t, url, LeastPool, func(c *pgxpool.Config) {
		user := c.ConnConfig.User
		c.ConnConfig.User = "replaced_by_the_hook" // as with a token that is made for each connection
		c.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
			before.Add(1)
			config.User = user
			return nil
		}
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			after.Add(1)
			_, err := conn.Exec(ctx, "set search_path = app, public")
			return err
		}
	})
	s := openAt(t, "", Config{Pool: pool})
	if s.info.Pool != LeastPool || before.Load() < 2 || after.Load() < 2 {
		t.Errorf("the pool has %d; %d and %d calls of the hooks", s.info.Pool, before.Load(), after.Load())
	}
	hints := make(chan store.Hint, 10)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(stop)
	all.Go(func() { _ = s.Listen(ctx, func(h store.Hint) { hints <- h }) })
	waitUntil(t, url, listening)
	other := openAt(t, url, Config{PoolSize: 1})
	if err := other.Notify(t.Context(), store.Hint{Log: true}); err != nil {
		t.Fatal(err)
	}
	if h := <-hints; !h.Log {
		t.Errorf("heard %+v", h)
	}
	c := newCycler(t, s, "default")
	for range 3 {
		c.cycle(t, 10)
	}
	if found, err := s.Find(t.Context(), store.Query{Limit: 5}); err != nil {
		t.Errorf("Find: %v, %v", found, err)
	}
	if err := s.Maintain(t.Context(), 0); err != nil {
		t.Errorf("Maintain: %v", err)
	}
	if condition := examined(t, s); condition.Connections.Pooled || condition.Connections.Pool != LeastPool {
		t.Errorf("doctor sees %+v", condition.Connections)
	}
	for _, conn := range pool.AcquireAllIdle(t.Context()) {
		if got := list(t, conn, sessionSettings); got[0] != "0 0 app, public on 0" {
			t.Errorf("a session of the user's has %v", got)
		}
		conn.Release()
	}
	CloseStore(t, s)
	if _, err := s.Now(t.Context()); store.FaultOf(err) != store.Unavailable {
		t.Errorf("a closed store: %v", err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("the pool after the store was closed: %v", err)
	}
}

func TestU137_a_submit_joins_a_transaction_of_the_same_pool(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	pool := poolOf(t, url, LeastPool, nil)
	s := openAt(t, "", Config{Pool: pool})
	execute(t, connectAt(t, url), "create table public.orders (id int primary key)")
	for i, end := range []string{"rollback", "commit"} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		execute(t, tx, "insert into public.orders values ($1)", i)
		key, row := submission(1, "order")
		if found, err := s.SubmitTx(t.Context(), tx, key, row); err != nil || found != nil {
			t.Fatalf("SubmitTx: %v, %v", found, err)
		}
		newCycler(t, s, "default").cycle(t, 2) // beside it
		if end == "rollback" {
			err = tx.Rollback(t.Context())
		} else {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := s.Read(t.Context(), store.Want{Inbox: 10})
		if err != nil || len(loaded.Inbox) != i || len(list(t, connectAt(t, url), "select id::text from public.orders")) != i {
			t.Errorf("after %s there are %d submissions, %v", end, len(loaded.Inbox), err)
		}
	}
}

func TestU137_a_pool_that_a_store_cannot_use_is_refused(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	refused(t, "", Config{Pool: poolOf(t, url, LeastPool-1, nil)}, "the pool has at most 3 connections, and the store needs 4")
	refused(t, "", Config{Pool: poolOf(t, url, LeastPool, nil), PoolSize: 8}, "PoolSize is set")
	for name, value := range map[string]string{"default_transaction_isolation": "serializable", "default_transaction_read_only": "on"} {
		var sessions atomic.Int64
		pool := poolOf(t, url, LeastPool, func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				if sessions.Add(1) <= 2 { // those apart, which would fail otherwise where they migrate
					return nil
				}
				_, err := conn.Exec(ctx, "select set_config($1, $2, false)", name, value)
				return err
			}
		})
		refused(t, "", Config{Pool: pool}, name+" "+value)
	}
}

func TestU137_a_pool_that_is_closed_meanwhile_makes_calls_fail_clearly(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	pool := poolOf(t, url, LeastPool, nil)
	s := openAt(t, "", Config{Pool: pool})
	c := newCycler(t, s, "default")
	c.cycle(t, 1)
	tx, got, err := s.Begin(t.Context(), store.Want{Counters: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close() // waits for the transaction
	}()
	if err := tx.Commit(t.Context(), &store.Changes{Counters: map[string]int64{"a": 1}}); err != nil {
		t.Errorf("a commit that had begun (%v): %v", got.Now, err)
	}
	<-closed
	for name, call := range map[string]func() error{
		"Begin":  func() error { _, _, err := s.Begin(t.Context(), store.Want{Counters: []string{"a"}}); return err },
		"Read":   func() error { _, err := s.Read(t.Context(), store.Want{Inbox: 1}); return err },
		"Poll":   func() error { _, err := s.Poll(t.Context(), store.PollAsk{}); return err },
		"Now":    func() error { _, err := s.Now(t.Context()); return err },
		"Notify": func() error { return s.Notify(t.Context(), store.Hint{Log: true}) },
	} {
		if err := call(); store.FaultOf(err) != store.Unavailable || base.CodeOf(err) == base.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
