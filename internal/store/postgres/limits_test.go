package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const limitsInForce = "select current_setting('statement_timeout') || ' ' || current_setting('idle_in_transaction_session_timeout')"

// limited opens stores that reach their database in each way that there is.
func limited(t *testing.T, cfg Config, run func(t *testing.T, s *Store, url string)) {
	through := cluster.Pooler(t)
	for name, open := range map[string]func(url string, cfg Config) (string, Config){
		"own":    func(url string, cfg Config) (string, Config) { return url, cfg },
		"pooled": func(url string, cfg Config) (string, Config) { cfg.DirectURL = url; return through(url), cfg },
		"pooled alone": func(url string, cfg Config) (string, Config) {
			cfg.Pooled = true
			return through(url), cfg
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.Database(t)
			address, cfg := open(url, cfg)
			run(t, openAt(t, address, cfg), url)
		})
	}
}

func TestReliability12_every_transaction_has_limits_on_the_server(t *testing.T) {
	t.Parallel()
	limited(t, Config{PoolSize: 1, Timeout: 20 * time.Second, IdleLimit: 7 * time.Second}, func(t *testing.T, s *Store, _ string) {
		s.texts["limits_in_force"] = limitsInForce
		begun, _, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{mint(1)}})
		if err != nil {
			t.Fatal(err)
		}
		defer begun.Rollback(t.Context())
		var got string
		tr := s.trip(begun.(*tx).conn)
		tr.add("limits_in_force", func(r row) error { got = r.text(0); return nil })
		if err := tr.run(t.Context()); err != nil || got != "20s 7s" {
			t.Errorf("limits %q, %v", got, err)
		}
		// A migration may take longer than a call, and holds nothing either while its process is frozen.
		err = s.apart(t.Context(), func(conn *pgx.Conn) error {
			return s.inOne(t.Context(), conn, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), limitsInForce).Scan(&got) })
		})
		if err != nil || got != "1d 7s" {
			t.Errorf("limits of what runs apart %q, %v", got, err)
		}
	})
}

func TestReliability12_limits_of_one_user_of_a_pooler_are_not_those_of_the_next(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	through := cluster.Pooler(t)
	s := openAt(t, through(url), Config{PoolSize: 1, Pooled: true, Timeout: 20 * time.Second, IdleLimit: 7 * time.Second})
	if _, err := s.Dictionary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Maintain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(through(url))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	other, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(t.Context()) }()
	var got string
	if err := other.QueryRow(t.Context(), limitsInForce).Scan(&got); err != nil || got != "0 0" {
		t.Errorf("limits of another user %q, %v", got, err)
	}
}

func TestReliability3_57014_a_statement_that_takes_too_long_is_refused(t *testing.T) {
	t.Parallel()
	s, _ := openNew(t, Config{PoolSize: 1})
	s.texts["slow"] = "select pg_sleep(60)"
	s.cfg.Timeout = 50 * time.Millisecond
	s.pool.Reset() // what is connected from now on has that limit
	conn, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tr := s.trip(conn)
	tr.add("slow", nil)
	err = tr.run(t.Context())
	if !isCode(err, "57014") || store.FaultOf(fault(err)) != store.Unavailable || store.FaultOf(commitFault(err, false)) != store.Unavailable {
		t.Fatalf("a statement beyond its time: %v", err)
	}
}

// idleOut begins a transaction that locks an execution, and returns when the server has ended it. Only this transaction has the short limit: others
// would be ended too when the test itself stands still for a moment.
func idleOut(t *testing.T, s *Store, url string) (store.Tx, *core.Execution) {
	t.Helper()
	s.cfg.IdleLimit = DefaultIdle
	x := newCycler(t, s, "default").submit(t, 1)[0]
	begun, got, err := s.Begin(t.Context(), store.Want{Executions: []base.UUID{x.ID.UUID}})
	if err != nil {
		t.Fatal(err)
	}
	s.texts["idle_soon"] = "select set_config('idle_in_transaction_session_timeout', '100', true)"
	tr := s.trip(begun.(*tx).conn)
	tr.add("idle_soon", func(row) error { return nil })
	if err := tr.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.cfg.IdleLimit = 100 * time.Millisecond // by which the process knows that it stood still
	waitUntil(t, url, "select not exists (select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%')")
	return begun, got.Executions[x.ID.UUID]
}

func TestReliability3_25P03_a_process_that_was_frozen_in_a_transaction_has_written_nothing_and_knows_it(t *testing.T) {
	t.Parallel()
	limited(t, Config{PoolSize: 2}, func(t *testing.T, s *Store, url string) {
		tx, _ := idleOut(t, s, url)
		if _, err := tx.Load(t.Context(), store.Want{Counters: []string{"a"}}); store.FaultOf(err) != store.Retry {
			t.Errorf("a load: %v", err)
		}
		tx, x := idleOut(t, s, url)
		version := x.Version
		if err := tx.Commit(t.Context(), &store.Changes{Update: []*core.Execution{x}}); store.FaultOf(err) != store.Retry {
			t.Errorf("a commit: %v", err)
		}
		s.cfg.IdleLimit = DefaultIdle
		want := store.Want{Executions: []base.UUID{x.ID.UUID}}
		tx, got, err := s.Begin(t.Context(), want)
		if err != nil {
			t.Fatalf("its lock is held still: %v", err)
		}
		if got.Executions[x.ID.UUID].Version != version {
			t.Error("it has written all the same")
		}
		tx.Rollback(t.Context())
	})
}
