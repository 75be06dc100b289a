package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
)

// migrationLock keeps two processes from migrating one database at once. It ends with the transaction, so that it is good
// behind a pooler.
const migrationLock = 0x666c6f77 // "flow"

// migration is one step of the schema.
type migration struct {
	version int
	name    string
	text    string
}

// migrations are all steps in order: files are named 0001_tables.sql and so on, without gaps.
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

// migrate brings the schema to the level of this program, as Config.Migrate says, and returns the level.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) (int, error) {
	steps, err := migrations()
	if err != nil {
		return 0, err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if s.cfg.Migrate == MigrateAuto {
		if _, err := tx.Exec(ctx, s.cold["migration_lock"], int64(migrationLock)); err != nil {
			return 0, err
		}
	}
	level, err := s.schemaLevel(ctx, tx)
	if err != nil {
		return 0, err
	}
	switch {
	case level > len(steps):
		return 0, core.Invalid("store", "the schema has level %d, this program knows %d", level, len(steps)).WithHint("use a newer program")
	case level == len(steps):
		return level, nil
	case s.cfg.Migrate == MigrateCheck:
		return 0, core.Invalid("store", "the schema has level %d, this program needs %d", level, len(steps)).WithHint("run the migrations first")
	case s.cfg.Migrate == MigrateOff:
		return level, nil
	}
	for _, step := range steps[level:] {
		if err := s.apply(ctx, tx, step); err != nil {
			return 0, fmt.Errorf("migration %s: %w", step.name, err)
		}
	}
	return len(steps), tx.Commit(ctx)
}

// schemaLevel is the number of steps applied, 0 in an empty database.
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
	// Without arguments the text may hold many statements.
	if _, err := tx.Conn().PgConn().Exec(ctx, step.text).ReadAll(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, s.cold["record_migration"], step.version, step.name)
	return err
}
