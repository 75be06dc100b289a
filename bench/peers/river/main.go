// Command river measures River (riverqueue.com) on a Postgres database and prints one JSON line a figure. It is a module of its own,
// so that users of FlowFabric do not download a peer. Tables live in a schema of their own, which is dropped.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// options are the flags of the command.
type options struct {
	url                                           string
	jobs, singles, callers, arrivals, connections int
}

// setup is a way to configure River.
type setup struct {
	name     string
	workers  int
	cooldown time.Duration // 0: River's default, 100 ms
}

// setups are River as it comes, with more workers, and as fast as its options go. Everything else is left at its default.
func setups() []setup {
	return []setup{
		{name: "default", workers: 100},
		{name: "workers1000", workers: 1000},
		{name: "tuned", workers: 1000, cooldown: 2 * time.Millisecond},
	}
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "address of a database in which a schema may be made")
	flag.IntVar(&o.jobs, "jobs", 100_000, "jobs of a backlog; a tenth with the default of 100 workers, which is ten times slower")
	flag.IntVar(&o.singles, "singles", 20_000, "single inserts")
	flag.IntVar(&o.callers, "callers", 64, "callers of single inserts")
	flag.IntVar(&o.arrivals, "arrivals", 1_000, "jobs whose latency is measured, 50 a second")
	flag.IntVar(&o.connections, "connections", 20, "connections of the pool")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := bulkAndSingle(ctx, o); err != nil {
		return err
	}
	for _, s := range setups() {
		if err := drain(ctx, o, s); err != nil {
			return fmt.Errorf("drain %s: %w", s.name, err)
		}
	}
	for _, s := range setups() {
		if s.name == "workers1000" {
			continue // latency depends on the cooldown, not on the number of workers
		}
		if err := latency(ctx, o, s); err != nil {
			return fmt.Errorf("latency %s: %w", s.name, err)
		}
	}
	return nil
}

// emit prints a figure.
func emit(name string, value float64, unit string) {
	line, err := json.Marshal(map[string]any{"name": name, "value": value, "unit": unit})
	if err == nil {
		fmt.Println(string(line))
	}
}

// fail prints a check that did not hold.
func fail(format string, args ...any) {
	line, err := json.Marshal(map[string]any{"failure": fmt.Sprintf(format, args...)})
	if err == nil {
		fmt.Println(string(line))
	}
}

// database is a fresh schema with River's tables.
type database struct {
	pool   *pgxpool.Pool
	schema string
}

func open(ctx context.Context, o options) (*database, error) {
	config, err := pgxpool.ParseConfig(o.url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(o.connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	db := &database{pool: pool, schema: fmt.Sprintf("river_%d", time.Now().UnixNano())}
	if _, err := pool.Exec(ctx, "create schema "+db.schema); err != nil {
		pool.Close()
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: db.schema})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		db.close(ctx)
		return nil, err
	}
	return db, nil
}

func (db *database) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, _ = db.pool.Exec(ctx, "drop schema if exists "+db.schema+" cascade")
	db.pool.Close()
}

// client makes a client that works if it has workers.
func (db *database) client(s setup, workers *river.Workers) (*river.Client[pgx.Tx], error) {
	config := &river.Config{Schema: db.schema, FetchCooldown: s.cooldown, Logger: quiet()}
	if workers != nil {
		config.Workers = workers
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.workers}}
	}
	return river.NewClient(riverpgxv5.New(db.pool), config)
}
