package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Kept holds connections to one database that no store uses at the moment. Starting a session and preparing its statements costs a server more than
// most tests do. The zero value is empty.
type Kept struct {
	mu    sync.Mutex
	pools []keptPool
	apart []*pgx.Conn
}

// toFinish is how long a statement may continue after its context ends. A connection on which a statement is interrupted cannot be used again, and
// whenever an engine is closed, its loops have short statements under way.
const toFinish = time.Second

// finishing gives the statements of a connection that may be kept time to end.
func finishing(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn(), DeadlineDelay: toFinish}
}

// keptPool is a pool whose connections were set up with these settings.
type keptPool struct {
	pool *pgxpool.Pool
	size int
	// The statements that they have prepared are for tables in this schema.
	schema string
	// The settings of the sessions.
	timeout, idleLimit, lockWait time.Duration
}

type keptKey struct{}

// WithKept returns a context that makes a store opened with it keep its connections like Config.Kept. It serves tests that open a store by its
// address alone.
func WithKept(ctx context.Context, k *Kept) context.Context {
	return context.WithValue(ctx, keptKey{}, k)
}

// Close ends the connections.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kept := range k.pools {
		kept.pool.Close()
	}
	for _, conn := range k.apart {
		_ = conn.Close(context.Background())
	}
	k.pools, k.apart = nil, nil
}

// Len returns the number of connections.
func (k *Kept) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.apart)
	for _, kept := range k.pools {
		n += int(kept.pool.Stat().TotalConns())
	}
	return n
}

// pool takes a pool that suits the store; nil if there is none.
func (k *Kept) pool(cfg *Config) *pgxpool.Pool {
	if k == nil || cfg.perTransaction() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, kept := range k.pools {
		if kept.size == cfg.PoolSize && kept.schema == cfg.Schema && kept.timeout == cfg.Timeout && kept.idleLimit == cfg.IdleLimit && kept.lockWait == cfg.LockWait {
			k.pools = append(k.pools[:i], k.pools[i+1:]...)
			return kept.pool
		}
	}
	return nil
}

// keepPool reports whether it keeps the pool of a closed store. A pool with a connection that stays in use is not kept.
func (k *Kept) keepPool(cfg *Config, pool *pgxpool.Pool) bool {
	if k == nil || cfg.perTransaction() || !allGivenBack(pool) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pools = append(k.pools, keptPool{pool, cfg.PoolSize, cfg.Schema, cfg.Timeout, cfg.IdleLimit, cfg.LockWait})
	return true
}

// allGivenBack waits as long as a statement may take to end, and reports whether no connection of the pool is in use then. A broken connection
// counts as used until it is closed in the background.
func allGivenBack(pool *pgxpool.Pool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(toFinish); pool.Stat().AcquiredConns() > 0; {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

// conn takes a separate connection; nil if there is none.
func (k *Kept) conn() *pgx.Conn {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last := len(k.apart) - 1
	if last < 0 {
		return nil
	}
	conn := k.apart[last]
	k.apart = k.apart[:last]
	return conn
}

// keepConn reports whether it keeps a connection. A connection that is broken or in a transaction is not kept.
func (k *Kept) keepConn(conn *pgx.Conn) bool {
	if k == nil || conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I' {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.apart = append(k.apart, conn)
	return true
}
