package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// beatEvery is how often a program renews its entry in the store, with a poll.
	beatEvery = 15 * time.Second
	// goneAfter is how old the entry of a program is that does not run any more.
	goneAfter = time.Minute
	// forgottenAfter is how old an entry is when it is removed.
	forgottenAfter = 24 * time.Hour
)

// enter lists this program in the store, under the lock that a step takes which must not be applied while the program runs. It moves a store to its
// schema before that.
func (s *Store) enter(ctx context.Context, conn *pgx.Conn) error {
	return s.inOne(ctx, conn, func(tx pgx.Tx) error {
		if err := s.lockSchema(ctx, tx); err != nil {
			return err
		}
		if _, err := s.locate(ctx, tx); err != nil {
			return err
		}
		schema, _, err := s.standing(ctx, tx)
		if err != nil {
			return err
		}
		if err := schema.Newer(); err != nil {
			return err
		}
		if err := s.goHome(ctx, tx); err != nil {
			return err
		}
		return s.list(ctx, tx)
	})
}

// list enters this program, unless the store has no list yet.
func (s *Store) list(ctx context.Context, tx pgx.Tx) error {
	if err := tx.QueryRow(ctx, s.cold["has_programs"]).Scan(&s.entered); err != nil || !s.entered {
		return err
	}
	if s.schema == s.cfg.Schema {
		if _, err := tx.Exec(ctx, s.cold["settle_home"], s.schema); err != nil {
			return err
		}
		s.unsettled, s.olderIn = false, ""
	}
	if _, err := tx.Exec(ctx, s.cold["forget_programs"], forgottenAfter.Milliseconds()); err != nil {
		return err
	}
	s.beaten.Store(s.cfg.Clock.Now().UnixNano())
	_, err := tx.Exec(ctx, s.cold["enter_program"], s.name, s.cfg.Program, int32(s.known()))
	return err
}

// known is the last step that this program knows.
func (s *Store) known() int {
	steps, _ := s.steps() // a test checks that it cannot fail
	return len(steps)
}

// running lists the programs that have the store open, but for this one.
func (s *Store) running(ctx context.Context, tx pgx.Tx) (list []store.Program, err error) {
	var listed bool
	if err := tx.QueryRow(ctx, s.cold["has_programs"]).Scan(&listed); err != nil {
		return nil, err
	}
	var older int
	if err := tx.QueryRow(ctx, s.cold["older_programs"]).Scan(&older); err != nil {
		return nil, err
	}
	if older > 0 {
		list = append(list, store.Program{Version: "an earlier version", Known: lastUnlisted})
	}
	if !listed {
		return list, nil
	}
	rows, err := tx.Query(ctx, s.cold["programs"], s.name, goneAfter.Milliseconds())
	if err != nil {
		return nil, err
	}
	listedNow, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p store.Program, err error) {
		err = row.Scan(&p.Version, &p.Known, (*int64)(&p.StartedAt), (*int64)(&p.SeenAt))
		return p, err
	})
	return append(list, listedNow...), err
}

// lastUnlisted is the last step that programs know which are not listed. They refuse every newer schema when they start.
const lastUnlisted = 4

// programsAre names programs in an error.
func programsAre(list []store.Program) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = fmt.Sprintf("%s (schema %d)", p.Version, p.Known)
	}
	return "programs that have the store open: " + strings.Join(names, ", ")
}

// below returns the programs that know less than a step needs.
func below(list []store.Program, needs int) (older []store.Program) {
	for _, p := range list {
		if p.Known < needs {
			older = append(older, p)
		}
	}
	return older
}

// goHome moves the tables to the default schema if a program from before schemas could be chosen has made them elsewhere. If that cannot be done
// now, they are used where they are. To another schema they are moved by Migrate alone: a store in it may be meant to be another one.
func (s *Store) goHome(ctx context.Context, tx pgx.Tx) error {
	from := s.schema
	switch {
	case from == s.cfg.Schema:
		return nil
	case s.cfg.Schema != DefaultSchema:
		return base.Invalid("store_schema", "the database has a store of an earlier version in schema %s, and none in schema %s", from, s.cfg.Schema).
			With(store.CheckDetail, "schema").WithHint("flowfabric migrate up with this schema moves it there; without one, FlowFabric moves it to %s", DefaultSchema)
	case s.cfg.Migrate != MigrateAuto:
		return nil
	}
	err := s.tryMove(ctx, tx, false)
	if err == nil {
		s.cfg.Logger.Info("the tables of the store were moved to a schema of their own", "schema", s.schema)
		return nil
	}
	if !isKept(err) {
		return err
	}
	s.cfg.Logger.Warn("the tables of the store are used where an earlier version made them", "schema", from, "error", err)
	return s.loadTexts(from)
}

// tryMove moves the tables or leaves the transaction as it was.
func (s *Store) tryMove(ctx context.Context, tx pgx.Tx, force bool) error {
	from := s.schema
	if _, err := tx.Exec(ctx, s.cold["step_patience"], stepPatience); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, tx, func(within pgx.Tx) error { return s.moveHome(ctx, within, force) })
	if err == nil {
		s.unsettled = false
		return nil
	}
	if loading := s.loadTexts(from); loading != nil {
		return loading
	}
	if isCode(err, busyCode) || isCode(err, deadlockCode) || isCode(err, rightCode) {
		err = &errKept{err}
	}
	return err
}

func isKept(err error) bool {
	var is *errKept
	return errors.As(err, &is)
}

// leaveProgram removes this program from the list. If that fails, its entry is too old a minute later.
func (s *Store) leaveProgram() {
	if !s.entered || s.pool == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.alone(ctx, func(t *trip) { t.add("leave_program", nil, text(s.name)) })
}

// beat renews the entry of this program with a poll, if that is due. The answer is the oldest step that a program must know: others may have gone
// on without this one.
func (s *Store) beat(t *trip) {
	now := s.cfg.Clock.Now().UnixNano()
	last := s.beaten.Load()
	if !s.entered || now-last < int64(beatEvery) || !s.beaten.CompareAndSwap(last, now) {
		return
	}
	t.add("beat", func(r row) error {
		schema := store.Schema{Level: int(r.int(0)), Known: s.known(), Oldest: int(r.int(1))}
		s.outdated.Store(schema.Newer() != nil)
		return nil
	}, text(s.name), text(s.cfg.Program), integer(int32(s.known())))
}

// errOutdated refuses the use of a store that was migrated, by force, beyond what this program knows.
func errOutdated() error {
	return base.Errorf(base.CodeStoreUnavailable, "the store was migrated to a schema that this program does not know").
		WithHint("stop this program and start the version that migrated the store")
}
