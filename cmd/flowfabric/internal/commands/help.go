package commands

import (
	"strings"

	"github.com/spf13/cobra"

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
