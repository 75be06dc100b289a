// Command tally runs `go test` once for each group of arguments and counts what really ran.
//
//	tally -at-once=2 -names=bin/tests.txt ./... -- -race ./internal/core
//
// Groups are separated by "--" and start in this order, one at a time, or as many as -at-once says: beside tests that wait, others compute.
// The file of -names lists every test that passed, so that two runs can be compared: the same commit runs the same tests.
// It prints one line for each package and, of tests that fail, everything they said. It ends with what failed, each with the gist of what it
// said. The last line is "N passed, N failed, N skipped". It exits with 1 if a test, a package or a build failed, if a group ran nothing, or
// if a test skipped itself: a skip is not a pass.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

func main() {
	o, groups, err := parse(os.Args[1:])
	if err != nil || len(groups) == 0 {
		fmt.Fprintln(os.Stderr, "usage: tally [-at-once=N] [-names=FILE] ARGS-OF-GO-TEST [-- ARGS-OF-GO-TEST]...")
		os.Exit(2)
	}
	total := runAll(o.atOnce, groups, func(args []string) count {
		return run(context.Background(), args, os.Stdout) // an interrupt reaches go test by itself
	})
	fmt.Println()
	for _, b := range total.bad {
		fmt.Println("FAILED  " + b.name)
		for _, line := range b.said {
			fmt.Println("        " + line)
		}
	}
	fmt.Println(total)
	if err := o.writeNames(total); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if !total.good() {
		os.Exit(1)
	}
}

// options are tally's own flags; all others are those of go test.
type options struct {
	atOnce int
	names  string // the file that lists what passed; "" is none
}

func (o options) writeNames(total count) error {
	if o.names == "" {
		return nil
	}
	slices.Sort(total.names)
	return os.WriteFile(o.names, []byte(strings.Join(total.names, "\n")+"\n"), 0o644)
}

// parse reads the flags of tally, which come first, and the groups.
func parse(args []string) (o options, groups [][]string, err error) {
	o.atOnce = 1
	for ; len(args) > 0; args = args[1:] {
		if text, found := strings.CutPrefix(args[0], "-at-once="); found {
			if o.atOnce, err = strconv.Atoi(text); err != nil {
				return o, nil, err
			}
			continue
		}
		text, found := strings.CutPrefix(args[0], "-names=")
		if !found {
			break
		}
		o.names = text
	}
	if o.atOnce < 1 {
		err = fmt.Errorf("-at-once=%d: at least one group runs at a time", o.atOnce)
	}
	return o, split(args), err
}

// split cuts the arguments at "--" and leaves out empty groups.
func split(args []string) [][]string {
	var groups [][]string
	for {
		end := slices.Index(args, "--")
		if end < 0 {
			break
		}
		if end > 0 {
			groups = append(groups, args[:end])
		}
		args = args[end+1:]
	}
	if len(args) > 0 {
		groups = append(groups, args)
	}
	return groups
}

// runAll starts the groups in their order, so many at a time, and adds up their counts in the same order.
func runAll(atOnce int, groups [][]string, run func(args []string) count) count {
	counts, places := make([]count, len(groups)), make(chan struct{}, atOnce)
	var under sync.WaitGroup
	for i, args := range groups {
		places <- struct{}{}
		under.Go(func() {
			defer func() { <-places }()
			counts[i] = run(args)
		})
	}
	under.Wait()
	var total count
	for _, c := range counts {
		total.add(c)
	}
	return total
}

// run starts one `go test -json` and counts its events. A command that fails without naming a failed test counts as one failure.
func run(ctx context.Context, args []string, out io.Writer) count {
	name := "go test " + strings.Join(args, " ")
	fmt.Fprintln(out, name)
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = out
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return failure(name + ": " + err.Error())
	}
	if err := cmd.Start(); err != nil {
		return failure(name + ": " + err.Error())
	}
	c := read(pipe, out)
	err = cmd.Wait()
	if err != nil && c.failed == 0 {
		c.add(failure(name + ": " + err.Error()))
	}
	if c.passed+c.failed == 0 {
		c.add(failure(name + ": nothing ran"))
	}
	return c
}
