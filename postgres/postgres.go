// Package postgres runs the engine in this process on a Postgres database, which any number of processes may share:
//
//	client, err := postgres.Open(ctx, "postgres://app@db/app")
package postgres

import (
	"cmp"
	"context"
	"strconv"
	"time"

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
	DirectURL string        // for wake-ups and migrations when the address of the store goes through a pooler
	PoolSize  int           // connections; default 8
	Timeout   time.Duration // bound of every call; default 30 s
}

// Open opens the store in a database and runs the engine on it until Close. The schema is brought up to date.
//
// Codes: invalid_argument, store_unavailable, and others of the class invalid when the database is too old, too new or not durable.
// Of keys: invalid_kid, invalid_secret_hex, seed_conflict when the store has another signing key, master_key_required and
// master_key_mismatch when its secrets are sealed under another master key.
func Open(ctx context.Context, url string, cfg ...Config) (*flowfabric.Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	return inprocess.Open(ctx, inprocess.Store{
		Open: func(ctx context.Context, o inprocess.StoreOptions) (store.Store, error) {
			c := postgres.Config{
				DirectURL: options.DirectURL, PoolSize: options.PoolSize, Timeout: options.Timeout,
				Migrate: o.Migrate.String(), UnsafeDurability: o.UnsafeDurability, Logger: o.Logger, Clock: o.Clock,
			}
			if o.Clock != nil {
				c.Now = func() base.Time { return base.TimeOf(o.Clock.Now()) }
			}
			return postgres.Open(ctx, url, c)
		},
		DirectURL: options.DirectURL,
		Settings: []api.Setting{
			inprocess.SettingOf("FF_STORE_POOL", options.PoolSize != 0, strconv.Itoa(cmp.Or(options.PoolSize, postgres.DefaultPool))),
			inprocess.SettingOf("FF_STORE_TIMEOUT", options.Timeout != 0, cmp.Or(options.Timeout, postgres.DefaultTimeout).String()),
		},
	}, options.EngineConfig)
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig struct {
	api.MigrateConfig
	DirectURL string // as in Config
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
// one transaction. A store that is newer than this module is refused.
//
// Codes: those of Open; invalid_argument also for a To that lies behind the store or does not exist.
func Migrate(ctx context.Context, url string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	return inprocess.Schema(postgres.Migrate(ctx, url, options.store(), options.To, inprocess.Told(options.MigrateConfig)))
}

func (cfg MigrateConfig) store() postgres.Config {
	return postgres.Config{UnsafeDurability: cfg.UnsafeDurability, DirectURL: cfg.DirectURL}
}

// KnownSchema is how far the tables are that this module knows.
func KnownSchema() int { return postgres.KnownSchema() }
