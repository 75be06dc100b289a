// Command crash kills a worker process in the middle of its work and shows that nothing is lost and nothing done twice.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/flowfabric/flowfabric/examples/crash/story"
)

func main() {
	store := flag.String("store", "", "sqlite:PATH or postgres://…; a temporary file if absent")
	work := flag.Bool("work", false, "be the worker process of the story")
	flag.Parse()
	tell := run
	if *work {
		tell = func(ctx context.Context, store string) error { return story.Work(ctx, store, os.Stdout) }
	}
	if err := tell(context.Background(), *store); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

// run tells the story, on a store in a temporary directory unless another is given. The worker is this program once more.
func run(ctx context.Context, store string) error {
	if store == "" {
		dir, err := os.MkdirTemp("", "flowfabric-crash")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		store = "sqlite:" + filepath.Join(dir, "app.db")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker := exec.CommandContext(ctx, self, "-work", "-store", store)
	worker.Stderr = os.Stderr
	return story.Tell(ctx, store, worker)
}
