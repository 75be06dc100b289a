package model

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // as the user's own program would have them
	_ "modernc.org/sqlite"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// ownTxCommand submits in a transaction of the user's own, which is then committed or rolled back (L88).
type ownTxCommand struct {
	C      engine.Caller
	S      core.Submission
	Commit bool
}

func (c ownTxCommand) op() string {
	if !c.Commit {
		return "submit in a transaction rolled back"
	}
	return "submit in a transaction"
}

// submitted is the part of the answer to a submit that does not depend on the sweep.
type submitted struct {
	Outcome string
	ID      base.ID
}

// onModel is L80..L85 and L88: what is refused or rolled back leaves nothing, not even a lane.
func (c ownTxCommand) onModel(m *reference) (any, error) {
	s := c.S
	s.Creator = c.C.Principal
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		return nil, err
	}
	var id base.ID
	if s.ID != nil {
		id = s.ID.ID()
	} else {
		id = base.IDOf(m.ids.next())
	}
	if err := s.CheckTimes(m.now()); err != nil {
		return nil, err
	}
	known, err := m.known(&s, id)
	switch {
	case err != nil:
		return nil, err
	case known != nil:
		return submitted{"duplicate", *known}, nil
	case m.lanes[s.Lane] != nil && !m.lanes[s.Lane].Settings.State.Accepting():
		return nil, base.Errorf(base.CodeLaneNotAccepting, "closed")
	}
	if c.Commit {
		m.lane(s.Lane, "submit")
		m.create(c.C, &s, id)
	}
	return submitted{"created", id}, nil
}

func (c ownTxCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	tx, err := on.own.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	answer, refusal := on.e.SubmitTx(ctx, c.C, tx, c.S)
	if c.Commit {
		if err := tx.Commit(); err != nil {
			return nil, fmt.Errorf("commit: %w", err)
		}
		if err := on.e.Nudge(ctx, c.C, c.S.Lane); err != nil {
			return nil, err
		}
	}
	return submitted{answer.Outcome, answer.ID}, refusal
}

// known is the execution that a submission is a duplicate of, by its key or else by its id (L80, L83, L85).
func (m *reference) known(s *core.Submission, id base.ID) (*base.ID, error) {
	print := s.Fingerprint()
	if row, ok := m.keys[s.Namespace+" "+s.IdempotencyKey]; ok && s.IdempotencyKey != "" && row.expires > m.now() {
		if !bytes.Equal(row.print, print) {
			return nil, base.Errorf(base.CodeIdempotencyConflict, "another request")
		}
		return &row.id, nil
	}
	if r := m.records[id.UUID]; r != nil {
		old := core.Submission{Lane: r.x.Class.Lane, Kind: r.x.Class.Kind, Input: r.x.Input, Policy: r.x.GivenPolicy()}
		if r.x.ID != id || r.x.Class.Namespace != s.Namespace || !bytes.Equal(old.Fingerprint(), print) {
			return nil, base.Errorf(base.CodeIDConflict, "another execution")
		}
		return &id, nil
	}
	return nil, nil
}

// create makes the execution of a submission, and its key.
func (m *reference) create(c engine.Caller, s *core.Submission, id base.ID) *record {
	class := s.Class()
	r := &record{sees: map[int]int{}}
	fx := m.effects(c)
	r.x = core.NewExecution(fx, s, id, &class)
	m.records[id.UUID] = r
	m.keep(r, fx)
	if s.IdempotencyKey != "" {
		m.keys[s.Namespace+" "+s.IdempotencyKey] = keyRow{print: s.Fingerprint(), id: id, expires: m.now().Add(s.Policy.DedupWindowMS)}
	}
	return r
}

// openOwn opens the database as a program of the user's own would.
func openOwn(driver, source string) (*sql.DB, error) {
	db, err := sql.Open(driver, source)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (d *drawing) ownTx(commit bool) command {
	s, _ := d.submit().(submitCommand)
	return ownTxCommand{C: s.C, S: s.S, Commit: commit}
}
