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
		Use: "restore FILE", Short: "Make a copy the store", Args: counted(cobra.ExactArgs(1)),
		Example: examples("flowfabric restore monday.db --store sqlite:ff.db\nflowfabric restore monday.db --store sqlite:ff.db --force\n" +
			"flowfabric restore monday.dump --store postgres://flowfabric@db/flowfabric"),
	}
	storeFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "throw away the store that is there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values, err := s.storeSettings(cmd)
		if err != nil {
			return err
		}
		address := settings.Get[string](values, "store")
		if isPostgres(address) {
			return s.printTool(address, "pg_restore --clean --if-exists --no-owner --dbname=%s "+shellWord(args[0]))
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.restoreFile(ctx, args[0], strings.TrimPrefix(address, "sqlite:"), force)
		})
	}
	return cmd
}

// restoreFile puts a copy that can be opened in the place of the store, which nobody may have open. What is there stays until the copy
// lies whole beside it.
func (s *session) restoreFile(ctx context.Context, from, to string, force bool) error {
	err := onCopy(from, func(path, _ string) error {
		return s.withOpened(ctx, "sqlite:"+path, embedded.Config{EngineConfig: flowfabric.EngineConfig{Migrate: api.MigrateOff}}, func(*flowfabric.Client) error { return nil })
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil && !force {
		return show.Invalid("--store", "give --force to throw it away", "%s is there already", to)
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

// notInUse refuses a SQLite store that somebody has open. One that cannot be opened for another reason nobody has.
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

// removeStore deletes a SQLite store that nobody has open.
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
