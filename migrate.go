package flowfabric

import (
	"context"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// Schema is how far the tables of a store are.
type Schema struct {
	Kind  string // sqlite, postgres
	Level int    // of the store; 0: it is empty
	Known int    // of this module
	Steps []SchemaStep
}

// SchemaStep is one step of the tables.
type SchemaStep struct {
	Number  int
	Name    string
	Applied bool
	Took    time.Duration // of one that was just applied
}

// MigrateConfig says how to migrate. The zero value brings a store up to date.
type MigrateConfig struct {
	To               int                   // the last step to apply; 0: all there are
	Told             func(step SchemaStep) // hears of each step when it is done
	DirectURL        string                // as in OpenConfig
	UnsafeDurability bool                  // as in OpenConfig
}

// SchemaOf tells how far the tables of a store are, which need not be open. It changes nothing. A store that is newer than this
// module is refused, with what is known of it.
//
// Codes: those of Open.
func SchemaOf(ctx context.Context, address string, cfg ...MigrateConfig) (Schema, error) {
	options, err := single(cfg)
	if err != nil {
		return Schema{}, err
	}
	return options.on(address, func(path string, c sqlite.Config) (store.Schema, error) {
		return sqlite.Plan(ctx, path, c)
	}, func(c postgres.Config) (store.Schema, error) {
		return postgres.Plan(ctx, address, c)
	})
}

// Migrate brings the tables of a store up to date without opening it, under a lock: of many processes one does each step. A step is
// one transaction. A store that is newer than this module is refused.
//
// Codes: those of Open; invalid_argument also for a To that lies behind the store or does not exist.
func Migrate(ctx context.Context, address string, cfg ...MigrateConfig) (Schema, error) {
	options, err := single(cfg)
	if err != nil {
		return Schema{}, err
	}
	told := func(s store.SchemaStep) {
		if options.Told != nil {
			options.Told(SchemaStep(s))
		}
	}
	return options.on(address, func(path string, c sqlite.Config) (store.Schema, error) {
		return sqlite.Migrate(ctx, path, c, options.To, told)
	}, func(c postgres.Config) (store.Schema, error) {
		return postgres.Migrate(ctx, address, c, options.To, told)
	})
}

// on chooses the store that the address names.
func (cfg MigrateConfig) on(
	address string, file func(path string, c sqlite.Config) (store.Schema, error), server func(c postgres.Config) (store.Schema, error),
) (Schema, error) {
	scheme, path, _ := strings.Cut(address, ":")
	var found store.Schema
	var err error
	switch scheme {
	case "sqlite":
		found, err = file(path, sqlite.Config{UnsafeDurability: cfg.UnsafeDurability})
	case "postgres", "postgresql":
		found, err = server(postgres.Config{UnsafeDurability: cfg.UnsafeDurability, DirectURL: cfg.DirectURL})
	default:
		err = noStore(scheme)
	}
	schema := Schema{Kind: found.Kind, Level: found.Level, Known: found.Known}
	for _, step := range found.Steps {
		schema.Steps = append(schema.Steps, SchemaStep(step))
	}
	if err == nil {
		err = found.Newer()
	}
	if err != nil {
		return schema, openError(err)
	}
	return schema, nil
}

// noStore refuses an address.
func noStore(scheme string) error {
	return base.Invalid("store", "no store is called %q", scheme).WithHint("use sqlite:PATH or postgres://…")
}

// KnownSchemas tells by kind of store how far the tables are that this module knows.
func KnownSchemas() map[string]int {
	return map[string]int{"sqlite": sqlite.KnownSchema(), "postgres": postgres.KnownSchema()}
}
