// Package commands is the command line: it reads flags, calls the client and prints. Rules live in the engine; everything else is
// in the packages host, program, settings and show.
package commands

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// App is the program and its environment.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Build
	Called string // command that starts the program, for hints; "": its name
}

// Build is what the program knows about its build.
type Build struct {
	Version string // "dev" if it was not recorded
	Commit  string // "" if it was not recorded
	Date    string // of the commit, RFC 3339; "" if it was not recorded
}

// Run runs one command line and returns the exit code (U158).
func (a *App) Run(args []string) int {
	s := &session{App: a}
	root := s.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(context.Background())
	if err != nil {
		show.Error(a.Err, err, s.flags.json, words{cmd})
	}
	return show.ExitCode(err)
}

// session is one run of the program.
type session struct {
	*App
	flags   globals
	printer *show.Printer
	words   words // of the command
	warned  bool  // of ignored variables
}

// root returns the tree of commands.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "flowfabric",
		Short:             "Run and operate durable work",
		Long:              "flowfabric is the server, worker and client of FlowFabric. To start, run: flowfabric dev\nhttps://github.com/flowfabric/flowfabric/blob/main/docs/README.md has the documentation.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.prepare(cmd) },
		Args:              cobra.ArbitraryArgs,
		RunE:              showHelp,
		Version:           s.Version,
	}
	root.SetVersionTemplate("version: {{.Version}}\n") // as the command says it
	root.Flags().Bool("version", false, "print the version of this program")
	s.flags.register(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(help())
	root.AddGroup(
		&cobra.Group{ID: groupServer, Title: "Server:"}, &cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupWaits, Title: "Waits and approvals:"}, &cobra.Group{ID: groupOperate, Title: "Operate:"}, &cobra.Group{ID: groupStore, Title: "Store:"},
	)
	for group, list := range map[string][]*cobra.Command{
		groupServer:  {s.dev(), s.serve(), s.demo()},
		groupWork:    {s.submit(), s.get(), s.list(), s.count(), s.result(), s.input(), s.attempts(), s.leases(), s.steps(), s.usage(), s.events(), s.tail(), s.explain(), s.wait(), s.export(), s.work(), s.flow()},
		groupWaits:   s.waitCommands(),
		groupOperate: append(s.verbs(), s.top(), s.bulk(), s.lanes(), s.budgets(), s.quotas(), s.workers(), s.audit(), s.namespaces(), s.webhooks()),
		groupStore:   {s.migrate(), s.backup(), s.restore(), s.doctor(), s.apiKeys(), s.signingKeys(), s.bench()},
	} {
		for _, cmd := range list {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(s.api(), s.openapi(), s.config(), s.info(), s.version(), s.man())
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // it was created above
	completion.Args, completion.RunE = cobra.ArbitraryArgs, showHelp
	s.completeFlags(root)
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		defer hideUnused(cmd)()
		whole(cmd, args)
	})
	return root
}

// Groups of the help page.
const (
	groupServer  = "server"
	groupWork    = "work"
	groupWaits   = "waits"
	groupOperate = "operate"
	groupStore   = "store"
)

// flagError suggests the flag that was probably meant (U157).
func flagError(cmd *cobra.Command, err error) error {
	hint := "see " + cmd.CommandPath() + " --help"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		collect := func(f *pflag.Flag) { known = append(known, f.Name) }
		cmd.Flags().VisitAll(collect)
		cmd.InheritedFlags().VisitAll(collect)
		if near := jsonx.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			hint = "did you mean --" + near + "?"
		}
	}
	return show.Invalid("", hint, "%s", err)
}

// globals are the flags of every command.
type globals struct {
	profile, template string
	json, quiet, wide bool
	timeout           time.Duration
}

func (g *globals) register(fs *pflag.FlagSet) {
	settingFlags(fs, settings.Client())
	fs.StringVar(&g.profile, "profile", "", "name of a settings file in the user's configuration directory")
	fs.BoolVar(&g.json, "json", false, "output JSON with API field names; lists as one object per line")
	fs.BoolVarP(&g.quiet, "quiet", "q", false, "print ids only")
	fs.BoolVar(&g.wide, "wide", false, "print all columns")
	fs.StringVar(&g.template, "template", "", "print with a Go template over API field names, such as '{{.status}}'")
	fs.DurationVar(&g.timeout, "timeout", 0, "give up after this time; 0: no limit")
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is the number of columns of the output: COLUMNS, else the terminal's; 0 if unknown.
func (a *App) terminalWidth() int {
	if columns, err := strconv.Atoi(a.lookup("COLUMNS")); err == nil {
		return max(columns, 0)
	}
	if f, ok := a.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// lookup returns an environment variable.
func (a *App) lookup(name string) string {
	for _, line := range a.Environ {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	return ""
}

// during calls do with a context that ends after --timeout or when the user interrupts.
func (s *session) during(cmd *cobra.Command, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	if s.flags.timeout > 0 {
		timer := time.AfterFunc(s.flags.timeout, func() { cancel(show.ErrTimeout) })
		defer timer.Stop()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals) // a second signal ends the process
			cancel(show.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, show.ErrInterrupted) || errors.Is(cause, show.ErrTimeout)) {
		return cause
	}
	return err
}
