package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/quiet"
	"github.com/flowfabric/flowfabric/internal/store"
)

// migrationLock prevents two processes from migrating one database at once. It ends with the transaction, so it works behind a pooler.
const migrationLock = 0x666c6f77 // "flow"

// migration is one step of the schema.
type migration struct {
	version int
	name    string
	text    string
}

// migrations returns all steps in order: files are named 0001_tables.sql and so on, without gaps.
func migrations() ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []migration
	for i, path := range names {
		name := strings.TrimPrefix(path, "migrations/")
		number, _, _ := strings.Cut(name, "_")
		if version, err := strconv.Atoi(number); err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s should have number %d", name, i+1)
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{version: i + 1, name: name, text: string(text)})
	}
	return list, nil
}

// migrate brings the schema to the level of this program, as Config.Migrate states, and returns the level.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) (int, error) {
	if s.cfg.Migrate == MigrateAuto {
		steps := 0
		schema, err := s.forward(ctx, conn, 0, func(store.SchemaStep) { steps++ })
		if steps > 0 {
			s.cfg.Logger.Info("the schema of the store was brought up to date", "schema", schema.Level, "steps", steps)
		}
		return schema.Level, err
	}
	schema, err := s.schema(ctx, conn)
	switch {
	case err != nil:
		return 0, err
	case schema.Level > schema.Known:
		return 0, schema.Newer()
	case schema.Level == 0 || schema.Level < schema.Known && s.cfg.Migrate == MigrateCheck:
		return 0, schema.Older()
	default:
		return schema.Level, nil
	}
}

// KnownSchema returns the number of steps that this program knows.
func KnownSchema() int {
	steps, _ := migrations() // a test checks that it cannot fail
	return len(steps)
}

// Plan returns the schema level of the database at url. It changes nothing.
func Plan(ctx context.Context, url string, cfg Config) (schema store.Schema, err error) {
	err = onServer(ctx, url, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		schema, err = s.schema(ctx, conn)
		return err
	})
	return schema, err
}

// Migrate brings the schema of the database at url to a level, 0 meaning that of this program, and calls told for each step when it is done.
func Migrate(ctx context.Context, url string, cfg Config, to int, told func(store.SchemaStep)) (schema store.Schema, err error) {
	err = onServer(ctx, url, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		schema, err = s.forward(ctx, conn, to, told)
		return err
	})
	return schema, err
}

// onServer connects without opening a store. A step may take longer than Config.Timeout: the caller sets the bound.
func onServer(ctx context.Context, url string, cfg Config, do func(ctx context.Context, s *Store, conn *pgx.Conn) error) error {
	if err := cfg.normalize(); err != nil {
		return err
	}
	s := &Store{cfg: cfg, url: url, impatient: milliseconds(cfg.LockWait), notes: quiet.New(cfg.Logger, cfg.Clock)}
	if err := s.loadTexts(); err != nil {
		return err
	}
	return fault(unfit(s.apart(ctx, func(conn *pgx.Conn) error {
		if err := s.checkServer(ctx, conn); err != nil {
			return err
		}
		return do(ctx, s, conn)
	})))
}

// schema reads the schema level of the database.
func (s *Store) schema(ctx context.Context, conn *pgx.Conn) (schema store.Schema, err error) {
	err = s.inOne(ctx, conn, func(tx pgx.Tx) error {
		schema, _, err = s.standing(ctx, tx)
		return err
	})
	return schema, err
}

func (s *Store) standing(ctx context.Context, tx pgx.Tx) (store.Schema, []migration, error) {
	steps, err := migrations()
	if err != nil {
		return store.Schema{}, nil, err
	}
	schema := store.Schema{Kind: "postgres", Known: len(steps)}
	schema.Level, err = s.schemaLevel(ctx, tx)
	for _, step := range steps {
		schema.Steps = append(schema.Steps, store.SchemaStep{Number: step.version, Name: step.name, Applied: step.version <= schema.Level})
	}
	return schema, steps, err
}

// forward applies steps up to a level, each in a transaction of its own and under a lock, so that only one of many processes applies it.
func (s *Store) forward(ctx context.Context, conn *pgx.Conn, to int, told func(store.SchemaStep)) (schema store.Schema, err error) {
	for done := false; !done; {
		began := s.cfg.Clock.Now()
		var applied *store.SchemaStep
		err := s.inOne(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, s.cold["migration_lock"], int64(migrationLock)); err != nil {
				return err
			}
			found, steps, err := s.standing(ctx, tx)
			if err != nil {
				return err
			}
			schema = found
			target, err := schema.Target(to)
			if done = schema.Level >= target; err != nil || done {
				return err
			}
			if err := s.mayCreate(ctx, tx); err != nil {
				return err
			}
			step := steps[schema.Level]
			if err := s.apply(ctx, tx, step); err != nil {
				return fmt.Errorf("migration %s: %w", step.name, err)
			}
			applied = &schema.Steps[schema.Level]
			return nil
		})
		if err != nil {
			return schema, err
		}
		if applied != nil {
			applied.Applied, applied.Took = true, s.cfg.Clock.Now().Sub(began)
			schema.Level = applied.Number
			told(*applied)
		}
	}
	return schema, nil
}

// schemaLevel returns the number of steps applied, 0 in an empty database.
func (s *Store) schemaLevel(ctx context.Context, tx pgx.Tx) (level int, err error) {
	var exists bool
	if err := tx.QueryRow(ctx, s.cold["migration_table_exists"]).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = tx.QueryRow(ctx, s.cold["schema_level"]).Scan(&level)
	return level, err
}

func (s *Store) apply(ctx context.Context, tx pgx.Tx, step migration) error {
	if step.version == 1 {
		if _, err := tx.Exec(ctx, s.cold["create_migration_table"]); err != nil {
			return err
		}
	}
	// Without arguments the text may contain many statements.
	if _, err := tx.Conn().PgConn().Exec(ctx, step.text).ReadAll(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, s.cold["record_migration"], step.version, step.name)
	return err
}
