package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// partitionRows is the number of commits in a partition of the log. Partition k begins at k times this number.
const partitionRows = 1_000_000

// ahead is how many partitions are prepared beyond the one in use.
const ahead = 2

func partitionName(k int64) string { return fmt.Sprintf("log_p%06d", k) }

// partitionSQL inserts the name and the bounds of a partition into a statement.
func (s *Store) partitionSQL(statement string, k int64) string {
	return strings.NewReplacer("{partition}", partitionName(k), "{from}", strconv.FormatInt(k*partitionRows, 10),
		"{to}", strconv.FormatInt((k+1)*partitionRows, 10)).Replace(s.cold[statement])
}

// afterAppend prepares partitions when the log approaches the end of the existing ones. The commit has already happened, so errors are only logged.
func (s *Store) afterAppend(ctx context.Context, seq int64) {
	if seq == 0 || seq%(partitionRows/4) != 0 {
		return
	}
	err := s.apart(ctx, func(conn *pgx.Conn) error { return s.makeRoom(ctx, conn) })
	if err != nil {
		s.notes.Error("no room could be made in the event log", "error", err)
	}
}

// makeRoom creates partitions ahead of the newest number of the log. Any number of processes may do so at once.
func (s *Store) makeRoom(ctx context.Context, conn *pgx.Conn) error {
	if !s.partitions.TryLock() {
		return nil // another goroutine of this process is doing it
	}
	defer s.partitions.Unlock()
	var used, newest int64
	if err := conn.QueryRow(ctx, s.cold["log_position"]).Scan(&used); err != nil {
		return err
	}
	return s.inOne(ctx, conn, func(tx pgx.Tx) error {
		if err := s.lockSchema(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, s.cold["newest_partition"]).Scan(&newest); err != nil {
			return err
		}
		for k := newest + 1; k <= used/partitionRows+ahead; k++ {
			for _, statement := range []string{"create_partition", "attach_partition"} {
				if _, err := tx.Exec(ctx, s.partitionSQL(statement, k)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Maintain applies steps of the schema that have waited for older programs, creates log partitions, drops log rows older than logBefore, and vacuums small tables with a high turnover if the server's own vacuum
// does not keep up.
func (s *Store) Maintain(ctx context.Context, logBefore base.Time) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.catchUp(ctx)
	return fault(s.apart(ctx, func(conn *pgx.Conn) error {
		return errors.Join(s.makeRoom(ctx, conn), s.trimLog(ctx, conn, logBefore), s.vacuum(ctx, conn))
	}))
}

// trimLog raises the floor of the log above everything older than before, drops the partitions below it, and deletes the remaining rows.
func (s *Store) trimLog(ctx context.Context, conn *pgx.Conn, before base.Time) error {
	if before.IsZero() {
		return nil
	}
	floor, err := s.floorFor(ctx, conn, before)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, s.cold["partitions"])
	if err != nil {
		return err
	}
	type partition struct {
		name    string
		number  int64
		pending bool
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p partition, err error) {
		err = row.Scan(&p.name, &p.number, &p.pending)
		return p, err
	})
	if err != nil {
		return err
	}
	for _, p := range all {
		if (p.number+1)*partitionRows > floor+1 {
			break
		}
		if err := s.dropPartition(ctx, conn, p.number, p.pending); err != nil {
			return err
		}
	}
	if _, err = conn.Exec(ctx, s.cold["trim_log"], floor); err != nil {
		return err
	}
	return s.trimIndex(ctx, conn, floor)
}

// trimIndex drops the index of the log up to a floor, some rows at a time.
func (s *Store) trimIndex(ctx context.Context, conn *pgx.Conn, floor int64) error {
	if s.level.Load() < indexStep {
		return nil
	}
	for {
		done, err := conn.Exec(ctx, s.cold["trim_mentions"], store.Era(floor+1))
		if err != nil || done.RowsAffected() == 0 {
			return err
		}
	}
}

// floorFor returns the last number of the log that is older than before, or the present floor. It never passes a number that may still be
// committed.
func (s *Store) floorFor(ctx context.Context, conn *pgx.Conn, before base.Time) (int64, error) {
	var floor, first int64
	if err := conn.QueryRow(ctx, s.cold["raise_floor"], int64(0)).Scan(&floor); err != nil {
		return 0, err
	}
	answer, err := s.Poll(ctx, store.PollAsk{})
	if err != nil {
		return 0, err
	}
	end := answer.LogEnd
	switch err := conn.QueryRow(ctx, s.cold["first_kept"], floor, int64(before)).Scan(&first); {
	case errors.Is(err, pgx.ErrNoRows):
		first = end + 1
	case err != nil:
		return 0, err
	}
	if floor = max(floor, min(end, first-1)); floor == 0 {
		return 0, nil
	}
	err = conn.QueryRow(ctx, s.cold["raise_floor"], floor).Scan(&floor)
	return floor, err
}

func (s *Store) dropPartition(ctx context.Context, conn *pgx.Conn, k int64, pending bool) error {
	detach := "detach_partition"
	if pending {
		detach = "finish_detaching" // an earlier attempt was interrupted
	}
	for _, statement := range []string{detach, "drop_partition"} {
		if _, err := conn.Exec(ctx, s.partitionSQL(statement, k)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) vacuum(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, s.cold["bloated"])
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := conn.Exec(ctx, strings.ReplaceAll(s.cold["vacuum"], "{table}", table)); err != nil {
			return err
		}
	}
	return nil
}
