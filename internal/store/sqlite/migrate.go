package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// The values of Config.Migrate.
const (
	migrateAuto  = "auto"
	migrateCheck = "check"
	migrateOff   = "off"
)

// migration is one step of the schema.
type migration struct{ name, text string }

// migrations returns the steps; the first brings an empty file to schema 1, and so on.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // in order of name
	if err != nil {
		return nil, err
	}
	steps := make([]migration, len(names))
	for i, path := range names {
		name := strings.TrimPrefix(path, "migrations/")
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", name, i+1)
		}
		text, err := migrationFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		steps[i] = migration{name, string(text)}
	}
	return steps, nil
}

// migrate migrates the schema as far as the configuration allows.
func (s *Store) migrate(ctx context.Context) error {
	if s.cfg.Migrate == migrateAuto {
		steps := 0
		schema, err := s.forward(ctx, 0, func(store.SchemaStep) { steps++ })
		if steps > 0 && s.cfg.Logger != nil {
			s.cfg.Logger.Info("the schema of the store was brought up to date", "schema", schema.Level, "steps", steps)
		}
		return err
	}
	return s.write(ctx, durably, func(c *conn) error {
		schema, _, err := standing(c)
		switch {
		case err != nil:
			return err
		case schema.Level > schema.Known:
			return schema.Newer()
		case schema.Level == 0 || schema.Level < schema.Known && s.cfg.Migrate == migrateCheck:
			return schema.Older()
		default:
			return nil
		}
	})
}

// standing returns the schema level of the file.
func standing(c *conn) (store.Schema, []migration, error) {
	steps, err := migrations()
	if err != nil {
		return store.Schema{}, nil, err
	}
	schema := store.Schema{Kind: "sqlite", Known: len(steps)}
	schema.Level, err = schemaOf(c)
	for i, step := range steps {
		schema.Steps = append(schema.Steps, store.SchemaStep{Number: i + 1, Name: step.name, Applied: i < schema.Level})
	}
	return schema, steps, err
}

// forward applies steps up to a level, 0 meaning that of this program, each in a transaction of its own. The lock on the file excludes other
// processes.
func (s *Store) forward(ctx context.Context, to int, onStep func(store.SchemaStep)) (schema store.Schema, err error) {
	for done := false; !done; {
		began := s.cfg.Clock()
		var applied *store.SchemaStep
		err := s.write(ctx, durably, func(c *conn) error {
			found, steps, err := standing(c)
			if err != nil {
				return err
			}
			schema = found
			target, err := schema.Target(to)
			if done = schema.Level >= target; err != nil || done {
				return err
			}
			applied = &schema.Steps[schema.Level]
			return s.step(c, schema.Level, steps[schema.Level].text)
		})
		if err != nil {
			return schema, err
		}
		if applied != nil {
			applied.Applied, applied.Took = true, s.cfg.Clock().Sub(began)
			schema.Level = applied.Number
			onStep(*applied)
		}
	}
	return schema, nil
}

// KnownSchema returns the number of steps that this program knows.
func KnownSchema() int {
	steps, _ := migrations() // a test checks that it cannot fail
	return len(steps)
}

// Plan returns the schema level of the file at path. It changes nothing; a file that does not exist has schema 0.
func Plan(ctx context.Context, path string, cfg Config) (schema store.Schema, err error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		steps, err := migrations()
		schema = store.Schema{Kind: "sqlite", Known: len(steps)}
		for i, step := range steps {
			schema.Steps = append(schema.Steps, store.SchemaStep{Number: i + 1, Name: step.name})
		}
		return schema, err
	}
	err = onFile(ctx, path, cfg, func(s *Store) error {
		c, err := connect(s.path, s.statements, "query_only = on")
		if err != nil {
			return err
		}
		schema, _, err = standing(c)
		return errors.Join(err, c.close())
	})
	return schema, err
}

// Migrate brings the schema of the file at path, which is created if it does not exist, to a level, 0 meaning that of this program, and calls told
// for each step when it is done.
func Migrate(ctx context.Context, path string, cfg Config, to int, onStep func(store.SchemaStep)) (schema store.Schema, err error) {
	err = onFile(ctx, path, cfg, func(s *Store) error {
		c, err := s.connectWriter()
		if err != nil {
			return err
		}
		s.writer <- c
		schema, err = s.forward(ctx, to, onStep)
		return err
	})
	return schema, err
}

// onFile holds the lock of a file without opening a store on it.
func onFile(ctx context.Context, path string, cfg Config, do func(s *Store) error) error {
	s, err := prepare(ctx, path, cfg)
	if err != nil {
		return err
	}
	return fault(errors.Join(unfit(do(s)), s.abandon()))
}

// schemaOf returns the number of the last migration applied to the file, 0 for a file without the store's tables.
func schemaOf(c *conn) (level int, err error) {
	installed := false
	if err := c.each("installed", func(r row) error { installed = r.Int(0) > 0; return nil }); err != nil || !installed {
		return 0, err
	}
	found := false
	err = c.each("read installation", func(r row) error { level, found = int(r.Int(2)), true; return nil })
	if err == nil && !found {
		err = base.Errorf(base.CodeCorruption, "the file has our tables, but no row that says which installation it is").WithHint(restore)
	}
	return level, err
}

func (s *Store) step(c *conn, level int, text string) error {
	if err := c.raw.Script(text); err != nil {
		return fmt.Errorf("migration %d: %w", level+1, err)
	}
	if level == 0 {
		now := s.now()
		id, logID := mint(now), mint(now)
		if err := c.run("insert installation", id[:], logID[:]); err != nil {
			return err
		}
	}
	return c.run("set schema", int64(level+1))
}
