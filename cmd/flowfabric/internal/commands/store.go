package commands

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// storeSettings reads the settings of a command that works on a store without a server.
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

// storeAddress is the store that a command works on without a server.
func (s *session) storeAddress(cmd *cobra.Command) (string, error) {
	values, err := s.storeSettings(cmd)
	if err != nil {
		return "", err
	}
	return settings.Get[string](values, "store"), nil
}

// thereMustBe refuses a file that would be made by opening it.
func thereMustBe(address string) error {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		if _, err := os.Stat(path); err != nil {
			return show.Invalid("--store", "make it with flowfabric migrate up, or by starting a server on it", "%s", err)
		}
	}
	return nil
}

// storeFlags gives a command --store and --config.
func storeFlags(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "sqlite:PATH or postgres://…")
	cmd.Flags().String("config", "", "file of FF_NAME=value lines")
}

// withStore calls do with a store that is opened without an engine. What is not there is not made.
func (s *session) withStore(ctx context.Context, address, migrate string, do func(c flowfabric.Client) error) error {
	return s.withOpened(ctx, address, flowfabric.OpenConfig{Migrate: migrate}, do)
}

// withOpened is withStore for a store that is opened in a certain way.
func (s *session) withOpened(ctx context.Context, address string, cfg flowfabric.OpenConfig, do func(c flowfabric.Client) error) error {
	if cfg.Migrate != "auto" {
		if err := thereMustBe(address); err != nil {
			return err
		}
	}
	cfg.NoEngine, cfg.Principal = true, "cli"
	cfg.Logger = slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	client, err := flowfabric.Open(ctx, address, cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close(context.WithoutCancel(ctx)))
}

func isPostgres(address string) bool { return strings.HasPrefix(address, "postgres") }
