package bench

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed sql/*.sql
var statements embed.FS

// text is a statement of this package.
func text(name string) (string, error) {
	b, err := statements.ReadFile("sql/" + name + ".sql")
	return string(b), err
}

// RawConfig says how a database alone is measured. The zero value is what Scenarios uses in full runs.
type RawConfig struct {
	Rows        int   // in each phase; 0: 60,000
	Batches     []int // rows a transaction; nil: 100, 500, 1000
	Connections int   // 0: 2 on Postgres; SQLite has one writer
	Body        int   // bytes a row; 0: 64
}

func (c RawConfig) filled() RawConfig {
	if c.Rows == 0 {
		c.Rows = 60_000
	}
	if c.Batches == nil {
		c.Batches = []int{100, 500, 1000}
	}
	if c.Connections == 0 {
		c.Connections = 2
	}
	if c.Body == 0 {
		c.Body = 64
	}
	return c
}

// rowID is a UUID of version 7: ordered by time, as ours are.
type rowID [16]byte

func newRowID() rowID {
	var id rowID
	_, _ = rand.Read(id[6:]) // never fails
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(id[:6], ms[2:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// rawClaim is a batch of rows under one lease.
type rawClaim struct {
	lease rowID
	ids   []rowID
}

// leaseTTL is how long a claim would hold.
const leaseTTL = 30 * time.Second

// rawTable is a fresh, empty table of jobs with its connections. A conn is used by one goroutine at a time; every call is one
// transaction.
type rawTable struct {
	conns []rawConn
	close func()
}

type rawConn interface {
	insert(ctx context.Context, n int) error
	claim(ctx context.Context, n int) (rawClaim, error)
	complete(ctx context.Context, c rawClaim) error
	count(ctx context.Context) (completed, all int, err error)
}

// measureRaw takes, for each size of batch, the whole cycle (every connection inserts, claims and completes in turn), then a backlog
// that is inserted first and worked off after, each on a fresh table.
func measureRaw(ctx context.Context, cfg RawConfig, open func(ctx context.Context) (*rawTable, error)) (*Sample, error) {
	sample := &Sample{}
	for _, n := range cfg.Batches {
		took, err := cycle(ctx, cfg.Rows, n, open, sample)
		if err != nil {
			return nil, fmt.Errorf("cycle in batches of %d: %w", n, err)
		}
		sample.Rate(fmt.Sprintf("cycle.%d", n), cfg.Rows, took)
		inserted, drained, err := backlog(ctx, cfg.Rows, n, open, sample)
		if err != nil {
			return nil, fmt.Errorf("backlog in batches of %d: %w", n, err)
		}
		sample.Rate(fmt.Sprintf("insert.%d", n), cfg.Rows, inserted)
		sample.Rate(fmt.Sprintf("drain.%d", n), cfg.Rows, drained)
	}
	return sample, nil
}

func cycle(ctx context.Context, rows, n int, open func(context.Context) (*rawTable, error), sample *Sample) (time.Duration, error) {
	table, err := open(ctx)
	if err != nil {
		return 0, err
	}
	defer table.close()
	took, err := table.work(ctx, rows, func(ctx context.Context, conn rawConn, left *atomic.Int64) error {
		for left.Add(int64(-n)) >= 0 {
			if err := conn.insert(ctx, n); err != nil {
				return err
			}
			if err := claimAndComplete(ctx, conn, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return took, table.check(ctx, rows, sample)
}

func backlog(ctx context.Context, rows, n int, open func(context.Context) (*rawTable, error), sample *Sample) (inserted, drained time.Duration, err error) {
	table, err := open(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer table.close()
	inserted, err = table.work(ctx, rows, func(ctx context.Context, conn rawConn, left *atomic.Int64) error {
		for left.Add(int64(-n)) >= 0 {
			if err := conn.insert(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	drained, err = table.work(ctx, rows, func(ctx context.Context, conn rawConn, left *atomic.Int64) error {
		for left.Add(int64(-n)) >= 0 {
			if err := claimAndComplete(ctx, conn, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return inserted, drained, table.check(ctx, rows, sample)
}

// claimAndComplete works off n rows. There are always enough: every connection takes as many as were inserted on its account.
func claimAndComplete(ctx context.Context, conn rawConn, n int) error {
	for n > 0 {
		c, err := conn.claim(ctx, n)
		if err != nil {
			return err
		}
		if len(c.ids) == 0 {
			continue
		}
		if err := conn.complete(ctx, c); err != nil {
			return err
		}
		n -= len(c.ids)
	}
	return nil
}

// work runs f on every connection at once; together they count rows down to zero.
func (t *rawTable) work(ctx context.Context, rows int, f func(ctx context.Context, conn rawConn, left *atomic.Int64) error) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(rows))
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for _, conn := range t.conns {
		group.Go(func() error { return f(ctx, conn, &left) })
	}
	err := group.Wait()
	return time.Since(began), err
}

// check compares what is in the table with what was put there.
func (t *rawTable) check(ctx context.Context, rows int, sample *Sample) error {
	completed, all, err := t.conns[0].count(ctx)
	if err == nil && (completed != rows || all != rows) {
		sample.Fail("%d of %d rows are completed, want %d of %d", completed, all, rows, rows)
	}
	return err
}
