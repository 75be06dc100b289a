package sqlite

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Log returns commits after a position. Commits are serialized here, so none can become visible behind a reader.
func (s *Store) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = s.read(ctx, func(c *conn) error {
		stored := 0
		return c.each("read log", func(r row) error {
			commit := commitOf(r)
			commits = append(commits, commit)
			if stored += commit.Stored; stored >= store.LogBytes {
				return errFull
			}
			return nil
		}, after, int64(limit))
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return commits, nil
}

// errFull ends a statement whose further rows are not needed.
var errFull = errors.New("the answer is full")

func commitOf(r row) store.Commit {
	body := r.Bytes(2)
	commit := store.Commit{Seq: r.Int(0), At: r.time(1), Stored: len(body)}
	commit.Events, commit.Unreadable = store.DecodeCommit(body)
	return commit
}

// dropAtOnce bounds the transactions that drop log rows, so that writers do not wait long.
const dropAtOnce = 500

// Maintain drops old log rows and lets SQLite update its table statistics. Free pages are reused; the file does not shrink.
func (s *Store) Maintain(ctx context.Context, logBefore base.Time) error {
	if logBefore != 0 {
		if err := s.dropLog(ctx, logBefore); err != nil {
			return err
		}
	}
	return s.write(ctx, eventually, func(c *conn) error { return c.run("optimize") })
}

func (s *Store) dropLog(ctx context.Context, before base.Time) error {
	var firstKept int64
	err := s.read(ctx, func(c *conn) error {
		return c.search(ctx, s.statements["first kept commit"], func(r row) error { firstKept = r.Int(0); return nil }, []any{int64(before)})
	})
	if err != nil {
		return err
	}
	if err := s.dropRows(ctx, "drop log", firstKept); err != nil || s.info.Schema < indexSchema {
		return err
	}
	return s.dropRows(ctx, "drop mentions", store.Era(firstKept))
}

// dropRows removes rows below a bound, some at a time.
func (s *Store) dropRows(ctx context.Context, statement string, below int64) error {
	for {
		var dropped int64
		err := s.write(ctx, eventually, func(c *conn) (err error) {
			dropped, err = c.change(statement, below, int64(dropAtOnce))
			return err
		})
		if err != nil || dropped < dropAtOnce {
			return err
		}
	}
}
