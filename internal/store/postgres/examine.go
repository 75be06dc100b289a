package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

var _ store.Examiner = (*Store)(nil)

// Examine inspects the server through a connection of the pool, because that is how the process reaches it.
func (s *Store) Examine(ctx context.Context, now base.Time) (*store.Condition, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	found := &store.Condition{}
	for _, look := range []func(context.Context, *pgx.Conn, *store.Condition) error{s.examineServer, s.examineStandbys, s.examineTransactions, s.examineTables} {
		if err := look(ctx, conn.Conn(), found); err != nil {
			return nil, fault(err)
		}
	}
	err = conn.QueryRow(ctx, s.cold["examine_timers"], int64(now), store.OverdueBound).Scan(&found.Overdue, (*int64)(&found.OldestDue))
	return found, fault(err)
}

func (s *Store) examineServer(ctx context.Context, conn *pgx.Conn, to *store.Condition) error {
	own := &store.Connections{Pool: s.cfg.PoolSize, Direct: s.cfg.DirectURL != ""}
	var backend uint32
	var fsync, pages, commit string
	var vacuums bool
	err := conn.QueryRow(ctx, s.cold["examine_server"]).
		Scan(&own.Max, &own.Reserved, &own.Used, &backend, &fsync, &pages, &commit, &vacuums, &to.Size)
	if err != nil {
		return err
	}
	// A pooler reports a process id of its own to its clients.
	own.Pooled = s.cfg.pooled() || conn.PgConn().PID() != backend
	to.Connections, to.Vacuum = own, &store.Vacuum{On: vacuums}
	to.Risks = risks(s.service, fsync, pages, commit)
	return nil
}

func (s *Store) examineTransactions(ctx context.Context, conn *pgx.Conn, to *store.Condition) error {
	rows, err := conn.Query(ctx, s.cold["examine_transactions"])
	if err != nil {
		return err
	}
	to.Transactions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx store.OpenTransaction, err error) {
		var age int64
		err = row.Scan(&tx.Session, &tx.Application, &tx.State, &age)
		tx.Age = time.Duration(age) * time.Millisecond
		return tx, err
	})
	return err
}

func (s *Store) examineTables(ctx context.Context, conn *pgx.Conn, to *store.Condition) error {
	rows, err := conn.Query(ctx, s.cold["examine_tables"])
	if err != nil {
		return err
	}
	to.Tables, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t store.Table, err error) {
		var left bool
		if err = row.Scan(&t.Name, &t.Live, &t.Dead, &left); left {
			to.Vacuum.Off = append(to.Vacuum.Off, t.Name)
		}
		return t, err
	})
	return err
}
