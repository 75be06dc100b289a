// Command live-page serves a web page that follows one run as it happens, by server-sent events. Without a browser it reads the
// stream itself; with --keep it goes on serving for people.
package main

import (
	"context"
	"flag"

	"github.com/flowfabric/flowfabric/examples/live-page/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() {
	keep := false
	told := stage.Story{Name: "live-page"}
	told.Tell = func(ctx context.Context, s *stage.Stage) error { return story.Tell(ctx, s, keep) }
	stage.Main(told, func(flags *flag.FlagSet) { flags.BoolVar(&keep, "keep", false, "go on serving the page until Ctrl-C") })
}
