package commands

import (
	"flag"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/pagetest"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var update = flag.Bool("update", false, "write the page")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func tree() *cobra.Command {
	root := (&session{App: &App{}}).root()
	root.InitDefaultHelpCmd()
	return root
}

func TestU2_every_operation_of_the_API_has_its_command(t *testing.T) {
	t.Parallel()
	root := tree()
	for _, op := range wire.Operations() {
		if op.Command == "" {
			if op.NoCommand == "" {
				t.Errorf("%s has neither a command nor a reason", op.ID)
			}
			continue
		}
		words, flags, _ := strings.Cut(op.Command, " --")
		cmd, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 {
			t.Errorf("%s: unknown command %q", op.ID, op.Command)
			continue
		}
		if name, _, _ := strings.Cut(flags, " "); name != "" && cmd.Flags().Lookup(name) == nil {
			t.Errorf("%s: %q has no flag --%s", op.ID, words, name)
		}
	}
}

// Without examples are commands that only hold others, whose page lists them, and help and completion, which have one use each. That the
// examples do what they say is proved by running them, in the tests of the program.
func TestU160_every_command_has_three_examples_that_its_flags_allow(t *testing.T) {
	t.Parallel()
	for _, cmd := range below(tree()) {
		lines := strings.Split(cmd.Example, "\n")
		if len(lines) != 3 {
			t.Errorf("%s has %d examples", cmd.CommandPath(), len(lines))
		}
		for _, line := range lines {
			checkExample(t, cmd.CommandPath(), strings.TrimSpace(line))
		}
	}
}

// checkExample reads an example as the program would, up to the point where it would act.
func checkExample(t *testing.T, of, line string) {
	t.Helper()
	words := split(line)
	root := tree() // flags remember what was parsed
	cmd, rest, err := root.Find(words[1:])
	if err != nil || words[0] != "flowfabric" || !strings.HasPrefix(cmd.CommandPath(), of) && cmd.Name() != "get" {
		t.Errorf("%s: %q is another command", of, line)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// split cuts a line into words as a shell does, without what is sent to a file.
func split(line string) []string {
	line, _, _ = strings.Cut(line, " > ")
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

func TestU264_the_page_lists_the_commands_as_they_are(t *testing.T) {
	t.Parallel()
	pagetest.Same(t, "../../../../docs/cli.md", Page(), *update)
}

func TestU34_every_filter_of_the_API_is_a_flag_and_reads_as_the_server_reads_it(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{}
	flags := newFilterFlags(cmd.Flags())
	if err := cmd.ParseFlags([]string{
		"--status", "failed,expired", "--status", "ready", "--tag", "a=b", "--tag", "c", "--created-from", "2026-05-01", "--priority-min", "3", "--q", "word",
		"--worker-instance-id", "w", "--idempotency-key", `a\,b`,
	}); err != nil {
		t.Fatal(err)
	}
	f, err := flags.filter()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Status) != 3 || f.Tags["a"] != "b" || len(f.HasTags) != 1 || f.CreatedFrom.Year() != 2026 || *f.PriorityMin != 3 || f.Query != "word" ||
		f.InstanceID[0] != "w" || f.IdempotencyKey[0] != "a,b" {
		t.Errorf("%+v", f)
	}
	same, err := where(`status=failed,status=expired,status=ready,tag.a=b,tag.c,created_from=2026-05-01,priority_min=3,q=word,idempotency_key=a\,b`)
	if err != nil || len(same.Status) != 3 || same.Tags["a"] != "b" || same.HasTags[0] != "c" || same.IdempotencyKey[0] != "a,b" {
		t.Errorf("%+v %v", same, err)
	}
	for _, bad := range []string{"kimd=x", "status", "priority_min=x", "created_from=soon"} {
		if _, err := where(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
