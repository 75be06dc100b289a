package commands

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
)

// storeSettings reads the settings of a command that opens a store without a server.
func (s *session) storeSettings(cmd *cobra.Command) (*settings.Values, error) {
	flags := given(cmd)
	values, problems := settings.Load(settings.Server(), settings.Sources{File: flags["config"], Environ: s.Environ, Flags: flags})
	if err := s.problems(problems); err != nil {
		return nil, err
	}
	if settings.Get[string](values, "store") == "" {
		return nil, show.Invalid("--store", "give --store sqlite:PATH or --store postgres://…", "the store is missing")
	}
	return values, nil
}

// namesStore reports whether a command opens a store itself instead of using a server.
func namesStore(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("store") || cmd.Flags().Changed("store-file") || cmd.Flags().Changed("config")
}

// thereMustBe refuses a file that opening would create.
func thereMustBe(address string) error {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		if _, err := os.Stat(path); err != nil {
			return show.Invalid("--store", "create it with flowfabric migrate up, or by starting a server on it", "%s", err)
		}
	}
	return nil
}

// storeFlags adds the flags that name a store and say how to open it.
func storeFlags(cmd *cobra.Command) {
	settingFlags(cmd.Flags(), slices.DeleteFunc(slices.Clone(settings.Server()), func(s settings.Setting) bool {
		return !slices.Contains([]string{"store", "store-schema", "master-key"}, s.Name)
	}))
	cmd.Flags().String("config", "", "file of FF_NAME=value lines")
}

// storeConfig returns the settings for opening a store.
func storeConfig(v *settings.Values, migrate api.MigrateMode) embedded.Config {
	return embedded.Config{
		EngineConfig: flowfabric.EngineConfig{
			Migrate:          migrate,
			MasterKey:        settings.Get[string](v, "master-key"),
			UnsafeDurability: settings.Get[bool](v, "unsafe-durability"),
		},
		Schema:    settings.Get[string](v, "store-schema"),
		DirectURL: settings.Get[string](v, "store-direct-url"),
	}
}

// withStore calls do with a store opened without an engine. A store that does not exist is not created.
func (s *session) withStore(ctx context.Context, v *settings.Values, migrate api.MigrateMode, do func(c *flowfabric.Client) error) error {
	return s.withOpened(ctx, settings.Get[string](v, "store"), storeConfig(v, migrate), do)
}

// withOpened is withStore with other options for opening.
func (s *session) withOpened(ctx context.Context, address string, cfg embedded.Config, do func(c *flowfabric.Client) error) error {
	if cfg.Migrate != api.MigrateAuto {
		if err := thereMustBe(address); err != nil {
			return err
		}
	}
	cfg.NoEngine, cfg.Principal = true, "cli"
	cfg.Logger = slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	client, err := embedded.Open(ctx, address, cfg)
	if err != nil {
		return notOpened(err)
	}
	return errors.Join(do(client), client.Close(context.WithoutCancel(ctx)))
}

// notOpened adds a hint to the error of a store that does not answer: no server is involved.
func notOpened(err error) error {
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) || refusal.Code != codeUnavailable || refusal.Hint != "" {
		return err
	}
	hinted := *refusal
	hinted.Hint = "check that the database is running, and the address: --store, --store-file or FF_STORE"
	return &hinted
}

func isPostgres(address string) bool { return strings.HasPrefix(address, "postgres") }
