package commands

import (
	"cmp"
	"context"
	"crypto/x509"
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
func (s *session) prepare(cmd *cobra.Command) error {
	s.words = words{cmd}
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

// settingValue is the text of a setting on the command line. The table of settings checks it, together with the other sources.
type settingValue struct{ text, kind string }

// String returns the text.
func (v *settingValue) String() string { return v.text }

// Set stores the text.
func (v *settingValue) Set(text string) error {
	v.text = text
	return nil
}

// Type is the type for people.
func (v *settingValue) Type() string { return v.kind }

// furtherSetting marks flags that the help of a server does not show.
const furtherSetting = "setting"

// inFileAs is what the files of settings contain.
var inFileAs = map[string]string{"store": "the address of the store", "store-direct-url": "that address", "master-key": "the master key", "key": "the API key"}

// settingFlags adds a flag for every setting.
func settingFlags(fs *pflag.FlagSet, table []settings.Setting) {
	for _, setting := range table {
		if setting.NoFlag {
			continue
		}
		flag := fs.VarPF(&settingValue{kind: setting.Type()}, setting.Name, "", strings.ReplaceAll(setting.Meaning, "`", ""))
		flag.DefValue = setting.Default
		if !setting.First {
			flag.Annotations = map[string][]string{furtherSetting: nil}
		}
		if setting.IsSwitch() {
			flag.NoOptDefVal = "true"
		}
		if setting.MayBeInFile() {
			fs.String(setting.Name+"-file", "", "file that contains "+cmp.Or(inFileAs[setting.Name], "it"))
			if !setting.First {
				fs.Lookup(setting.Name + "-file").Annotations = map[string][]string{furtherSetting: nil}
			}
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
	var details []string
	names := map[string][]string{}
	for _, problem := range values.Ignored() {
		if names[problem.Detail] == nil {
			details = append(details, problem.Detail)
		}
		names[problem.Detail] = append(names[problem.Detail], problem.Variable)
	}
	for _, detail := range details {
		if list := names[detail]; len(list) == 1 {
			s.printer.Note("flowfabric: warning: %s is ignored: %s", list[0], detail)
		} else { // Kubernetes sets seven for each service
			s.printer.Note("flowfabric: warning: %s and %d more are ignored: %s", list[0], len(list)-1, detail)
		}
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
	s.printer.Namespace = settings.Get[string](values, "namespace")
	return s.during(cmd, func(ctx context.Context) error {
		defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
		return unanswered(do(ctx, client), server)
	})
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
