package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
)

// What Config.Migrate may say.
const (
	MigrateAuto  = "auto"  // bring the schema up to date at start
	MigrateCheck = "check" // refuse to start unless it is
	MigrateOff   = "off"   // do not look, but refuse a newer one
)

// What holds unless Config says otherwise.
const (
	DefaultPool    = 8
	DefaultTimeout = 30 * time.Second
	DefaultIdle    = 5 * time.Second
	// DefaultLockWait is much longer than transactions take, and too short to be noticed by those who wait behind a batch.
	DefaultLockWait = 50 * time.Millisecond
)

// Config says how to use a Postgres. The zero value is good for a server that is reached directly.
type Config struct {
	// DirectURL reaches the same database without the pooler that the main address goes through; hints are heard there and
	// migrations run there. "" unless there is a pooler.
	DirectURL string
	// Pooled says that the main address goes through a pooler in transaction mode. It is implied by DirectURL, and found out otherwise. Without a
	// DirectURL no hints are heard then, and the poll alone wakes this process.
	Pooled bool
	// PoolSize is the number of connections, at most. 0: DefaultPool.
	PoolSize int
	// Migrate is MigrateAuto, MigrateCheck or MigrateOff. "": MigrateAuto.
	Migrate string
	// UnsafeDurability lets the store start on a server that may lose acknowledged commits.
	UnsafeDurability bool
	// Timeout bounds every call, and every statement of one on the server. 0: DefaultTimeout.
	Timeout time.Duration
	// IdleLimit is after how long the server ends a session that is in a transaction and says nothing: its process is frozen, and
	// others wait for its locks. 0: DefaultIdle.
	IdleLimit time.Duration
	// LockWait is how long a batch waits for a row that another transaction holds before it is given up, and goes on without what needs the
	// row. 0: DefaultLockWait.
	LockWait time.Duration
	// Now replaces the database's clock, for tests. Nil: the database's.
	Now func() core.Time
	// Kept holds connections between the end of one store and the opening of another on the same database, for tests. Nil: they end with
	// the store.
	Kept *Kept
	// Clock is the host's, for deadlines of waits and for carrying on the database's clock. Nil: the system's.
	Clock clock.Clock
	// Logger hears of trouble that no call reports. Nil: nobody does.
	Logger *slog.Logger
}

func (c *Config) pooled() bool { return c.Pooled || c.DirectURL != "" }

// normalize fills in the defaults and reports every problem at once.
func (c *Config) normalize() error {
	var problems []error
	if c.PoolSize < 0 {
		problems = append(problems, fmt.Errorf("config: PoolSize %d is negative", c.PoolSize))
	}
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("config: Timeout %s is negative", c.Timeout))
	}
	if c.IdleLimit < 0 {
		problems = append(problems, fmt.Errorf("config: IdleLimit %s is negative", c.IdleLimit))
	}
	if c.LockWait < 0 {
		problems = append(problems, fmt.Errorf("config: LockWait %s is negative", c.LockWait))
	}
	switch c.Migrate {
	case "", MigrateAuto, MigrateCheck, MigrateOff:
	default:
		problems = append(problems, fmt.Errorf("config: Migrate %q is none of auto, check, off", c.Migrate))
	}
	if err := errors.Join(problems...); err != nil {
		return core.Invalid("store", "%w", err)
	}
	if c.PoolSize == 0 {
		c.PoolSize = DefaultPool
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.IdleLimit == 0 {
		c.IdleLimit = DefaultIdle
	}
	if c.LockWait == 0 {
		c.LockWait = DefaultLockWait
	}
	if c.Migrate == "" {
		c.Migrate = MigrateAuto
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
