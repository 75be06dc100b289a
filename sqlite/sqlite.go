// Package sqlite runs the engine in this process on a SQLite file:
//
//	client, err := sqlite.Open(ctx, "app.db")
//
// One process has the file open at a time. Other processes use a server, see flowfabric.Connect.
package sqlite

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Config sets up the engine. The zero value is useful.
type Config = flowfabric.EngineConfig

// Open opens the store in a file, which is made if it does not exist, and runs the engine on it until Close. The schema is brought up
// to date.
//
// Codes: invalid_argument, store_locked when another process has the file open, store_unavailable, and others of the class invalid
// when the file is too old, too new or not durable. Of keys: invalid_kid, invalid_secret_hex, seed_conflict when the store has
// another signing key, master_key_required and master_key_mismatch when its secrets are sealed under another master key.
func Open(ctx context.Context, path string, cfg ...Config) (*flowfabric.Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	return inprocess.Open(ctx, inprocess.Store{
		Open: func(ctx context.Context, o inprocess.StoreOptions) (store.Store, error) {
			c := sqlite.Config{UnsafeDurability: o.UnsafeDurability, Migrate: o.Migrate.String(), Logger: o.Logger, BusyTimeout: o.Timeout}
			if o.Clock != nil {
				c.Clock = o.Clock.Now
			}
			return sqlite.Open(ctx, path, c)
		},
		Checks: inprocess.FileChecks(path),
	}, options)
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig = api.MigrateConfig

// Schema is how far the tables of a store are.
type Schema = api.Schema

// SchemaOf returns how far the tables of a file are. It changes nothing. A store that is newer than this module is refused, with what
// is known of it.
//
// Codes: those of Open.
func SchemaOf(ctx context.Context, path string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	return inprocess.Schema(sqlite.Plan(ctx, path, sqlite.Config{UnsafeDurability: options.UnsafeDurability}))
}

// Migrate brings the tables of a file up to date without opening it, under a lock. A step is one transaction. A store that is newer
// than this module is refused.
//
// Codes: those of Open; invalid_argument also for a To that lies behind the store or does not exist.
func Migrate(ctx context.Context, path string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	c := sqlite.Config{UnsafeDurability: options.UnsafeDurability}
	return inprocess.Schema(sqlite.Migrate(ctx, path, c, options.To, inprocess.OnStep(options)))
}

// KnownSchema is how far the tables are that this module knows.
func KnownSchema() int { return sqlite.KnownSchema() }
