// Command live-page serves a web page that follows one run as it happens, by server-sent events. Without a browser it reads the
// stream itself. On a terminal, or with --keep, the page stays open for people until Ctrl-C.
package main

import (
	"context"
	"flag"
	"os"

	"golang.org/x/term"

	"github.com/flowfabric/flowfabric/examples/live-page/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func main() {
	keep := term.IsTerminal(int(os.Stdout.Fd()))
	told := stage.Story{Name: "live-page"}
	told.Tell = func(ctx context.Context, s *stage.Stage) error { return story.Tell(ctx, s, keep) }
	stage.Main(told, func(flags *flag.FlagSet) {
		flags.BoolVar(&keep, "keep", keep, "keep the page open until Ctrl-C; the default on a terminal")
	})
}
