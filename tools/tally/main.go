// Command tally runs `go test` once for each group of arguments and counts what really ran.
//
//	tally ./... -- -race ./internal/core
//
// Groups are separated by "--". It prints one line for each package and, of tests that fail, everything they said. It ends with what
// failed, each with the gist of what it said. The last line is "N passed, N failed, N skipped". It exits with 1 if a test, a package or a build failed, if a group ran nothing, or if a test
// skipped itself: a skip is not a pass.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	groups := split(os.Args[1:])
	if len(groups) == 0 {
		fmt.Fprintln(os.Stderr, "usage: tally ARGS-OF-GO-TEST [-- ARGS-OF-GO-TEST]...")
		os.Exit(2)
	}
	ctx := context.Background() // an interrupt reaches go test by itself
	var total count
	for _, args := range groups {
		fmt.Println("go test " + strings.Join(args, " "))
		total.add(run(ctx, args, os.Stdout))
	}
	fmt.Println()
	for _, b := range total.bad {
		fmt.Println("FAILED  " + b.name)
		for _, line := range b.said {
			fmt.Println("        " + line)
		}
	}
	fmt.Println(total)
	if !total.good() {
		os.Exit(1)
	}
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

// run starts one `go test -json` and counts its events. A command that fails without naming a failed test counts as one failure.
func run(ctx context.Context, args []string, out io.Writer) count {
	name := "go test " + strings.Join(args, " ")
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
