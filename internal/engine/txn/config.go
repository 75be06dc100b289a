package txn

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Config sets up an Engine. Its zero value is a useful engine.
type Config struct {
	Clock            clock.Clock            // nil: the host's
	Logger           *slog.Logger           // nil: slog.Default()
	Limits           base.Limits            // zero: base.DefaultLimits()
	QueueLimit       int                    // commands that may wait for a commit; 0 = 8192 (S72)
	BatchLimit       int                    // commands a commit; 0 = 1000
	MaxWaitingClaims int                    // 0 = 10 000 (S23)
	PollInterval     time.Duration          // safety-net look at the store; 0 = 1 s (S71)
	StoreTimeout     time.Duration          // bounds one transaction; 0 = 30 s
	LeaseTTL         base.Millis            // of a claim that names none; 0 = 30 000
	Retention        core.RetentionByStatus // absent: the defaults of L139
	EventRetention   time.Duration          // 0 = 7 days, negative: for ever (E37)
	AuditRetention   time.Duration          // 0 = 9600 hours, negative: for ever (U131)
	MasterKey        keyring.MasterKey      // seals stored secrets; zero: they are stored in clear (W24)
	SigningKey       *keyring.SeedCommand   // that is seeded at start; nil: a random one where there is none (W23)
	NoTimers         bool                   // submit and read only; another process turns the timers and serves claims
	Probe            Probe                  // nil in production
	Trap             Trap                   // nil in production
	Tracer           Tracer                 // nil: no spans
	Mint             func() base.UUID       // makes ids, for tests that compare engines; nil: random ones
	Draw             func() float64         // numbers in [0,1) that spread retries, for tests that repeat a run; nil: random ones
}

// Probe is called before and after every commit. Tests use it to stop a process at a chosen point.
type Probe interface {
	// BeforeCommit may refuse the transaction: it is rolled back and its commands fail with the error.
	BeforeCommit(commands []string) error
	// AfterCommit may replace the answer: the commands are committed, but their callers get the error.
	AfterCommit(commands []string) error
}

// Trap is called wherever the engine handles a row, with the name of the place and the id of the row. Tests use it to panic there, or to count how
// many are there at a time.
type Trap func(place, row string)

// How much is done at a time, and for how long.
const (
	commitLines     = 2                // transactions of a committer at a time, on a store with row locks; more only contend with each other
	deepQueue       = 256              // number of waiting commands that are worth a second transaction
	TimerGrid       = base.Millis(50)  // due times are rounded up to this, so that one commit makes few entries (L19)
	leaseTimerReach = 10 * base.Minute // a running execution's timer is armed at most this far ahead, so that entries of finished work are removed soon
	ClaimRecordLook = base.Minute      // how often it is checked whether the leases of a recorded claim are still held
	RequestWindow   = 24 * base.Hour   // how long recorded answers are kept (W4)
)

func (cfg Config) withDefaults() Config {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Limits == (base.Limits{}) {
		cfg.Limits = base.DefaultLimits()
	}
	if cfg.Draw == nil {
		cfg.Draw = rand.Float64
	}
	SetDefault(&cfg.QueueLimit, 8192)
	SetDefault(&cfg.BatchLimit, 1000)
	SetDefault(&cfg.MaxWaitingClaims, 10_000)
	SetDefault(&cfg.PollInterval, time.Second)
	SetDefault(&cfg.StoreTimeout, 30*time.Second)
	SetDefault(&cfg.LeaseTTL, 30*base.Second)
	SetDefault(&cfg.EventRetention, 7*24*time.Hour)
	SetDefault(&cfg.AuditRetention, 9600*time.Hour)
	cfg.Retention = core.WithDefaultRetention(cfg.Retention)
	return cfg
}

// SetDefault sets a field that has its zero value.
func SetDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Hooks is what a test environment puts in place of the world around an engine. It travels in the context with which the engine
// is opened, so that no public type shows it.
type Hooks struct {
	Clock clock.Clock // nil: the host's, and the store's own
	Probe Probe
	// UnsafeDurability lets the store skip what only a loss of power needs.
	UnsafeDurability bool
	// StoreTimeout bounds a transaction, and every call of the store. 0: ten minutes, because a large command takes as long as a busy machine
	// lets it, and what a test shows must not depend on that.
	StoreTimeout time.Duration
}

type hooksKey struct{}

// WithHooks returns a context that carries the hooks.
func WithHooks(ctx context.Context, h Hooks) context.Context {
	SetDefault(&h.StoreTimeout, 10*time.Minute)
	return context.WithValue(ctx, hooksKey{}, h)
}

// HooksOf finds the hooks in a context; zero ones when it carries none.
func HooksOf(ctx context.Context) Hooks {
	h, _ := ctx.Value(hooksKey{}).(Hooks)
	return h
}
