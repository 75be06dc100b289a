package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The values of Config.Migrate.
const (
	MigrateAuto  = "auto"  // migrate the schema at start
	MigrateCheck = "check" // refuse to start unless the schema is up to date
	MigrateOff   = "off"   // do not check, but refuse a newer schema
)

// The defaults of Config.
const (
	DefaultPool    = 8
	DefaultTimeout = 30 * time.Second
	DefaultIdle    = 5 * time.Second
	// DefaultLockWait is much longer than transactions take, and too short for commands that wait behind a batch to notice.
	DefaultLockWait = 50 * time.Millisecond
)

// DefaultSchema is the schema of the database that holds the tables unless Config names another.
const DefaultSchema = "flowfabric"

// Config configures a Postgres store. The zero value is suitable for a server that is reached directly.
type Config struct {
	// Schema is the schema of the database that holds the tables; it is created if it does not exist. "": DefaultSchema.
	Schema string
	// Program is the version of this program, for others that have the store open. "": unknown.
	Program string
	// DirectURL reaches the same database without the pooler of the main address; hints are received and migrations run there. "" unless there is a
	// pooler.
	DirectURL string
	// Pooled states that the main address goes through a pooler in transaction mode. It is implied by DirectURL, and detected otherwise. Without a
	// DirectURL no hints are received then, and only the poll wakes this process.
	Pooled bool
	// Pool is a pool of the user's, which is used in place of one of the store's own and never closed. Its size and its hooks stay the user's, and its
	// sessions keep their settings: what a transaction of the store needs is set for that transaction alone.
	Pool *pgxpool.Pool
	// PoolSize is the maximum number of connections. 0: DefaultPool, or that of Pool.
	PoolSize int
	// Migrate is MigrateAuto, MigrateCheck or MigrateOff. "": MigrateAuto.
	Migrate string
	// UnsafeDurability lets the store start on a server that may lose acknowledged commits.
	UnsafeDurability bool
	// Timeout bounds every call, and every statement on the server. 0: DefaultTimeout.
	Timeout time.Duration
	// IdleLimit is the time after which the server ends a session that is idle in a transaction: its process is frozen, and others wait for its
	// locks. 0: DefaultIdle.
	IdleLimit time.Duration
	// LockWait is how long a batch waits for a row that another transaction holds. After that the batch continues without the commands that need
	// the row. 0: DefaultLockWait.
	LockWait time.Duration
	// Now replaces the database's clock, for tests. Nil: the database's.
	Now func() base.Time
	// Kept holds connections between the closing of one store and the opening of another on the same database, for tests. Nil: they are closed with
	// the store.
	Kept *Kept
	// Clock is the host's clock, for deadlines of waits and for extrapolating the database's clock. Nil: the system's.
	Clock clock.Clock
	// Logger logs trouble that no call reports. Nil: nothing is logged.
	Logger *slog.Logger

	// steps replaces the steps of the schema, for tests. Nil: those of this program.
	steps []migration
}

// CheckSchema refuses a name that no schema of a store may have.
func CheckSchema(name string) error {
	if err := checkSchemaName(name); err != nil {
		return base.Invalid("store_schema", "%w", err).WithHint("use lower-case letters, digits and _, for example %s", DefaultSchema)
	}
	return nil
}

func checkSchemaName(name string) error {
	valid := name != "" && len(name) <= longestName && !strings.HasPrefix(name, "pg_") && name != "information_schema"
	for i, c := range name {
		valid = valid && (c == '_' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9')
	}
	if !valid {
		return fmt.Errorf("%q is not a name for the schema of a store", name)
	}
	return nil
}

// longestName is the maximum length of a name in Postgres.
const longestName = 63

// perTransaction reports whether each transaction needs its settings, because the sessions are shared with others: through a pooler, or in a pool of
// the user's.
func (c *Config) perTransaction() bool { return c.Pool != nil || c.pooled() }

// LeastPool is the smallest pool of a user that a store works with: one connection each for commits, reads, and the user's own transaction that
// waits for a command, and one to spare.
const LeastPool = 4

// checkPool takes the size from a pool of the user's.
func (c *Config) checkPool() error {
	if c.Pool == nil {
		return nil
	}
	most := int(c.Pool.Config().MaxConns)
	switch {
	case c.PoolSize != 0:
		return errors.New("config: PoolSize is set, and the pool has a size")
	case most < LeastPool:
		return fmt.Errorf("config: the pool has at most %d connections, and the store needs %d: raise MaxConns", most, LeastPool)
	}
	c.PoolSize = most
	return nil
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
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	if err := checkSchemaName(c.Schema); err != nil {
		problems = append(problems, fmt.Errorf("config: %w", err))
	}
	problems = append(problems, c.checkPool())
	if err := errors.Join(problems...); err != nil {
		return base.Invalid("store", "%w", err)
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
