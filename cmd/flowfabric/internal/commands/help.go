package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// settingsTopic is the help that is not about a command.
const settingsTopic = "settings"

// help shows what a command does, its flags and its examples.
func help() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND…]", Short: "Show what a command does, its flags and examples; all settings: flowfabric help settings", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == settingsTopic {
				return settingsHelp(cmd.OutOrStdout())
			}
			of, err := named(cmd, args)
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag() // the page lists it
			return of.Help()
		},
		ValidArgsFunction: completeCommands,
	}
}

// named returns the command that the arguments of another command, such as help, name.
func named(asked *cobra.Command, words []string) (*cobra.Command, error) {
	found, rest, err := asked.Root().Find(words)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		before := strings.Join(words[:len(words)-len(rest)], " ")
		return nil, mistyped(found, rest[0], strings.TrimSpace(asked.CommandPath()+" "+before))
	}
	return found, nil
}

// completeCommands completes the commands below the given ones.
func completeCommands(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, below := range found.Commands() {
		if below.IsAvailableCommand() {
			offers = append(offers, below.Name()+"\t"+below.Short)
		}
	}
	if found == cmd.Root() {
		offers = append(offers, settingsTopic+"\tAll settings of servers and clients")
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// showHelp prints the help of a command that only groups others; any other argument is an unknown command (U157).
func showHelp(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return mistyped(cmd, args[0], cmd.CommandPath())
}

// mistyped suggests a command below another one; before is what precedes the word.
func mistyped(cmd *cobra.Command, word, before string) error {
	var known []string
	for _, c := range cmd.Commands() {
		known = append(append(known, c.Name()), c.Aliases...)
	}
	hint := "see " + cmd.CommandPath() + " --help"
	if near := jsonx.Nearest(word, known); near != "" {
		hint = "did you mean " + before + " " + near + "?"
	}
	return show.Invalid("", hint, "unknown command %q", word)
}

// serverUsage is the usage of a command that takes the settings of a server: its own flags and the most common settings. Flags for clients
// are left out unless the command can also be a client.
func serverUsage(cmd *cobra.Command) error {
	shown, client := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	starts := slices.Contains([]string{"serve", "dev"}, cmd.Name())
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if _, further := f.Annotations[furtherSetting]; !further && (starts || !isSetting(f.Name) || strings.HasPrefix(f.Name, "store")) {
			shown.AddFlag(f)
		}
	})
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !starts || f.Name == "json" {
			client.AddFlag(f)
		}
	})
	_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\nGlobal Flags:\n%s\nAll settings, each with a flag and a variable: flowfabric help settings\n",
		cmd.UseLine(), cmd.Example, shown.FlagUsages(), client.FlagUsages())
	return err
}

// isSetting reports whether a flag is that of a setting of servers, or of a file with one.
func isSetting(name string) bool {
	plain := strings.TrimSuffix(name, "-file")
	return slices.ContainsFunc(settings.Server(), func(s settings.Setting) bool { return s.Name == name || s.Name == plain && s.MayBeInFile() })
}

// settingsHelp prints every setting with its flag, variable, default and meaning.
func settingsHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Every setting has a flag and a variable. In order of increasing precedence: defaults, the file of --config, the environment, flags.\n" +
		"flowfabric config prints the effective values and their sources.\n")
	for _, part := range []struct {
		title string
		rows  []settings.Setting
	}{{"Server: flowfabric serve and dev", settings.Server()}, {"Client: the commands that act on a server", settings.Client()}} {
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, s := range part.rows {
			flag := "  --" + s.Name + " " + s.Type()
			if s.NoFlag {
				flag = "  (no flag)"
			}
			variables := s.Variable()
			if s.MayBeInFile() {
				variables += ", " + s.Variable() + "_FILE"
			}
			fmt.Fprintf(&b, "\n%s, %s\n      %s\n", flag, variables, strings.ReplaceAll(s.Meaning, "`", ""))
			if s.Default != "" && s.Default != "false" {
				fmt.Fprintf(&b, "      default: %s\n", s.Default)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printing are the global flags of a command that prints what it finds.
var printing = []string{"json", "quiet", "wide", "template"}

// usedOf are the commands that do not use every global flag, by their names behind that of the program, with those that they use. Every command
// uses --json, for its errors. All but demo never call a server.
var usedOf = map[string][]string{
	"version": printing, "help": {"json"}, "man": {"json", "quiet"}, "completion": {"json"},
	"demo":       append([]string{"server", "key", "key-file", "profile", "timeout"}, printing...),
	"bench list": printing, "bench compare": printing,
	"backup verify": append([]string{"timeout"}, printing...), "restore": {"json", "quiet", "timeout"}, "keys rewrap": {"json", "quiet", "timeout"},
	"migrate plan": append([]string{"timeout"}, printing...), "migrate status": append([]string{"timeout"}, printing...), "migrate up": append([]string{"timeout"}, printing...),
}

// unused reports whether a command does nothing with a global flag.
func unused(cmd *cobra.Command, flag string) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() { // completion bash is like completion
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if used, found := usedOf[path]; found {
			return !slices.Contains(used, flag)
		}
	}
	return false
}

// hideUnused hides the global flags from the help of a command that does not use them, until show is called.
func hideUnused(cmd *cobra.Command) (show func()) {
	var hidden []*pflag.Flag
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && unused(cmd, f.Name) {
			f.Hidden = true
			hidden = append(hidden, f)
		}
	})
	return func() {
		for _, f := range hidden {
			f.Hidden = false
		}
	}
}
