package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// migration is one step of the schema.
type migration struct {
	version int
	name    string
	text    string
	// needs is the step that a program must know to run on a store that has this one. 0: the step only adds, and needs nothing of programs that run.
	needs int
}

// needsMark begins the first line of a step that takes something away: -- needs: 5
const needsMark = "-- needs: "

func needsOf(text string) (int, error) {
	rest, found := strings.CutPrefix(text, needsMark)
	if !found {
		return 0, nil
	}
	number, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(number)
}

// steps returns the steps of the schema.
func (s *Store) steps() ([]migration, error) {
	if s.cfg.steps != nil {
		return s.cfg.steps, nil
	}
	return migrations()
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
		needs, err := needsOf(string(text))
		if err != nil || needs > i+1 {
			return nil, fmt.Errorf("migration %s: the first line should be %sN, of a step up to this one", name, needsMark)
		}
		list = append(list, migration{version: i + 1, name: name, text: string(text), needs: needs})
	}
	return list, nil
}

// migrate brings the schema to the level of this program, as Config.Migrate states, and returns the level. A step that takes something away is left
// out while programs run that need it: this program works without such a step too.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) (int, error) {
	if s.cfg.Migrate == MigrateAuto {
		steps := 0
		schema, err := s.forward(ctx, conn, advance{onStep: func(store.SchemaStep) { steps++ }})
		if steps > 0 {
			s.cfg.Logger.Info("the schema of the store was brought up to date", "schema", schema.Level, "steps", steps)
		}
		if isKept(err) && schema.OnlyTakes() {
			s.cfg.Logger.Warn("a step of the schema waits for older programs to end", "step", schema.Level+1, "error", err)
			err = nil
		}
		return schema.Level, refusal(err)
	}
	schema, err := s.look(ctx, conn)
	switch {
	case err != nil:
		return 0, err
	case schema.Newer() != nil:
		return 0, schema.Newer()
	case schema.Level == 0 || schema.Level < schema.Known && s.cfg.Migrate == MigrateCheck && !schema.OnlyTakes():
		return 0, schema.Older()
	default:
		return schema.Level, nil
	}
}

// catchUp applies the steps that have waited for older programs to end, if they have.
func (s *Store) catchUp(ctx context.Context) {
	level := s.level.Load()
	if s.cfg.Migrate != MigrateAuto || int(level) >= s.known() {
		return
	}
	var schema store.Schema
	err := onServer(ctx, s.url, s.cfg, func(ctx context.Context, apart *Store, conn *pgx.Conn) (err error) {
		schema, err = apart.forward(ctx, conn, advance{})
		return err
	})
	if now := int64(schema.Level); now > level {
		s.level.Store(now)
		s.cfg.Logger.Info("the schema of the store was brought up to date", "schema", now, "steps", now-level)
	}
	if err != nil && !isKept(err) && ctx.Err() == nil {
		s.notes.Warn("a step of the schema failed", "step", schema.Level+1, "error", err)
	}
}

// refusal is the error for the user of a step that was not applied because programs run that it would break.
func refusal(err error) error {
	var waits *errKept
	var refused *base.Error
	if !errors.As(err, &waits) || errors.As(err, &refused) {
		return err
	}
	return base.Invalid("store", "%w", err).With(store.CheckDetail, "schema").WithHint("stop these programs first, or force it: they fail then until they are replaced")
}

// KnownSchema returns the number of steps that this program knows.
func KnownSchema() int {
	steps, _ := migrations() // a test checks that it cannot fail
	return len(steps)
}

// Plan returns the schema level of the database at url, and what uses it. It changes nothing.
func Plan(ctx context.Context, url string, cfg Config) (schema store.Schema, err error) {
	err = onServer(ctx, url, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		schema, err = s.look(ctx, conn)
		return err
	})
	return schema, err
}

// Forward is how Migrate proceeds.
type Forward struct {
	To     int                    // the last step to apply; 0: all that this program knows
	Force  bool                   // also steps that programs which run do not survive
	OnStep func(store.SchemaStep) // called for each step when it is done
}

// Migrate brings the schema of the database at url to a level. With To 0 it also moves tables to the schema that Config names, if a program from
// before schemas could be chosen has made them elsewhere.
func Migrate(ctx context.Context, url string, cfg Config, how Forward) (schema store.Schema, err error) {
	err = onServer(ctx, url, cfg, func(ctx context.Context, s *Store, conn *pgx.Conn) error {
		if schema, err = s.forward(ctx, conn, advance{to: how.To, force: how.Force, onStep: how.OnStep}); err != nil {
			return refusal(err)
		}
		if how.To != 0 {
			return nil
		}
		return refusal(s.moveNow(ctx, conn, how.Force, &schema))
	})
	return schema, err
}

// moveNow moves the tables to the configured schema.
func (s *Store) moveNow(ctx context.Context, conn *pgx.Conn, force bool, schema *store.Schema) error {
	return s.inOne(ctx, conn, func(tx pgx.Tx) error {
		if err := s.lockSchema(ctx, tx); err != nil {
			return err
		}
		if exists, err := s.locate(ctx, tx); err != nil || !exists {
			return err
		}
		if s.schema != s.cfg.Schema {
			if err := s.tryMove(ctx, tx, force); err != nil {
				return err
			}
		}
		schema.Tables, schema.Moves = s.schema, ""
		_, err := tx.Exec(ctx, s.cold["settle_home"], s.schema)
		return err
	})
}

// onServer connects without opening a store. A step may take longer than Config.Timeout: the caller sets the bound.
func onServer(ctx context.Context, url string, cfg Config, do func(ctx context.Context, s *Store, conn *pgx.Conn) error) error {
	if err := cfg.normalize(); err != nil {
		return err
	}
	s := newStore(url, cfg)
	if err := s.loadTexts(cfg.Schema); err != nil {
		return err
	}
	return fault(unfit(s.firstApart(ctx, func(conn *pgx.Conn) error {
		if err := s.checkServer(ctx, conn); err != nil {
			return err
		}
		return do(ctx, s, conn)
	})))
}

// look reads the schema level of the database, and which programs have it open.
func (s *Store) look(ctx context.Context, conn *pgx.Conn) (schema store.Schema, err error) {
	err = s.inOne(ctx, conn, func(tx pgx.Tx) error {
		exists, err := s.locate(ctx, tx)
		if err != nil {
			return err
		}
		if schema, _, err = s.standing(ctx, tx); err != nil || !exists {
			return err
		}
		schema.Programs, err = s.running(ctx, tx)
		return err
	})
	return schema, err
}

func (s *Store) standing(ctx context.Context, tx pgx.Tx) (store.Schema, []migration, error) {
	steps, err := s.steps()
	if err != nil {
		return store.Schema{}, nil, err
	}
	schema := store.Schema{Kind: "postgres", Known: len(steps), Tables: s.schema}
	if s.schema != s.cfg.Schema {
		schema.Moves = s.cfg.Schema
	}
	schema.Level, schema.Oldest, err = s.schemaLevel(ctx, tx)
	for _, step := range steps {
		schema.Steps = append(schema.Steps, store.SchemaStep{Number: step.version, Name: step.name, Applied: step.version <= schema.Level, Needs: step.needs})
	}
	return schema, steps, err
}

// advance is how forward proceeds.
type advance struct {
	to     int // 0: all steps
	force  bool
	onStep func(store.SchemaStep)
}

// stepPatience is how long a step waits for the locks of others, in the server's syntax: while it waits, others wait behind it. Then it makes room
// for them and tries again after stepPause.
const (
	stepPatience = "2s"
	stepPause    = time.Second
)

// forward applies steps up to a level, each in a transaction of its own and under a lock, so that only one of many processes applies it. A step
// that programs which run do not survive ends it with errKept, unless it is forced.
func (s *Store) forward(ctx context.Context, conn *pgx.Conn, how advance) (schema store.Schema, err error) {
	if how.onStep == nil {
		how.onStep = func(store.SchemaStep) {}
	}
	for done := false; !done; {
		began := s.cfg.Clock.Now()
		var applied *store.SchemaStep
		err := s.inOne(ctx, conn, func(tx pgx.Tx) (err error) {
			schema, applied, err = s.next(ctx, tx, how)
			return err
		})
		if isCode(err, busyCode) || isCode(err, deadlockCode) {
			if err = s.pause(ctx, err); err == nil {
				continue
			}
		}
		if err != nil {
			return schema, err
		}
		if done = applied == nil; !done {
			applied.Applied, applied.Took = true, s.cfg.Clock.Now().Sub(began)
			schema.Level = applied.Number
			how.onStep(*applied)
		}
	}
	return schema, nil
}

// next applies the next step; nil if there is none.
func (s *Store) next(ctx context.Context, tx pgx.Tx, how advance) (schema store.Schema, applied *store.SchemaStep, err error) {
	if err := s.lockSchema(ctx, tx); err != nil {
		return schema, nil, err
	}
	if _, err := s.locate(ctx, tx); err != nil {
		return schema, nil, err
	}
	schema, steps, err := s.standing(ctx, tx)
	if err != nil {
		return schema, nil, err
	}
	target, err := schema.Target(how.to)
	if err != nil || schema.Level >= target {
		return schema, nil, err
	}
	if err := s.makeSchema(ctx, tx, s.schema, schema.Level == 0); err != nil {
		return schema, nil, err
	}
	step := steps[schema.Level]
	if err := s.survived(ctx, tx, step, how.force); err != nil {
		return schema, nil, err
	}
	if _, err := tx.Exec(ctx, s.cold["step_patience"], stepPatience); err != nil {
		return schema, nil, err
	}
	if err := s.apply(ctx, tx, step, schema.Oldest); err != nil {
		return schema, nil, fmt.Errorf("migration %s: %w", step.name, err)
	}
	return schema, &schema.Steps[schema.Level], nil
}

// survived refuses a step while programs run that need what it takes away.
func (s *Store) survived(ctx context.Context, tx pgx.Tx, step migration, force bool) error {
	if step.needs == 0 || force {
		return nil
	}
	if !s.found {
		return nil
	}
	running, err := s.running(ctx, tx)
	if err != nil {
		return err
	}
	if older := below(running, step.needs); len(older) > 0 {
		return kept("step %d of the schema needs programs that know schema %d: %s", step.version, step.needs, programsAre(older))
	}
	return nil
}

// pause waits until a step is tried again; it returns the error of the last try if ctx ends before that.
func (s *Store) pause(ctx context.Context, last error) error {
	timer := s.cfg.Clock.NewTimer(stepPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return last
	case <-timer.C:
		return nil
	}
}

// schemaLevel returns the number of steps applied, 0 in an empty database, and the oldest step that a program must know.
func (s *Store) schemaLevel(ctx context.Context, tx pgx.Tx) (level, oldest int, err error) {
	if !s.found {
		return 0, 0, nil
	}
	if err = tx.QueryRow(ctx, s.cold["schema_level"]).Scan(&level, &oldest); errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return level, oldest, err
}

// apply applies a step. oldest is the oldest step that a program must have known before.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, step migration, oldest int) error {
	if step.version == 1 {
		if _, err := tx.Exec(ctx, s.cold["create_migration_table"]); err != nil {
			return err
		}
	}
	// Without arguments the text may contain many statements.
	if _, err := tx.Conn().PgConn().Exec(ctx, s.replacer().Replace(step.text)).ReadAll(); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.cold["record_migration"], step.version, step.name); err != nil || step.version <= lastUnlisted {
		return err
	}
	_, err := tx.Exec(ctx, s.cold["record_oldest"], step.version, max(oldest, step.needs, lastUnlisted+1))
	return err
}
