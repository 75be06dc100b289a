// Package postgres runs the engine in this process on a Postgres database, which any number of processes may share:
//
//	client, err := postgres.Open(ctx, "postgres://app@db/app")
package postgres

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Config sets up the engine and its connections. The zero value is useful.
type Config struct {
	flowfabric.EngineConfig
	// Schema is the schema of the database in which the tables are, created if it does not exist: lower-case letters, digits and _. Two
	// schemas are two stores. Nothing depends on search_path. Default DefaultSchema.
	Schema    string
	DirectURL string        // for wake-ups and migrations when the address of the store goes through a pooler
	PoolSize  int           // connections; default 8
	Timeout   time.Duration // bound of every call; default 30 s
}

// DefaultSchema is the schema of the tables unless Config names another.
const DefaultSchema = postgres.DefaultSchema

// Open opens the store in a database and runs the engine on it until Close. The schema is brought up to date.
//
// Codes: invalid_argument, store_unavailable, and others of the class invalid when the database is too old, too new or not durable.
// Of keys: invalid_kid, invalid_secret_hex, seed_conflict when the store has another signing key, master_key_required and
// master_key_mismatch when its secrets are sealed under another master key.
func Open(ctx context.Context, url string, cfg ...Config) (*flowfabric.Client, error) {
	return open(ctx, url, nil, cfg)
}

// OpenPool is Open on connections of a pool of the program's own, with its dialer, its credentials and its hooks. The pool stays the program's: Close
// of the client does not close it, and its sessions keep their settings, because the engine sets what it needs for each of its transactions. The
// engine hears of the work of other processes on a connection beside the pool, which is made with the configuration and the hooks of the pool.
//
// The pool needs at least 4 connections, and more if the program holds some of them for long: a call that finds none free waits for one
// up to Timeout and then fails with store_unavailable, as calls do after the pool was closed. Close the client before the pool. No statements are
// prepared on the sessions of the pool, so that Open with an address is faster.
//
// Codes: those of Open; invalid_argument for a pool that is too small, whose sessions begin transactions with another isolation than read committed or
// read-only, and for a PoolSize.
func OpenPool(ctx context.Context, pool *pgxpool.Pool, cfg ...Config) (*flowfabric.Client, error) {
	if pool == nil {
		return nil, api.AsError(base.Invalid("pool", "the pool is nil"))
	}
	return open(ctx, "", pool, cfg)
}

func open(ctx context.Context, url string, pool *pgxpool.Pool, cfg []Config) (*flowfabric.Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(options.PoolSize, postgres.DefaultPool)
	if pool != nil {
		size = int(pool.Config().MaxConns)
	}
	return inprocess.Open(ctx, inprocess.Store{
		Open: func(ctx context.Context, o inprocess.StoreOptions) (store.Store, error) {
			c := postgres.Config{
				Schema: options.Schema, Program: o.Program, Pool: pool,
				DirectURL: options.DirectURL, PoolSize: options.PoolSize, Timeout: cmp.Or(options.Timeout, o.Timeout),
				Migrate: o.Migrate.String(), UnsafeDurability: o.UnsafeDurability, Logger: o.Logger, Clock: o.Clock,
			}
			if o.Clock != nil {
				c.Now = func() base.Time { return base.TimeOf(o.Clock.Now()) }
			}
			return postgres.Open(ctx, url, c)
		},
		DirectURL: options.DirectURL,
		Settings: []api.Setting{
			inprocess.SettingOf("FF_STORE_SCHEMA", options.Schema != "", cmp.Or(options.Schema, postgres.DefaultSchema)),
			inprocess.SettingOf("FF_STORE_POOL", options.PoolSize != 0 || pool != nil, strconv.Itoa(size)),
			inprocess.SettingOf("FF_STORE_TIMEOUT", options.Timeout != 0, cmp.Or(options.Timeout, postgres.DefaultTimeout).String()),
		},
	}, options.EngineConfig)
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig struct {
	api.MigrateConfig
	Schema    string // as in Config
	DirectURL string // as in Config
	// Force applies steps and moves tables although programs that need them as they are have the store open. These programs fail until
	// they are replaced.
	Force bool
}

// Schema is how far the tables of a store are.
type Schema = api.Schema

// SchemaOf returns how far the tables of a database are. It changes nothing. A store that is newer than this module is refused, with
// what is known of it.
//
// Codes: those of Open.
func SchemaOf(ctx context.Context, url string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	return inprocess.Schema(postgres.Plan(ctx, url, options.store()))
}

// Migrate brings the tables of a database up to date without opening it, under a lock: of many processes one does each step. A step is
// one transaction. Tables that an earlier version made outside of the schema are moved there. A step that takes something away is refused
// while programs that need it have the store open. A store that is newer than this module is refused, unless it says that this module may
// use it.
//
// Codes: those of Open; invalid_argument also for a To that lies behind the store or does not exist.
func Migrate(ctx context.Context, url string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	return inprocess.Schema(postgres.Migrate(ctx, url, options.store(),
		postgres.Forward{To: options.To, Force: options.Force, OnStep: inprocess.OnStep(options.MigrateConfig)}))
}

func (cfg MigrateConfig) store() postgres.Config {
	return postgres.Config{Schema: cfg.Schema, UnsafeDurability: cfg.UnsafeDurability, DirectURL: cfg.DirectURL}
}

// KnownSchema is how far the tables are that this module knows.
func KnownSchema() int { return postgres.KnownSchema() }
