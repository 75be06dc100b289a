package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// What a store has in its schema, besides partitions of the log and its sequence. A test compares these with the catalogue.

func ownTables() []string {
	return []string{
		"class", "counter", "doc", "exec", "idem", "inbox", "installation", "lane", "lease", "log", "log_index", "mention", "program", "projection", "queue", "schema_migration", "search", "timer",
	}
}

func ownDomains() []string {
	return []string{"attempt_state", "key_space", "lease_end", "partition_number", "stage"}
}

func ownFunctions() []string { return []string{"submit_to_inbox"} }

// Locks on the schema.
const (
	schemaLock = 0x666c6f77 // "flow": with a hash of the name of the schema
	olderLock  = 0x666c6f77 // the only lock of programs from before schemas could be chosen
)

// lockSchema lets one process at a time change the schema. The lock ends with the transaction, so it works behind a pooler.
func (s *Store) lockSchema(ctx context.Context, tx pgx.Tx) error {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(s.cfg.Schema))
	if _, err := tx.Exec(ctx, s.cold["schema_lock"], int32(schemaLock), int32(sum.Sum32())); err != nil { // any 32 bits will do
		return err
	}
	if s.olderIn == "" && !s.unsettled {
		return nil
	}
	_, err := tx.Exec(ctx, s.cold["older_lock"], int64(olderLock))
	return err
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// The columns by which tables of a store are recognised. Later steps add more.
func markColumns() (ofSteps, ofInstallation []string) {
	return []string{"version", "name", "applied_at"}, []string{"one", "id", "log_id", "database", "dictionary", "log_floor"}
}

// firstStep is the name of the first step of every store.
const firstStep = "0001_tables.sql"

// locate finds the schema that has the tables: the configured one, or else the one in which a program from before schemas could be chosen has made
// them. Tables that are not certainly those of a store are left alone. exists is false if there is no store.
func (s *Store) locate(ctx context.Context, q querier) (exists bool, err error) {
	candidates, err := s.candidates(ctx, q)
	if err != nil {
		return false, err
	}
	for _, schema := range candidates {
		if err := s.loadTexts(schema); err != nil {
			return false, err
		}
		var first, home string
		if err := q.QueryRow(ctx, s.cold["read_mark"]).Scan(&first, &home); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return false, err
		}
		configured := schema == s.cfg.Schema
		if s.unsettled = home == ""; first == firstStep && (configured || s.unsettled) {
			if s.found = true; !s.unsettled {
				s.olderIn = ""
			}
			return true, nil
		}
	}
	s.found, s.unsettled, s.olderIn = false, false, ""
	return false, s.loadTexts(s.cfg.Schema)
}

// candidates are the schemas with tables that look like those of a store, the configured one first.
func (s *Store) candidates(ctx context.Context, q querier) (names []string, err error) {
	rows, err := q.Query(ctx, s.cold["find_stores"], s.cfg.Schema, s.olderIn)
	if err != nil {
		return nil, err
	}
	wantSteps, wantInstallation := markColumns()
	var schema string
	var steps, installation []string
	_, err = pgx.ForEachRow(rows, []any{&schema, &steps, &installation}, func() error {
		alike := len(steps) >= len(wantSteps) && slices.Equal(steps[:len(wantSteps)], wantSteps) &&
			len(installation) >= len(wantInstallation) && slices.Equal(installation[:len(wantInstallation)], wantInstallation)
		if alike && !strings.ContainsAny(schema, `'"\{}`) { // a name that statements hold in a literal
			names = append(names, schema)
		}
		return nil
	})
	return names, err
}

// makeSchema makes a schema unless it exists. It refuses a role that cannot create tables in it, and, if the tables are to be created, a schema in
// which something else has one of their names.
func (s *Store) makeSchema(ctx context.Context, tx pgx.Tx, schema string, fresh bool) error {
	var role, database string
	var exists, mayIn, mayMake bool
	if err := tx.QueryRow(ctx, s.cold["may_create"], schema).Scan(&role, &database, &exists, &mayIn, &mayMake); err != nil {
		return err
	}
	switch {
	case !exists && !mayMake:
		return base.Invalid("store", "the role %s lacks the right CREATE on database %s, to create the schema %s", role, database, schema).
			WithHint("as owner of the database: CREATE SCHEMA %s AUTHORIZATION %s", quoted(schema), quoted(role))
	case exists && !mayIn:
		return base.Invalid("store", "the role %s lacks the right CREATE on schema %s", role, schema).
			WithHint("as owner of the schema: GRANT CREATE, USAGE ON SCHEMA %s TO %s", quoted(schema), quoted(role))
	case !exists:
		_, err := tx.Exec(ctx, strings.ReplaceAll(s.cold["create_schema"], "{name}", quoted(schema)))
		return err
	case fresh:
		return s.checkFree(ctx, tx, schema)
	}
	return nil
}

// checkFree refuses a schema in which something else has a name of ours.
func (s *Store) checkFree(ctx context.Context, tx pgx.Tx, schema string) error {
	rows, err := tx.Query(ctx, s.cold["occupied"], schema, ownTables(), ownDomains(), ownFunctions())
	if err != nil {
		return err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(taken) == 0 {
		return err
	}
	return base.Invalid("store", "the schema %s has a %s that FlowFabric did not make", schema, taken[0]).
		WithHint("choose another schema with `FF_STORE_SCHEMA`")
}

// errKept ends a step that something prevents; the store stays as it is.
type errKept struct{ why error }

func (e *errKept) Error() string { return e.why.Error() }
func (e *errKept) Unwrap() error { return e.why }

func kept(format string, args ...any) error { return &errKept{fmt.Errorf(format, args...)} }

// moveHome moves the tables of a store from before schemas could be chosen to the configured schema, unless a program uses them. Whatever prevents
// it is an errKept, and the store stays as it is.
func (s *Store) moveHome(ctx context.Context, tx pgx.Tx, force bool) error {
	from, to := s.schema, s.cfg.Schema
	running, err := s.running(ctx, tx)
	if err != nil {
		return err
	}
	if len(running) > 0 && !force {
		return kept("%s", programsAre(running))
	}
	statements, err := s.moves(ctx, tx, from, to)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := s.leaveMark(ctx, tx, to); err != nil {
		return err
	}
	if err := s.loadTexts(to); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, s.cold["repath"], to, ownFunctions())
	if err != nil {
		return err
	}
	paths, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, statement := range paths {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, s.cold["settle_home"], to)
	return err
}

// moves returns the statements of a move, in order.
func (s *Store) moves(ctx context.Context, tx pgx.Tx, from, to string) (statements []string, err error) {
	if err := s.makeSchema(ctx, tx, to, true); base.CodeOf(err) == base.CodeInvalidArgument {
		return nil, &errKept{err}
	} else if err != nil {
		return nil, err
	}
	var lock string
	if err := tx.QueryRow(ctx, s.cold["lock_all"], from, ownTables()).Scan(&lock); err != nil {
		return nil, err
	}
	statements = append(statements, lock)
	rows, err := tx.Query(ctx, s.cold["moves"], from, to, ownTables(), ownDomains(), ownFunctions())
	if err != nil {
		return nil, err
	}
	var statement string
	var may bool
	_, err = pgx.ForEachRow(rows, []any{&statement, &may}, func() error {
		if !may {
			return kept("the role does not own everything: %s", statement)
		}
		statements = append(statements, statement)
		return nil
	})
	return statements, err
}

// leaveMark makes programs from before schemas could be chosen refuse to start where the tables were: they would make another store there.
func (s *Store) leaveMark(ctx context.Context, tx pgx.Tx, to string) error {
	if _, err := tx.Exec(ctx, s.cold["leave_mark"]); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, s.cold["write_mark"], "moved to schema "+to)
	return err
}
