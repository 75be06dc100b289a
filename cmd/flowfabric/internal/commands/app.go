// Package commands is the command line: it reads flags, calls the client and prints. Rules live in the engine; what a command does
// beyond that stands in host, program, settings and show.
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

// App is the program with its surroundings.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Version  string
	Commit   string
	Called   string // what calls the program, in what it advises to type; "": its name
}

// Run runs one command line and returns the exit code (U158).
func (a *App) Run(args []string) int {
	s := &session{App: a}
	root := s.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		show.Error(a.Err, err, s.flags.json)
	}
	return show.ExitCode(err)
}

// session is one run of the program.
type session struct {
	*App
	flags   globals
	printer *show.Printer
}

// root is the tree of commands.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "flowfabric",
		Short:             "Durable work: submit it, run it, look at it",
		Long:              "flowfabric is server, worker and client of FlowFabric. Begin with: flowfabric dev",
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
		groupWork:    {s.submit(), s.get(), s.list(), s.count(), s.result(), s.input(), s.attempts(), s.leases(), s.steps(), s.usage(), s.events(), s.explain(), s.wait(), s.export(), s.work(), s.flow()},
		groupWaits:   s.waitCommands(),
		groupOperate: append(s.verbs(), s.top(), s.bulk(), s.lanes(), s.budgets(), s.quotas(), s.workers(), s.audit(), s.namespaces()),
		groupStore:   {s.migrate(), s.backup(), s.restore(), s.doctor(), s.apiKeys(), s.signingKeys(), s.bench()},
	} {
		for _, cmd := range list {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(s.api(), s.openapi(), s.config(), s.info(), s.version(), s.man())
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // it was just made
	completion.Args, completion.RunE = cobra.ArbitraryArgs, showHelp
	s.completeFlags(root)
	return root
}

// The groups of the help page.
const (
	groupServer  = "server"
	groupWork    = "work"
	groupWaits   = "waits"
	groupOperate = "operate"
	groupStore   = "store"
)

// flagError names the flag that was meant (U157).
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
	fs.StringVar(&g.profile, "profile", "", "name of a file of settings in the user's configuration directory")
	fs.BoolVar(&g.json, "json", false, "print JSON with the names of the API; lists: one item a line")
	fs.BoolVarP(&g.quiet, "quiet", "q", false, "print ids only")
	fs.BoolVar(&g.wide, "wide", false, "print all columns")
	fs.StringVar(&g.template, "template", "", "print by a Go template over the fields of the API, such as '{{.status}}'")
	fs.DurationVar(&g.timeout, "timeout", 0, "give up after this time; 0: never")
}

// isTerminal reports whether a stream is one that people look at.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is how many columns the output has: those of COLUMNS, else of the terminal; 0 when nobody knows.
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

// lookup finds a variable of the environment.
func (a *App) lookup(name string) string {
	for _, line := range a.Environ {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	return ""
}

// during calls do with a context that ends with --timeout, or when the user interrupts.
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
			signal.Stop(signals) // a second one ends the process
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
