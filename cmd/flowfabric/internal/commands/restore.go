package commands

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
)

func (s *session) restore() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore a store from a backup", Args: counted(cobra.ExactArgs(1)),
		Long: "Restore a store from a backup, and check it. No server may have the store open.\n\n" +
			"A Postgres store is restored with pg_restore, which must be on the PATH, in one transaction, into a database without a store.",
		Example: examples("flowfabric restore monday.db --store sqlite:ff.db\nflowfabric restore monday.db --store sqlite:ff.db --force\n" +
			"flowfabric restore monday.dump --store postgres://flowfabric@db/flowfabric"),
	}
	storeFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace the existing store")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		address := settings.Get[string](values, "store")
		if isPostgres(address) {
			return s.during(cmd, func(ctx context.Context) error { return s.restoreDump(ctx, args[0], values, force) })
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.restoreFile(ctx, args[0], strings.TrimPrefix(address, "sqlite:"), force)
		})
	}
	return cmd
}

// restoreFile replaces the store, which must not be open, by a copy that can be opened. The old store is removed only after the
// copy is complete next to it.
func (s *session) restoreFile(ctx context.Context, from, to string, force bool) error {
	err := onCopy(from, func(path, _ string) error {
		return s.withOpened(ctx, "sqlite:"+path, embedded.Config{EngineConfig: flowfabric.EngineConfig{Migrate: api.MigrateOff}}, func(*flowfabric.Client) error { return nil })
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil && !force {
		return show.Invalid("--store", "use --force to replace it", "%s already exists", to)
	}
	if err := notInUse(ctx, to); err != nil {
		return err
	}
	partial := to + ".partial"
	sum, err := copyFile(from, partial)
	if err == nil {
		_, err = compareChecksum(from, sum)
	}
	if err == nil {
		err = removeStore(ctx, to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, to); err != nil {
		return err
	}
	s.printer.Note("restored to %s", to)
	return nil
}

// notInUse refuses a SQLite store that is open. One that cannot be opened for another reason is not in use.
func notInUse(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := embedded.SchemaOf(ctx, "sqlite:"+path)
	if flowfabric.CodeOf(err) == "store_locked" {
		return err
	}
	return nil
}

// removeStore deletes a SQLite store that is not open.
func removeStore(ctx context.Context, path string) error {
	if err := notInUse(ctx, path); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
