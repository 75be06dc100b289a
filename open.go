package flowfabric

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
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
}

func (cfg OpenConfig) withDefaults() OpenConfig {
	if cfg.Namespace == "" {
		cfg.Namespace = core.DefaultNamespace
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
// when the database is too old, too new or not durable.
func Open(ctx context.Context, address string, cfg ...OpenConfig) (Client, error) {
	options, err := single(cfg)
	if err != nil {
		return nil, err
	}
	options = options.withDefaults()
	if err := core.CheckNamespace(options.Namespace); err != nil {
		return nil, publicError(err)
	}
	hooks := engine.HooksOf(ctx)
	st, err := openStore(ctx, address, options, hooks)
	if err != nil {
		return nil, openError(err)
	}
	if hooks.Clock == nil {
		hooks.Clock = clock.System()
	}
	e, err := engine.Open(ctx, st, engine.Config{
		Clock: hooks.Clock, Logger: options.Logger, NoTimers: options.NoEngine, Probe: hooks.Probe,
	})
	if err != nil {
		return nil, openError(errors.Join(err, st.Close()))
	}
	return newEmbedded(e, st, hooks.Clock, options), nil
}

// openStore opens the store that the address names.
func openStore(ctx context.Context, address string, cfg OpenConfig, hooks engine.Hooks) (store.Store, error) {
	scheme, path, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		options := sqlite.Config{UnsafeDurability: hooks.UnsafeDurability}
		if hooks.Clock != nil {
			options.Clock = hooks.Clock.Now
		}
		return sqlite.Open(ctx, path, options)
	case "postgres", "postgresql":
		options := postgres.Config{
			DirectURL: cfg.DirectURL, Logger: cfg.Logger, Clock: hooks.Clock, UnsafeDurability: hooks.UnsafeDurability,
		}
		if hooks.Clock != nil {
			options.Now = func() core.Time { return core.TimeOf(hooks.Clock.Now()) }
		}
		return postgres.Open(ctx, address, options)
	default:
		return nil, core.Invalid("store", "no store is called %q", scheme).WithHint("use sqlite:PATH or postgres://…")
	}
}

// openError shows a database that cannot be reached as such.
func openError(err error) error {
	var refusal *core.Error
	if !errors.As(err, &refusal) && store.FaultOf(err) == store.Unavailable {
		return newError(core.CodeStoreUnavailable, "the store does not answer: %w", err)
	}
	return publicError(err)
}
