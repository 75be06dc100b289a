package inprocess

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/jsonx"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Store describes a store to open.
type Store struct {
	// Open opens it with the given options.
	Open func(ctx context.Context, o StoreOptions) (store.Store, error)
	// Checks returns the checks of the doctor on the location of the store; may be nil.
	Checks func() []api.Check
	// DirectURL means that besides the address of a pooler there is one that bypasses the pooler.
	DirectURL string
	// Settings are those specific to this kind of store.
	Settings []api.Setting
}

// StoreOptions are the options for opening any store.
type StoreOptions struct {
	Migrate          api.MigrateMode
	UnsafeDurability bool
	Program          string // version of this program
	Logger           *slog.Logger
	Clock            clock.Clock   // of a test; nil: the clocks of the host and of the database
	Timeout          time.Duration // of a test: bounds every call; 0: the default of the store
}

// program is the version of this program, with its commit where the version says little.
func program() string {
	version, commit := service.Built()
	if version == "" || version == "(devel)" {
		version = "(devel)"
		if len(commit) > commitDigits {
			commit = commit[:commitDigits]
		}
		version = strings.TrimSpace(version + " " + commit)
	}
	return version
}

// commitDigits is how much of a commit is shown.
const commitDigits = 12

// Open opens the store, runs an engine on it, and returns a client of it.
func Open(ctx context.Context, on Store, cfg flowfabric.EngineConfig) (*flowfabric.Client, error) {
	cfg = withDefaults(cfg)
	if err := base.CheckNamespace(cfg.Namespace); err != nil {
		return nil, api.AsError(err)
	}
	base, err := publicBase(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	cfg.PublicURL = base
	hooks := engine.HooksOf(ctx)
	setup, err := engineConfig(cfg, hooks)
	if err != nil {
		return nil, api.AsError(err)
	}
	targets, err := webhookAddresses(cfg.Webhooks)
	if err != nil {
		return nil, api.AsError(err)
	}
	st, err := on.Open(ctx, StoreOptions{
		Migrate: cfg.Migrate, UnsafeDurability: cfg.UnsafeDurability || hooks.UnsafeDurability, Logger: cfg.Logger, Clock: hooks.Clock,
		Timeout: hooks.StoreTimeout, Program: program(),
	})
	if err != nil {
		return nil, openError(err)
	}
	sender, sends := webhookSender(setup, targets)
	e, err := engine.Open(ctx, st, setup, sends)
	if err != nil {
		sender.Close()
		return nil, openError(errors.Join(err, st.Close()))
	}
	here := newEngine(e, st, cfg, settingsOf(cfg, on, e), on.Checks)
	here.sender = sender
	return flowfabric.NewClient(here.connection()), nil
}

func withDefaults(cfg flowfabric.EngineConfig) flowfabric.EngineConfig {
	cfg.Namespace = cmp.Or(cfg.Namespace, base.DefaultNamespace)
	cfg.Principal = cmp.Or(cfg.Principal, "local")
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// engineConfig returns the settings that the engine uses.
func engineConfig(cfg flowfabric.EngineConfig, hooks engine.Hooks) (engine.Config, error) {
	master, err := masterKey(cfg)
	if err != nil {
		return engine.Config{}, err
	}
	seed, err := signingKey(cfg)
	if err != nil {
		return engine.Config{}, err
	}
	return engine.Config{
		Clock: hooks.Clock, StoreTimeout: hooks.StoreTimeout, Logger: cfg.Logger, NoTimers: cfg.NoEngine, Probe: hooks.Probe, Tracer: tracerOf(cfg.Tracer),
		Limits: base.Limits{MaxPayload: cfg.MaxPayload}, QueueLimit: cfg.QueueLimit, BatchLimit: cfg.BatchLimit, MaxWaitingClaims: cfg.MaxClaims,
		PollInterval: cfg.PollInterval, LeaseTTL: jsonx.Milliseconds(cfg.LeaseTTL), Retention: service.CoreRetention(cfg.Retention), EventRetention: cfg.EventRetention,
		AuditRetention: cfg.AuditRetention, MasterKey: master, SigningKey: seed,
	}, nil
}

// openError marks a database that cannot be reached as such.
func openError(err error) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) && store.FaultOf(err) == store.Unavailable {
		return api.Errorf(string(base.CodeStoreUnavailable), "the store does not answer: %w", err)
	}
	return api.AsError(err)
}

// masterKey returns the key passed to Open, if any.
func masterKey(cfg flowfabric.EngineConfig) (keyring.MasterKey, error) {
	if cfg.MasterKey == "" {
		return keyring.MasterKey{}, nil
	}
	return keyring.ParseMasterKey(cfg.MasterKey)
}

// signingKey returns the key that Open is to seed; nil if there is none.
func signingKey(cfg flowfabric.EngineConfig) (*keyring.SeedCommand, error) {
	if cfg.SigningKid == "" && cfg.SigningSecret == "" {
		return nil, nil
	}
	seed, err := keyring.NewSeed(cfg.SigningKid, cfg.SigningSecret)
	return &seed, err
}

// keyGrace is how long a replaced secret stays valid unless the call sets it.
func keyGrace(cfg flowfabric.EngineConfig) time.Duration {
	if cfg.KeyGrace == 0 {
		return time.Duration(keyring.DefaultOverlap) * time.Millisecond
	}
	return cfg.KeyGrace
}
