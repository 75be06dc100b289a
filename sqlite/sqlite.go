// Package sqlite runs the engine in this process on a SQLite file:
//
//	client, err := sqlite.Open(ctx, "app.db", sqlite.Config{})
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
)

// Config sets up the engine. The zero value is useful.
type Config = flowfabric.EngineConfig

// Open opens the store in a file, which is made if it does not exist, and runs the engine on it until Close. The schema is brought up
// to date.
//
// Codes: invalid_argument, store_locked when another process has the file open, store_unavailable, and others of the class invalid
// when the file is too old, too new or not durable. Of keys: invalid_kid, invalid_secret_hex, seed_conflict when the store has
// another signing key, master_key_required and master_key_mismatch when its secrets are sealed under another master key.
func Open(ctx context.Context, path string, cfg Config) (*flowfabric.Client, error) {
	return inprocess.Open(ctx, inprocess.Store{
		Open: func(ctx context.Context, o inprocess.StoreOptions) (store.Store, error) {
			c := sqlite.Config{UnsafeDurability: o.UnsafeDurability, Migrate: o.Migrate.String(), Logger: o.Logger}
			if o.Clock != nil {
				c.Clock = o.Clock.Now
			}
			return sqlite.Open(ctx, path, c)
		},
		Checks: inprocess.FileChecks(path),
	}, cfg)
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig = api.MigrateConfig

// Schema is how far the tables of a store are.
type Schema = api.Schema

// SchemaOf returns how far the tables of a file are. It changes nothing. A store that is newer than this module is refused, with what
// is known of it.
//
// Codes: those of Open.
func SchemaOf(ctx context.Context, path string, cfg MigrateConfig) (Schema, error) {
	return inprocess.Schema(sqlite.Plan(ctx, path, sqlite.Config{UnsafeDurability: cfg.UnsafeDurability}))
}

// Migrate brings the tables of a file up to date without opening it, under a lock. A step is one transaction. A store that is newer
// than this module is refused.
//
// Codes: those of Open; invalid_argument also for a To that lies behind the store or does not exist.
func Migrate(ctx context.Context, path string, cfg MigrateConfig) (Schema, error) {
	c := sqlite.Config{UnsafeDurability: cfg.UnsafeDurability}
	return inprocess.Schema(sqlite.Migrate(ctx, path, c, cfg.To, inprocess.OnStep(cfg)))
}

// KnownSchema is how far the tables are that this module knows.
func KnownSchema() int { return sqlite.KnownSchema() }
