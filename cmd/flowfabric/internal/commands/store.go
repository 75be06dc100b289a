package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// storeAddress is the store that a command works on without a server.
func (s *session) storeAddress(cmd *cobra.Command) (string, error) {
	flags := given(cmd)
	values, problems := settings.Load(settings.Server(), settings.Sources{File: flags["config"], Environ: s.Environ, Flags: flags})
	if err := s.problems(problems); err != nil {
		return "", err
	}
	address := settings.Get[string](values, "store")
	if address == "" {
		return "", show.Invalid("--store", "give --store sqlite:PATH or --store postgres://…", "the store is missing")
	}
	return address, nil
}

// storeFlags gives a command --store and --config.
func storeFlags(cmd *cobra.Command) {
	cmd.Flags().String("store", "", "sqlite:PATH or postgres://…")
	cmd.Flags().String("config", "", "file of FF_NAME=value lines")
}

// withStore calls do with a store that is opened without an engine. What is not there is not made.
func (s *session) withStore(ctx context.Context, address, migrate string, do func(c flowfabric.Client) error) error {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile && migrate != "auto" {
		if _, err := os.Stat(path); err != nil {
			return show.Invalid("--store", "make it with flowfabric migrate up, or by starting a server on it", "%s", err)
		}
	}
	client, err := flowfabric.Open(ctx, address, flowfabric.OpenConfig{
		NoEngine: true, Migrate: migrate, Principal: "cli", Logger: slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close(context.WithoutCancel(ctx)))
}

func isPostgres(address string) bool { return strings.HasPrefix(address, "postgres") }

func (s *session) migrate() *cobra.Command {
	step := func(use, short, mode, said string) *cobra.Command {
		cmd := &cobra.Command{
			Use: use, Short: short, Args: counted(cobra.NoArgs),
			Example: examples("flowfabric migrate " + use + " --store sqlite:ff.db\nflowfabric migrate " + use + " --store postgres://flowfabric@db/flowfabric\n" +
				"flowfabric migrate " + use + " --config /etc/flowfabric.env"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				address, err := s.storeAddress(cmd)
				if err != nil {
					return err
				}
				return s.during(cmd, func(ctx context.Context) error {
					return s.withStore(ctx, address, mode, func(c flowfabric.Client) error { return s.printSchema(ctx, c, said) })
				})
			},
		}
		storeFlags(cmd)
		return cmd
	}
	return group("migrate", "The schema of a store",
		step("status", "Check that the schema of a store is that of this program", "check", "is up to date"),
		step("up", "Bring the schema of a store up to date", "auto", "is there"))
}

func (s *session) printSchema(ctx context.Context, c flowfabric.Client, said string) error {
	info, err := c.Admin().Info(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "schema %d %s (%s %s)\n", info.Store.Schema, said, info.Store.Kind, info.Store.Version)
	return err
}

func (s *session) backup() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write a consistent copy of a SQLite store, of a running server or of a file", Args: counted(cobra.ExactArgs(1)),
		Example: examples("flowfabric backup monday.db\nflowfabric backup monday.db --store sqlite:ff.db\nflowfabric backup - --store sqlite:ff.db > monday.db"),
	}
	storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("store") {
			return s.withClient(cmd, func(ctx context.Context, c flowfabric.Client) error { return s.writeBackup(ctx, c, args[0]) })
		}
		address, err := s.storeAddress(cmd)
		if err != nil {
			return err
		}
		if isPostgres(address) {
			fmt.Fprintf(s.Out, "pg_dump --format=custom --file=%s %s\n", args[0], address)
			return nil
		}
		return s.during(cmd, func(ctx context.Context) error {
			err := s.withStore(ctx, address, "off", func(c flowfabric.Client) error { return s.writeBackup(ctx, c, args[0]) })
			if flowfabric.CodeOf(err) == "store_locked" {
				return show.Invalid("--store", "leave --store out: then the server that has it open makes the copy", "%s", err)
			}
			return err
		})
	}
	cmd.AddCommand(s.backupVerify())
	return cmd
}

// writeBackup gives the copy its name when it is whole.
func (s *session) writeBackup(ctx context.Context, c flowfabric.Client, path string) error {
	if path == "-" {
		return c.Admin().Backup(ctx, s.Out)
	}
	if _, err := os.Lstat(path); err == nil {
		return show.Invalid("FILE", "choose another name", "%s is there already", path)
	}
	partial := path + ".partial"
	file, err := os.Create(partial)
	if err != nil {
		return show.Invalid("FILE", "", "%s", err)
	}
	err = errors.Join(c.Admin().Backup(ctx, file), file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	s.printer.Note("copied to %s; check it: flowfabric backup verify %s", path, path)
	return nil
}

func (s *session) backupVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check a copy: schema, counts, indexes", Args: counted(cobra.ExactArgs(1)),
		Example: examples("flowfabric backup verify monday.db\nflowfabric backup verify monday.db --json\nflowfabric backup verify /backups/monday.db"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.during(cmd, func(ctx context.Context) error {
				return onCopy(args[0], func(path string) error {
					return s.withStore(ctx, "sqlite:"+path, "off", func(c flowfabric.Client) error {
						return s.printIntegrity(ctx, c)
					})
				})
			})
		},
	}
}

// onCopy looks at a copy of the file, so that looking leaves no trace.
func onCopy(path string, do func(path string) error) error {
	dir, err := os.MkdirTemp("", "flowfabric")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyFile(path, dir+"/copy.db"); err != nil {
		return show.Invalid("FILE", "", "%s", err)
	}
	return do(dir + "/copy.db")
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// printIntegrity recounts a store; a difference is a failure.
func (s *session) printIntegrity(ctx context.Context, c flowfabric.Client) error {
	report, err := c.Admin().Integrity(ctx)
	if err != nil {
		return err
	}
	type x = flowfabric.IntegrityReport
	if err := show.One(s.printer, show.View[x]{
		ID: func(r x) string { return fmt.Sprint(r.OK) },
		Columns: []show.Column[x]{
			{Name: "STATE", Text: func(r x) string {
				if r.OK {
					return "ok"
				}
				return "fail"
			}},
			{Name: "CHECKED", Text: func(r x) string { return strings.Join(r.Checked, ", ") }},
			{Name: "DIFFERENCES", Text: func(r x) string {
				var all []string
				for _, d := range r.Differences {
					all = append(all, fmt.Sprintf("%s %s: stored %d, found %d", d.What, d.Key, d.Stored, d.Found))
				}
				return strings.Join(all, "; ")
			}},
		},
	}, report); err != nil {
		return err
	}
	if !report.OK {
		return show.Exit(show.ExitFailed)
	}
	return nil
}

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
		address, err := s.storeAddress(cmd)
		if err != nil {
			return err
		}
		if isPostgres(address) {
			fmt.Fprintf(s.Out, "pg_restore --clean --if-exists --no-owner --dbname=%s %s\n", address, args[0])
			return nil
		}
		return s.during(cmd, func(ctx context.Context) error {
			return s.restoreFile(ctx, args[0], strings.TrimPrefix(address, "sqlite:"), force)
		})
	}
	return cmd
}

// restoreFile puts a copy that can be opened in the place of the store, which nobody may have open.
func (s *session) restoreFile(ctx context.Context, from, to string, force bool) error {
	err := onCopy(from, func(path string) error {
		return s.withStore(ctx, "sqlite:"+path, "off", func(flowfabric.Client) error { return nil })
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil {
		if !force {
			return show.Invalid("--store", "give --force to throw it away", "%s is there already", to)
		}
		if err := removeStore(ctx, to); err != nil {
			return err
		}
	}
	partial := to + ".partial"
	if err := copyFile(from, partial); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, to); err != nil {
		return err
	}
	s.printer.Note("restored to %s", to)
	return nil
}
