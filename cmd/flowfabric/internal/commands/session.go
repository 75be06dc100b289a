package commands

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// prepare creates the printer from the global flags.
func (s *session) prepare(*cobra.Command) error {
	s.printer = &show.Printer{
		Out: s.Out, Err: s.Err, JSON: s.flags.json, Quiet: s.flags.quiet, Wide: s.flags.wide,
		Terminal: isTerminal(s.Out), Now: time.Now,
	}
	s.printer.Width = s.terminalWidth()
	s.printer.Color = s.printer.Terminal && s.lookup("NO_COLOR") == ""
	if s.flags.template != "" {
		parsed, err := template.New("template").Option("missingkey=zero").Parse(s.flags.template)
		if err != nil {
			return show.Invalid("--template", "use API field names: '{{.execution_id}} {{.status}}'", "%s", err)
		}
		s.printer.Template = parsed
	}
	return nil
}

// bare returns a printer that writes only the identifier, unless a format for programs is requested.
func (s *session) bare() *show.Printer {
	p := *s.printer
	p.Quiet = !p.JSON && p.Template == nil
	return &p
}

// settingFlags adds a flag for every setting.
func settingFlags(fs *pflag.FlagSet, table []settings.Setting) {
	for _, setting := range table {
		if setting.NoFlag {
			continue
		}
		fs.String(setting.Name, "", strings.ReplaceAll(setting.Meaning, "`", ""))
		flag := fs.Lookup(setting.Name)
		flag.DefValue = setting.Default
		if setting.IsSwitch() {
			flag.NoOptDefVal = "true"
		}
		if setting.MayBeInFile() {
			fs.String(setting.Name+"-file", "", "file that contains it")
		}
	}
}

// given returns the flags that were set on the command line.
func given(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { flags[f.Name] = f.Value.String() })
	return flags
}

// problems prints all problems of the settings; the exit code is 2 (U180). With --json it is one problem object.
func (s *session) problems(all []settings.Problem) error {
	if len(all) == 0 {
		return nil
	}
	lines := make([]string, len(all))
	for i, p := range all {
		lines[i] = p.String()
	}
	if s.flags.json {
		return show.Invalid(all[0].Variable, "", "%s", strings.Join(lines, "; "))
	}
	for _, line := range lines {
		fmt.Fprintf(s.Err, "flowfabric: %s\n", line)
	}
	return show.Exit(show.ExitInvalid)
}

// clientSettings reads the server's address and the credentials.
func (s *session) clientSettings(cmd *cobra.Command) (*settings.Values, error) {
	from := settings.Sources{Environ: s.Environ, Flags: given(cmd)}
	if s.flags.profile != "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, err
		}
		from.File = filepath.Join(dir, "flowfabric", s.flags.profile+".env")
		if _, err := os.Stat(from.File); err != nil {
			return nil, show.Invalid("--profile", "a profile is a file of FF_NAME=value lines", "unknown profile %q: %s", s.flags.profile, err)
		}
	}
	values, problems := settings.Load(settings.Client(), from)
	s.ignored(values)
	return values, s.problems(problems)
}

// ignored warns once of variables that are ignored.
func (s *session) ignored(values *settings.Values) {
	if s.warned {
		return
	}
	s.warned = true
	for _, problem := range values.Ignored() {
		s.printer.Note("flowfabric: warning: %s is ignored: %s", problem.Variable, problem.Detail)
	}
}

// withClient calls do with a client of the server.
func (s *session) withClient(cmd *cobra.Command, do func(ctx context.Context, c *flowfabric.Client) error) error {
	values, err := s.clientSettings(cmd)
	if err != nil {
		return err
	}
	server := settings.Get[string](values, "server")
	client, err := flowfabric.Connect(server, flowfabric.ConnectConfig{
		APIKey: settings.Get[string](values, "key"), Namespace: settings.Get[string](values, "namespace"), RootCAs: settings.Get[*x509.CertPool](values, "ca"),
	})
	if err != nil {
		return err
	}
	return s.during(cmd, func(ctx context.Context) error {
		defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
		return s.inFlags(cmd, unanswered(do(ctx, client), server))
	})
}

// inFlags replaces the API field of a refusal by the flag that set it.
func (s *session) inFlags(cmd *cobra.Command, err error) error {
	var refusal *flowfabric.Error
	if s.flags.json || !errors.As(err, &refusal) {
		return err
	}
	field := strings.TrimPrefix(strings.TrimPrefix(refusal.Field, "query."), "/")
	flag := flagOf(cmd, strings.ReplaceAll(field, "_", "-"))
	if field == refusal.Field || flag == "" {
		return err
	}
	told := *refusal
	told.Field = "--" + flag
	return &told
}

// flagOf returns the flag that was given for a field, such as --waitpoint for waitpoint-id and --expires for expires-in-ms; "" if
// none was.
func flagOf(cmd *cobra.Command, field string) string {
	for _, rest := range []string{"", "-id", "-in-ms", "-ms"} {
		if flag, found := strings.CutSuffix(field, rest); found && cmd.Flags().Changed(flag) {
			return flag
		}
	}
	return ""
}

// command returns a command that acts on a server.
func (s *session) command(use, short, example string, args cobra.PositionalArgs, do func(ctx context.Context, c *flowfabric.Client, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: examples(example), Args: counted(args)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.withClient(cmd, func(ctx context.Context, c *flowfabric.Client) error { return do(ctx, c, args) })
	}
	return cmd
}

// examples indents the examples of a help page.
func examples(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// counted checks the number of arguments. Its refusal has the form of all others and names the extra argument.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil || check(cmd, args) == nil {
			return nil
		}
		for n := len(args) - 1; n >= 0; n-- {
			if check(cmd, args[:n]) == nil {
				return show.Invalid("", "usage: "+cmd.UseLine(), "unexpected argument %q", args[n])
			}
		}
		return show.Invalid("", "usage: "+cmd.UseLine(), "an argument is missing")
	}
}

// orBelow checks the arguments of a command that also has subcommands: a word before an argument is a mistyped subcommand.
func orBelow(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := counted(check)(cmd, args); err != nil {
			if len(args) > 1 {
				return mistyped(cmd, args[0], cmd.CommandPath())
			}
			return err
		}
		return nil
	}
}

// group returns a command that only groups others.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: showHelp}
	cmd.AddCommand(below...)
	return cmd
}
