// Package embedded runs the engine in this process on the store that an address names, for programs that leave the choice to their
// users:
//
//	client, err := embedded.Open(ctx, "sqlite:app.db")
//	client, err := embedded.Open(ctx, "postgres://app@db/app")
//
// A program that knows its store imports the package sqlite or postgres instead, and carries no other.
package embedded

import (
	"context"
	"database/sql"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	postgresstore "github.com/flowfabric/flowfabric/internal/store/postgres"
	sqlitestore "github.com/flowfabric/flowfabric/internal/store/sqlite"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/postgres"
	"github.com/flowfabric/flowfabric/sqlite"
)

// Config sets up the engine. What it says of connections means nothing to a file. The zero value is useful.
type Config = postgres.Config

// Open opens the store that the address names and runs the engine on it until Close: "sqlite:PATH", as sqlite.Open does, or a
// "postgres://…" URL, as postgres.Open does.
//
// Codes: those of sqlite.Open and postgres.Open, and invalid_argument for an address of another kind.
func Open(ctx context.Context, address string, cfg ...Config) (*flowfabric.Client, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return nil, err
	}
	switch path, kind := storeOf(address); kind {
	case kindSQLite:
		return sqlite.Open(ctx, path, options.EngineConfig)
	case kindPostgres:
		return postgres.Open(ctx, address, options)
	default:
		return nil, noStore(address)
	}
}

// SubmitSQLTx is sqlite.SubmitSQLTx or postgres.SubmitSQLTx, as the store of the client or of its server is.
func SubmitSQLTx(ctx context.Context, c *flowfabric.Client, tx *sql.Tx, s flowfabric.Submission) (*flowfabric.Execution, error) {
	return inprocess.SubmitTx(ctx, c, tx, s, externalTxs)
}

// CompleteSQLTx is sqlite.CompleteSQLTx or postgres.CompleteSQLTx, as the store of the task is.
func CompleteSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, result any) error {
	return t.CompleteIn(ctx, inprocess.LeaveTx(tx, externalTxs), result)
}

// StepSQLTx is sqlite.StepSQLTx or postgres.StepSQLTx, as the store of the task is.
func StepSQLTx[T any](ctx context.Context, tx *sql.Tx, t *flowfabric.Task, name string, do func(ctx context.Context) (T, error)) (T, error) {
	return flowfabric.StepIn(ctx, t, inprocess.LeaveTx(tx, externalTxs), name, do)
}

// SuspendSQLTx is sqlite.SuspendSQLTx or postgres.SuspendSQLTx, as the store of the task is.
func SuspendSQLTx(ctx context.Context, tx *sql.Tx, t *flowfabric.Task, s flowfabric.Suspension) (*flowfabric.Resume, error) {
	return t.SuspendIn(ctx, inprocess.LeaveTx(tx, externalTxs), s)
}

var externalTxs = inprocess.ExternalTxs{kindSQLite: sqlitestore.NewExternalTx, kindPostgres: postgresstore.NewExternalTx}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig = postgres.MigrateConfig

// Schema is how far the tables of a store are.
type Schema = api.Schema

// SchemaOf returns how far the tables of a store are. Codes: those of sqlite.SchemaOf and postgres.SchemaOf.
func SchemaOf(ctx context.Context, address string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	switch path, kind := storeOf(address); kind {
	case kindSQLite:
		return sqlite.SchemaOf(ctx, path, options.MigrateConfig)
	case kindPostgres:
		return postgres.SchemaOf(ctx, address, options)
	default:
		return Schema{}, noStore(address)
	}
}

// Migrate brings the tables of a store up to date without opening it. Codes: those of sqlite.Migrate and postgres.Migrate.
func Migrate(ctx context.Context, address string, cfg ...MigrateConfig) (Schema, error) {
	options, err := transport.Single(cfg)
	if err != nil {
		return Schema{}, err
	}
	switch path, kind := storeOf(address); kind {
	case kindSQLite:
		return sqlite.Migrate(ctx, path, options.MigrateConfig)
	case kindPostgres:
		return postgres.Migrate(ctx, address, options)
	default:
		return Schema{}, noStore(address)
	}
}

// KnownSchemas returns by kind of store how far the tables are that this module knows.
func KnownSchemas() map[string]int {
	return map[string]int{kindSQLite: sqlite.KnownSchema(), kindPostgres: postgres.KnownSchema()}
}

// The kinds of stores.
const (
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
)

// storeOf is the kind of store that an address names, "" for none, and the path of a file.
func storeOf(address string) (path, kind string) {
	scheme, path, _ := strings.Cut(address, ":")
	switch scheme {
	case kindSQLite:
		return path, kindSQLite
	case "postgres", "postgresql":
		return "", kindPostgres
	default:
		return "", ""
	}
}

// noStore refuses an address.
func noStore(address string) error {
	scheme, _, _ := strings.Cut(address, ":")
	return api.AsError(base.Invalid("store", "no store is called %q", scheme).WithHint("use sqlite:PATH or postgres://…"))
}
