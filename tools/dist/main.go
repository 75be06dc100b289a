// Command dist builds what is released: static programs for every platform with archives, packages for Debian and Red Hat, container
// images, a bill of materials for each program, and the checksums of all of it. Two runs on one commit write the same bytes; -compare
// checks that for two directories.
//
// It knows nothing about what the programs do: version, commit and date come from the build information that the go command records.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	source := flags.String("source", ".", "a git checkout of FlowFabric")
	out := flags.String("out", "bin/dist", "the directory to write to; it is emptied")
	platforms := flags.String("platforms", strings.Join(allPlatforms(), ","), "platforms to build for, comma-separated")
	compare := flags.Bool("compare", false, "build nothing: compare the two directories given as arguments")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *compare {
		if flags.NArg() != 2 {
			return errors.New("-compare takes two directories")
		}
		return compareDirectories(flags.Arg(0), flags.Arg(1))
	}
	wanted, err := parsePlatforms(*platforms)
	if err != nil {
		return err
	}
	return release(ctx, *source, *out, wanted)
}

// release builds everything for some platforms.
func release(ctx context.Context, source, out string, wanted []platform) (err error) {
	if err := prepare(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "flowfabric-dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b := &builder{source: source, work: work, out: out}
	if err := b.companions(ctx); err != nil {
		return err
	}
	for _, p := range wanted {
		if err := b.platform(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return writeChecksums(out)
}

// marker is in every directory that dist filled: only such a directory is emptied.
const marker = "SHA256SUMS"

// prepare makes the directory empty. One that has files and was not filled by dist is refused.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return fmt.Errorf("%s is not empty and has no %s: give an empty directory", dir, marker)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}
