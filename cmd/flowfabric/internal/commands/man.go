package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (s *session) man() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "man [COMMAND…]", Short: "Print the man page of a command, or write those of all commands", Args: cobra.ArbitraryArgs,
		Example: examples("flowfabric man lanes pause\nflowfabric man submit > flowfabric-submit.1\nflowfabric man --dir man1"),
	}
	cmd.ValidArgsFunction = completeCommands
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into this directory")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dir != "" {
			return s.writeManPages(cmd.Root(), dir)
		}
		of, err := named(cmd, args)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(s.Out, manPage(of, s.Version))
		return err
	}
	return cmd
}

// writeManPages writes a file per command, named as man expects.
func (s *session) writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: everybody may read manual pages
		return err
	}
	pages := 0
	for _, cmd := range everyCommand(root) {
		if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd, s.Version)), 0o644); err != nil { //nolint:gosec // G306: everybody may read manual pages
			return err
		}
		pages++
	}
	s.printer.Note("%d pages in %s", pages, dir)
	return nil
}

// everyCommand lists a command and all below it, groups included.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			all = append(all, everyCommand(c)...)
		}
	}
	return all
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the man page of a command, in roff.
func manPage(cmd *cobra.Command, version string) string {
	defer hideUnused(cmd)()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"flowfabric %s\" \"FlowFabric\"\n", strings.ToUpper(roff(manName(cmd))), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR\n", roff(cmd.UseLine()))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(text))
	writeManList(&b, "COMMANDS", manCommands(cmd))
	writeManList(&b, "OPTIONS", manFlags(cmd.NonInheritedFlags()))
	writeManList(&b, "GLOBAL OPTIONS", manFlags(cmd.InheritedFlags()))
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.ReplaceAll(cmd.Example, "  flowfabric", "flowfabric")))
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			also = append(also, manName(c))
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", roff(strings.Join(also, "(1), ")))
	}
	return b.String()
}

// manEntry is a name with its meaning.
type manEntry struct{ name, text string }

func writeManList(b *strings.Builder, title string, entries []manEntry) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, e := range entries {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", roff(e.name), roff(e.text))
	}
}

func manCommands(cmd *cobra.Command) []manEntry {
	var all []manEntry
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			all = append(all, manEntry{c.Name(), c.Short})
		}
	}
	return all
}

func manFlags(fs *pflag.FlagSet) []manEntry {
	var all []manEntry
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		text := f.Usage
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			text += " (default " + f.DefValue + ")"
		}
		all = append(all, manEntry{name, text})
	})
	return all
}

// roff escapes a text for roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
