package commands

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
