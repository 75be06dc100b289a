package commands

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/nearest"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	crash "github.com/flowfabric/flowfabric/examples/crash/story"
	hello "github.com/flowfabric/flowfabric/examples/hello/story"
)

// tale is a story of demo.
type tale struct {
	name, short string
	tell        func(ctx context.Context, store string) error
	part        func(ctx context.Context, store string) error // what a second process of the story does; nil: there is none
}

// tales are the stories, the first is told when none is named.
var tales = []tale{
	{name: "hello", short: "submit, work, result; the same order twice is one charge", tell: hello.Tell},
	{
		name: "crash", short: "a worker is killed with -9 in the middle of four steps; another one takes over",
		tell: tellCrash, part: func(ctx context.Context, store string) error { return crash.Work(ctx, store, os.Stdout) },
	},
}

// partFlag makes the program a second process of a story.
const partFlag = "as-worker"

func (s *session) demo() *cobra.Command {
	list, part := false, false
	store := ""
	cmd := &cobra.Command{
		Use: "demo [STORY]", Short: "Tell a story in the terminal: no services, nothing is left behind", Args: counted(cobra.MaximumNArgs(1)),
		Example: examples("flowfabric demo\nflowfabric demo crash\nflowfabric demo --list"),
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the stories")
	cmd.Flags().StringVar(&store, "store", "", "tell it on this store instead of a temporary file")
	cmd.Flags().BoolVar(&part, partFlag, false, "be the second process of the story")
	_ = cmd.Flags().MarkHidden(partFlag) // the flag is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if list {
			return show.List(s.printer, taleView, each(tales))
		}
		t, err := taleOf(args)
		if err != nil {
			return err
		}
		if part && t.part != nil {
			return t.part(cmd.Context(), store)
		}
		return s.during(cmd, func(ctx context.Context) error { return t.onStore(ctx, store) })
	}
	return cmd
}

var taleView = show.View[tale]{
	ID: func(t tale) string { return t.name },
	Columns: []show.Column[tale]{
		{Name: "STORY", Text: func(t tale) string { return t.name }},
		{Name: "WHAT HAPPENS", Text: func(t tale) string { return t.short }},
	},
}

func taleOf(args []string) (tale, error) {
	if len(args) == 0 {
		return tales[0], nil
	}
	var names []string
	for _, t := range tales {
		if t.name == args[0] {
			return t, nil
		}
		names = append(names, t.name)
	}
	hint := "see flowfabric demo --list"
	if near := nearest.To(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return tale{}, show.Invalid("STORY", hint, "there is no story %q", args[0])
}

// onStore tells the story, on a temporary file unless a store is given.
func (t tale) onStore(ctx context.Context, store string) error {
	if store == "" {
		dir, err := os.MkdirTemp("", "flowfabric-demo")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		store = "sqlite:" + filepath.Join(dir, "demo.db")
	}
	return t.tell(ctx, store)
}

// tellCrash starts this program once more as the worker that dies.
func tellCrash(ctx context.Context, store string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker := exec.CommandContext(ctx, self, "demo", "crash", "--"+partFlag, "--store", store)
	worker.Stderr = os.Stderr
	if err := crash.Tell(ctx, store, worker); err != nil {
		return fmt.Errorf("the story of the crash: %w", err)
	}
	return nil
}
