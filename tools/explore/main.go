// Command explore runs random tests from fresh seeds, one after the other and again, until its time is up.
//
//	explore -for 10m ./internal/core ./internal/engine=TestFI1|TestSI1
//
// Each argument is a package, with a pattern of the tests to run after "=" if not all of it is random. A failure is printed with all that the
// test said: the seed that repeats it and, where the test can shorten its story, the shortest one. Explore exits with 1 if it found
// anything, and with 2 if it could not run.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	var s search
	flag.DurationVar(&s.limit, "for", 10*time.Minute, "how long to search")
	flag.IntVar(&s.rounds, "rounds", 0, "how often to run every test at most; 0: as often as the time allows")
	flag.Parse()
	if flag.NArg() == 0 || s.limit <= 0 || s.rounds < 0 {
		fmt.Fprintln(os.Stderr, "usage: explore [-for DURATION] [-rounds N] PACKAGE[=PATTERN]...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	findings, err := s.run(ctx, flag.Args(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(2)
	}
	if findings > 0 {
		os.Exit(1)
	}
}

// variable asks the tests for fresh seeds (internal/testseed).
const variable = "FLOWFABRIC_TEST_SEED=random"

// search is how long to search, and where.
type search struct {
	limit  time.Duration
	rounds int    // 0: as many as the time allows
	dir    string // of the module; empty: the working directory
}

// target is a compiled test binary and what to run of it.
type target struct {
	pkg, pattern string
	binary, dir  string
	runs, failed int
}

// run builds the tests, runs them in turn until the time is up, and returns how many runs failed. A run that the end of the time cuts short
// is not a failure.
func (s search) run(ctx context.Context, args []string, out io.Writer) (int, error) {
	scratch, err := os.MkdirTemp("", "explore")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	targets, err := s.build(ctx, scratch, args, out)
	if err != nil {
		return 0, err
	}
	searching, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	for round := 0; searching.Err() == nil && (s.rounds == 0 || round < s.rounds); round++ {
		for _, t := range targets {
			if searching.Err() == nil {
				t.run(searching, out)
			}
		}
	}
	findings := 0
	for _, t := range targets {
		fmt.Fprintf(out, "%d runs, %d failed  %s %s\n", t.runs, t.failed, t.pkg, t.pattern)
		findings += t.failed
	}
	return findings, ctx.Err()
}

// build compiles the tests once, outside the time of the search.
func (s search) build(ctx context.Context, scratch string, args []string, out io.Writer) ([]*target, error) {
	var targets []*target
	for i, arg := range args {
		pkg, pattern, _ := strings.Cut(arg, "=")
		t := &target{pkg: pkg, pattern: pattern, binary: filepath.Join(scratch, fmt.Sprintf("%d.test", i))}
		list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg)
		list.Dir = s.dir
		dir, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pkg, err)
		}
		t.dir = strings.TrimSpace(string(dir))
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", t.binary, pkg)
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s does not build: %w", pkg, err)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// run runs a target once and prints what it said if it failed.
func (t *target) run(ctx context.Context, out io.Writer) {
	cmd := exec.CommandContext(ctx, t.binary, "-test.run", t.pattern, "-test.timeout", "30m")
	cmd.Dir, cmd.Env = t.dir, append(os.Environ(), variable)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with the processes that it started
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if ctx.Err() != nil {
		return
	}
	t.runs++
	var exit *exec.ExitError
	switch {
	case err == nil:
		return
	case !errors.As(err, &exit):
		fmt.Fprintln(&said, err)
	}
	t.failed++
	fmt.Fprintf(out, "FOUND in %s %s:\n%s\n", t.pkg, t.pattern, said.Bytes())
}
