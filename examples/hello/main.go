// Command hello submits a charge, works it off in the same process and prints the receipt. It is the example of the README.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flowfabric/flowfabric/examples/hello/story"
)

func main() {
	store := flag.String("store", "", "sqlite:PATH or postgres://…; a temporary file if absent")
	flag.Parse()
	if err := run(context.Background(), *store); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

// run tells the story, on a store in a temporary directory unless another is given.
func run(ctx context.Context, store string) error {
	if store != "" {
		return story.Tell(ctx, store)
	}
	dir, err := os.MkdirTemp("", "flowfabric-hello")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return story.Tell(ctx, "sqlite:"+filepath.Join(dir, "app.db"))
}
