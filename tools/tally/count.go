package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// count is what ran. Subtests count as tests of their own.
type count struct {
	passed, failed, skipped int
	names                   []string // of the tests that passed, subtests too
	bad                     []bad
}

// bad is a test, package or command that failed or skipped itself, and the gist of what it said.
type bad struct {
	name string
	said []string
}

func failure(name string) count { return count{failed: 1, bad: []bad{{name: name}}} }

func (c *count) add(other count) {
	c.passed += other.passed
	c.failed += other.failed
	c.skipped += other.skipped
	c.names = append(c.names, other.names...)
	c.bad = append(c.bad, other.bad...)
}

func (c count) good() bool { return c.failed == 0 && c.skipped == 0 && c.passed > 0 }

func (c count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// event is a line of `go test -json` (see `go doc test2json`), of a test, a package or a build.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// read counts the events of one run. What a test says is kept until it ends and printed only if it failed; a line that is no event is printed.
func read(in io.Reader, out io.Writer) count {
	var c count
	said := map[string]*strings.Builder{}
	failedIn := map[string]bool{} // packages in which a test failed by name
	lines := bufio.NewReader(in)
	var told bytes.Buffer // of one event, written at once: others write between
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				told.Write(line)
			} else {
				c.take(e, said, failedIn, &told)
			}
			_, _ = told.WriteTo(out) // of zero bytes: nothing is written
		}
		if err != nil {
			return c
		}
	}
}

func (c *count) take(e event, said map[string]*strings.Builder, failedIn map[string]bool, out io.Writer) {
	name := e.Package + e.ImportPath
	if e.Test != "" {
		name += "." + e.Test
	}
	switch e.Action {
	case "output", "build-output":
		if said[name] == nil {
			said[name] = &strings.Builder{}
		}
		said[name].WriteString(e.Output)
		return
	case "pass":
		if e.Test != "" {
			c.passed++
			c.names = append(c.names, name)
			printRaces(said[name], out)
			break
		}
		fmt.Fprintf(out, "ok    %s  %.1fs\n", name, e.Elapsed)
	case "skip":
		if e.Test == "" {
			break // a package without tests
		}
		c.skipped++
		c.bad = append(c.bad, bad{name: name + " (skipped itself)"})
	case "fail", "build-fail":
		c.fail(e, name, failedIn, said[name])
		if text := said[name]; text != nil {
			fmt.Fprint(out, text)
		}
		if e.Test == "" {
			printUnended(said, name+".", out)
		}
		fmt.Fprintf(out, "FAIL  %s  %.1fs\n", name, e.Elapsed)
	default:
		return
	}
	delete(said, name)
}

// printRaces prints what a test that passed has said if the race detector speaks there: its reports are taken for what any of the tests says
// that run at the time, and it is another one that fails.
func printRaces(said *strings.Builder, out io.Writer) {
	if said != nil && strings.Contains(said.String(), "WARNING: DATA RACE") {
		fmt.Fprint(out, said)
	}
}

// printUnended prints what the tests of a package said that never ended, because it crashed or took too long.
func printUnended(said map[string]*strings.Builder, prefix string, out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if strings.HasPrefix(name, prefix) {
			fmt.Fprint(out, said[name])
			delete(said, name)
		}
	}
}

// fail counts a failed test; a failed package only if none of its tests is to blame (it did not build, crashed, or failed in TestMain).
func (c *count) fail(e event, name string, failedIn map[string]bool, said *strings.Builder) {
	if e.Test == "" && failedIn[e.Package] && e.Action == "fail" {
		return
	}
	c.failed++
	c.bad = append(c.bad, bad{name, gist(said)})
	failedIn[e.Package] = true
}

// A test's own words are repeated at the end of the run: a reader who sees only the end of a log learns why it failed. Random tests tell a
// long story: what they found is at its beginning, what they did last at its end.
const (
	gistBegins = 6  // lines
	gistEnds   = 10 // lines
	gistWidth  = 400
)

// gist is the beginning and the end of what a test said, without the runner's own lines.
func gist(said *strings.Builder) []string {
	if said == nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(said.String()) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "", strings.HasPrefix(line, "=== "), strings.HasPrefix(strings.TrimSpace(line), "--- FAIL"):
		case len(line) > gistWidth:
			lines = append(lines, strings.ToValidUTF8(line[:gistWidth], "")+"…")
		default:
			lines = append(lines, line)
		}
	}
	if len(lines) <= gistBegins+gistEnds+1 {
		return lines
	}
	left := fmt.Sprintf("    … %d lines …", len(lines)-gistBegins-gistEnds)
	return slices.Concat(lines[:gistBegins], []string{left}, lines[len(lines)-gistEnds:])
}
