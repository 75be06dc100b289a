package commands

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// calling are commands that call a server, and are not the one of an operation.
var calling = []string{"work", "top", "demo", "bench", "api", "flow create", "flow wait", "leases", "reject", "steps", "wait", "webhooks disable"}

func TestU156_help_lists_the_flags_of_clients_where_a_server_is_called_and_nowhere_else(t *testing.T) {
	t.Parallel()
	root := tree()
	expected := slices.Clone(calling)
	for _, op := range wire.Operations() {
		words, _, _ := strings.Cut(op.Command, " --")
		if cmd, rest, err := root.Find(strings.Fields(words)); err == nil && len(rest) == 0 {
			_, path, _ := strings.Cut(cmd.CommandPath(), " ")
			expected = append(expected, path)
		}
	}
	seen := 0
	for _, cmd := range everyCommand(root) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if path == "" || cmd.HasSubCommands() && !slices.Contains(expected, path) {
			continue // it only groups others
		}
		seen++
		text := helpOf(t, cmd)
		if shown, want := strings.Contains(text, "--server "), slices.Contains(expected, path); shown != want {
			t.Errorf("the help of %s shows --server: %t, it calls a server: %t", path, shown, want)
		}
		if shown, want := strings.Contains(text, "--key-file "), strings.Contains(text, "--server "); shown != want {
			t.Errorf("the help of %s shows --key-file: %t, and --server: %t", path, shown, want)
		}
		if !strings.Contains(text, "--json") {
			t.Errorf("the help of %s lacks --json", path)
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands were looked at", seen)
	}
	for _, path := range []string{"version", "help", "man", "restore", "migrate plan", "completion bash"} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		if text := helpOf(t, cmd); strings.Contains(text, "--namespace") || strings.Contains(text, "--wide") != slices.Contains(usedOf[path], "wide") {
			t.Errorf("%s:\n%s", path, text)
		}
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var text bytes.Buffer
	cmd.SetOut(&text)
	cmd.SetErr(&text)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
