package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// What Config.Migrate may say.
const (
	migrateAuto  = "auto"
	migrateCheck = "check"
	migrateOff   = "off"
)

// migrations lists the steps; the first brings an empty file to schema 1, and so on.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // in order of name
	if err != nil {
		return nil, err
	}
	steps := make([]string, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", name, i+1)
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps[i] = string(text)
	}
	return steps, nil
}

// migrate brings the schema up to date, each step in a transaction of its own, as far as the configuration allows.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	for done := false; !done; {
		err := s.write(ctx, durably, func(c *conn) error {
			level, err := schemaOf(c)
			if err != nil {
				return err
			}
			if level > len(steps) {
				return core.Invalid("store", "the file has schema %d, this program knows schema %d", level, len(steps)).
					WithHint("use the program that wrote the file, or a newer one")
			}
			done = level == len(steps) || level > 0 && s.cfg.Migrate == migrateOff
			if done {
				return nil
			}
			if s.cfg.Migrate != migrateAuto {
				return core.Invalid("store", "the file has schema %d, this program needs schema %d", level, len(steps)).
					WithHint("run the migration, or open the file with migrate set to auto")
			}
			return s.step(c, level, steps[level])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// schemaOf is the number of the last migration that the file has seen, 0 for a file without our tables.
func schemaOf(c *conn) (level int, err error) {
	installed := false
	if err := c.each("installed", func(r row) error { installed = r.Int(0) > 0; return nil }); err != nil || !installed {
		return 0, err
	}
	found := errors.New("the file has our tables, but no row that says which installation it is")
	err = c.each("read installation", func(r row) error { level, found = int(r.Int(2)), nil; return nil })
	return level, errors.Join(err, found)
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
