package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/postgres"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// OpenConfig sets up an engine in this process. The zero value is useful.
type OpenConfig struct {
	Namespace string       // default "default"; the client sees nothing else
	Principal string       // default "local", with all roles; stands in events
	DirectURL string       // Postgres: for wake-ups when the store goes through a pooler
	NoEngine  bool         // submit and read only; another process turns the timers
	Logger    *slog.Logger // default slog.Default()
	Tracer    Tracer       // nil: no spans; package flowfabricotel makes one from OpenTelemetry
	// PublicURL is where a server on the same store is reached by people and callbacks: absolute, http or https, without query. It
	// stands before the addresses of links and callbacks; "": these are paths.
	PublicURL string

	Migrate          string        // what to do with an older schema: "auto" (default) brings it up to date, "check" refuses it, "off" takes it as it is
	StorePool        int           // connections to Postgres; default 8
	StoreTimeout     time.Duration // bound of every call to Postgres; default 30 s
	UnsafeDurability bool          // accept a database that may lose acknowledged commits when the power fails
	MaxPayload       int           // bytes of an input or result, up to 64 MiB; default 4 MiB
	QueueLimit       int           // commands that may wait for a commit; default 8192
	BatchLimit       int           // commands a commit; default 1000
	MaxClaims        int           // claims that may wait at a time; default 10 000
	PollInterval     time.Duration // safety-net look at store and timers; default 1 s
	LeaseTTL         time.Duration // of a claim that names none; default 30 s
	Retention        Retention     // of finished executions that neither policy nor lane says more about
	EventRetention   time.Duration // default 7 days; KeepForever: no end
	AuditRetention   time.Duration // default 9600 hours; KeepForever: no end
	KeyGrace         time.Duration // how long the old secret of a rotated API key, or the old signing key, works on unless the call says so; default a day, up to 30
	MasterKey        string        // seals the secrets in the store: 32 bytes as hexadecimal digits or base64; default none, they are stored in clear
	SigningKid       string        // name of the first signing key; default a random key where there is none
	SigningSecret    string        // its secret: 64 hexadecimal digits; goes with SigningKid
}

func (cfg OpenConfig) withDefaults() OpenConfig {
	if cfg.Namespace == "" {
		cfg.Namespace = base.DefaultNamespace
	}
	if cfg.Principal == "" {
		cfg.Principal = "local"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// Open opens a store and runs the engine on it in this process, until Close. The store is "sqlite:PATH", a file that is made if it
// does not exist and that one process has open at a time, or a "postgres://…" URL. Its schema is brought up to date.
//
// Codes: invalid_argument, store_locked when another process has the file open, store_unavailable, and others of the class invalid
// when the database is too old, too new or not durable. Of keys: invalid_kid, invalid_secret_hex, seed_conflict when the store has
// another signing key, master_key_required and master_key_mismatch when its secrets are sealed under another master key.
func Open(ctx context.Context, address string, cfg ...OpenConfig) (Client, error) {
	options, err := single(cfg)
	if err != nil {
		return nil, err
	}
	options = options.withDefaults()
	if err := base.CheckNamespace(options.Namespace); err != nil {
		return nil, publicError(err)
	}
	if options.PublicURL, err = publicBase(options.PublicURL); err != nil {
		return nil, err
	}
	hooks := engine.HooksOf(ctx)
	setup, err := options.engine(hooks)
	if err != nil {
		return nil, publicError(err)
	}
	st, err := openStore(ctx, address, options, hooks)
	if err != nil {
		return nil, openError(err)
	}
	e, err := engine.Open(ctx, st, setup)
	if err != nil {
		return nil, openError(errors.Join(err, st.Close()))
	}
	client := newEmbedded(e, st, e.Config().Clock, options)
	client.file = storeFile(address)
	return client, nil
}

// engine is the part of the settings that the engine takes.
func (cfg OpenConfig) engine(hooks engine.Hooks) (engine.Config, error) {
	master, err := cfg.masterKey()
	if err != nil {
		return engine.Config{}, err
	}
	seed, err := cfg.signingKey()
	if err != nil {
		return engine.Config{}, err
	}
	return engine.Config{
		Clock: hooks.Clock, Logger: cfg.Logger, NoTimers: cfg.NoEngine, Probe: hooks.Probe, Tracer: tracerOf(cfg.Tracer),
		Limits: base.Limits{MaxPayload: cfg.MaxPayload}, QueueLimit: cfg.QueueLimit, BatchLimit: cfg.BatchLimit, MaxWaitingClaims: cfg.MaxClaims,
		PollInterval: cfg.PollInterval, LeaseTTL: millis(cfg.LeaseTTL), Retention: service.CoreRetention(cfg.Retention), EventRetention: cfg.EventRetention,
		AuditRetention: cfg.AuditRetention, MasterKey: master, SigningKey: seed,
	}, nil
}

// openStore opens the store that the address names.
func openStore(ctx context.Context, address string, cfg OpenConfig, hooks engine.Hooks) (store.Store, error) {
	scheme, path, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		options := sqlite.Config{UnsafeDurability: cfg.UnsafeDurability || hooks.UnsafeDurability, Migrate: cfg.Migrate, Logger: cfg.Logger}
		if hooks.Clock != nil {
			options.Clock = hooks.Clock.Now
		}
		return sqlite.Open(ctx, path, options)
	case "postgres", "postgresql":
		options := postgres.Config{
			DirectURL: cfg.DirectURL, Logger: cfg.Logger, Clock: hooks.Clock, UnsafeDurability: cfg.UnsafeDurability || hooks.UnsafeDurability,
			Migrate: cfg.Migrate, PoolSize: cfg.StorePool, Timeout: cfg.StoreTimeout,
		}
		if hooks.Clock != nil {
			options.Now = func() base.Time { return base.TimeOf(hooks.Clock.Now()) }
		}
		return postgres.Open(ctx, address, options)
	default:
		return nil, noStore(scheme)
	}
}

// openError shows a database that cannot be reached as such.
func openError(err error) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) && store.FaultOf(err) == store.Unavailable {
		return newError(base.CodeStoreUnavailable, "the store does not answer: %w", err)
	}
	return publicError(err)
}

// masterKey is the one that Open was given; none when it was given none.
func (cfg OpenConfig) masterKey() (keyring.MasterKey, error) {
	if cfg.MasterKey == "" {
		return keyring.MasterKey{}, nil
	}
	return keyring.ParseMasterKey(cfg.MasterKey)
}

// signingKey is the one that Open was given to seed; nil when it was given none.
func (cfg OpenConfig) signingKey() (*keyring.SeedCommand, error) {
	if cfg.SigningKid == "" && cfg.SigningSecret == "" {
		return nil, nil
	}
	seed, err := keyring.NewSeed(cfg.SigningKid, cfg.SigningSecret)
	return &seed, err
}
