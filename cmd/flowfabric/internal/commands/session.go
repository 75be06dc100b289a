package commands

import (
	"context"
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

// prepare makes the printer from the global flags.
func (s *session) prepare(*cobra.Command) error {
	s.printer = &show.Printer{
		Out: s.Out, Err: s.Err, JSON: s.flags.json, Quiet: s.flags.quiet, Wide: s.flags.wide,
		Terminal: isTerminal(s.Out), Now: time.Now,
	}
	s.printer.Color = s.printer.Terminal && s.lookup("NO_COLOR") == ""
	if s.flags.template != "" {
		parsed, err := template.New("template").Option("missingkey=zero").Parse(s.flags.template)
		if err != nil {
			return show.Invalid("--template", "fields have the names of the API: '{{.execution_id}} {{.status}}'", "%s", err)
		}
		s.printer.Template = parsed
	}
	return nil
}

// settingFlags gives every setting its flag.
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
		if setting.Secret {
			fs.String(setting.Name+"-file", "", "file that holds it")
		}
	}
}

// given are the values of the flags that were set on the command line.
func given(cmd *cobra.Command) map[string]string {
	flags := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { flags[f.Name] = f.Value.String() })
	return flags
}

// problems prints everything that is wrong with the settings; the exit code is 2 (U180).
func (s *session) problems(all []settings.Problem) error {
	if len(all) == 0 {
		return nil
	}
	for _, p := range all {
		fmt.Fprintln(s.Err, p)
	}
	return show.Exit(show.ExitInvalid)
}

// clientSettings reads where the server is and who asks.
func (s *session) clientSettings(cmd *cobra.Command) (*settings.Values, error) {
	from := settings.Sources{Environ: s.Environ, Flags: given(cmd)}
	if s.flags.profile != "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, err
		}
		from.File = filepath.Join(dir, "flowfabric", s.flags.profile+".env")
	}
	values, problems := settings.Load(settings.Client(), from)
	return values, s.problems(problems)
}

// withClient calls do with a client of the server.
func (s *session) withClient(cmd *cobra.Command, do func(ctx context.Context, c flowfabric.Client) error) error {
	values, err := s.clientSettings(cmd)
	if err != nil {
		return err
	}
	client, err := flowfabric.Connect(settings.Get[string](values, "server"), flowfabric.ConnectConfig{
		APIKey: settings.Get[string](values, "key"), Namespace: settings.Get[string](values, "namespace"),
	})
	if err != nil {
		return err
	}
	return s.during(cmd, func(ctx context.Context) error {
		defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
		return do(ctx, client)
	})
}

// command is a command that acts on a server.
func (s *session) command(use, short, example string, args cobra.PositionalArgs, do func(ctx context.Context, c flowfabric.Client, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: examples(example), Args: counted(args)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.withClient(cmd, func(ctx context.Context, c flowfabric.Client) error { return do(ctx, c, args) })
	}
	return cmd
}

// examples indents the lines of a help page's examples.
func examples(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// counted is a check of the number of arguments whose refusal has the form of all others.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return show.Invalid("", "usage: "+cmd.UseLine(), "%s", err)
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: showHelp}
	cmd.AddCommand(below...)
	return cmd
}
