package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
)

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
