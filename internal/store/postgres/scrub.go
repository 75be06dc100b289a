package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

var _ store.Scrubber = (*Store)(nil)

// Scrub reads everything, on a connection of its own, for as long as ctx allows.
func (s *Store) Scrub(ctx context.Context, damaged func(what error)) error {
	looks := []struct {
		statement string
		look      func(row) error
	}{
		{"scrub_executions", func(r row) error {
			columns := executionRow(r)
			_, err := columns.Execution(&core.Class{ID: columns.Class}, &s.policies)
			return err
		}},
		{"scrub_leases", func(r row) error {
			_, err := leaseOf(r).Record(r.id(0, 4))
			return err
		}},
		{"scrub_docs", func(r row) error {
			doc := docOf(r)
			return doc.Whole()
		}},
		{"scrub_log", func(r row) error {
			if _, err := store.DecodeCommit(r[1]); err != nil {
				return fmt.Errorf("commit %d: %w", r.bigint(0), err)
			}
			return nil
		}},
	}
	return fault(s.apart(ctx, func(conn *pgx.Conn) error {
		for _, one := range looks {
			if err := eachRow(ctx, conn, s.cold[one.statement], func(r row) {
				if err := one.look(r); err != nil {
					damaged(err)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// eachRow reads the answer of a statement row by row.
func eachRow(ctx context.Context, conn *pgx.Conn, statement string, read func(row)) error {
	answer := conn.PgConn().ExecParams(ctx, statement, nil, nil, nil, binaryFormat)
	for answer.NextRow() {
		read(row(answer.Values()))
	}
	_, err := answer.Close()
	return err
}
