// Command shell-worker runs a worker made of curl and jq, and then one made of flowfabric work and tr.
package main

import (
	"context"
	"flag"

	"github.com/flowfabric/flowfabric/examples/shell-worker/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() {
	program := ""
	told := stage.Story{Name: "shell-worker"}
	told.Tell = func(ctx context.Context, s *stage.Stage) error { return story.Tell(ctx, s, program) }
	stage.Main(told, func(flags *flag.FlagSet) {
		flags.StringVar(&program, "flowfabric", "", "the flowfabric program; built from this tree if absent")
	})
}
