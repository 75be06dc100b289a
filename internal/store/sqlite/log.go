package sqlite

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Log returns commits after a position. Commits are serialized here, so none can become visible behind a reader.
func (s *Store) Log(ctx context.Context, after int64, limit int) (commits []store.Commit, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.each("read log", func(r row) error {
			commit := store.Commit{Seq: r.Int(0), At: r.time(1)}
			commit.Events, commit.Unreadable = store.DecodeCommit(r.Bytes(2))
			commits = append(commits, commit)
			return nil
		}, after, int64(limit))
	})
	if err != nil {
		return nil, err
	}
	return commits, nil
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
	for dropped := int64(dropAtOnce); err == nil && dropped == dropAtOnce; {
		err = s.write(ctx, eventually, func(c *conn) (err error) {
			dropped, err = c.change("drop log", firstKept, int64(dropAtOnce))
			return err
		})
	}
	return err
}
