package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestCounting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, events string
		want         string
		good         bool
		prints       string
	}{
		{
			name:   "tests and subtests are counted, packages are not",
			events: `{"Action":"pass","Package":"p","Test":"A/b"} {"Action":"pass","Package":"p","Test":"A"} {"Action":"pass","Package":"p","Elapsed":1.5}`,
			want:   "2 passed, 0 failed, 0 skipped", good: true, prints: "ok    p  1.5s",
		},
		{
			name: "a failed test is counted once and its words are printed",
			events: `{"Action":"output","Package":"p","Test":"A","Output":"broken\n"} {"Action":"fail","Package":"p","Test":"A"} ` +
				`{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", prints: "broken\nFAIL  p.A",
		},
		{
			name:   "a package that dies outside its tests is a failure",
			events: `{"Action":"pass","Package":"p","Test":"A"} {"Action":"output","Package":"p","Output":"leak\n"} {"Action":"fail","Package":"p"}`,
			want:   "1 passed, 1 failed, 0 skipped", prints: "leak\nFAIL  p",
		},
		{
			name: "a package that takes too long tells which test did not end",
			events: `{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out\n"} {"Action":"output","Package":"pq","Test":"A","Output":"other\n"} ` +
				`{"Action":"fail","Package":"p"}`,
			want: "0 passed, 1 failed, 0 skipped", prints: "panic: test timed out\nFAIL  p",
		},
		{
			name: "a package that does not build is a failure",
			events: `{"Action":"build-output","ImportPath":"p","Output":"undefined: x\n"} {"Action":"build-fail","ImportPath":"p"} ` +
				`{"Action":"pass","Package":"q","Test":"A"}`,
			want: "1 passed, 1 failed, 0 skipped", prints: "undefined: x",
		},
		{
			name: "a data race is reported, whichever test it is taken for",
			events: `{"Action":"output","Package":"p","Test":"A","Output":"WARNING: DATA RACE\nat x\n"} {"Action":"pass","Package":"p","Test":"A"} ` +
				`{"Action":"fail","Package":"p","Test":"B"}`,
			want: "1 passed, 1 failed, 0 skipped", prints: "WARNING: DATA RACE\nat x\nFAIL  p.B",
		},
		{
			name:   "a skip is not a pass",
			events: `{"Action":"pass","Package":"p","Test":"A"} {"Action":"skip","Package":"p","Test":"B"}`,
			want:   "1 passed, 0 failed, 1 skipped",
		},
		{name: "nothing is not a pass", events: `{"Action":"skip","Package":"p"}`, want: "0 passed, 0 failed, 0 skipped"},
		{name: "a line that is no event is shown", events: `go: cannot find main module`, want: "0 passed, 0 failed, 0 skipped", prints: "go: cannot find"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			got := read(strings.NewReader(strings.ReplaceAll(c.events, "} {", "}\n{")), &out)
			if got.String() != c.want || got.good() != c.good || !strings.Contains(out.String(), c.prints) {
				t.Errorf("got %q good=%v and printed %q, want %q good=%v and %q", got, got.good(), out.String(), c.want, c.good, c.prints)
			}
		})
	}
}

func TestTheGistOfAFailureIsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	var story strings.Builder
	for i := range 40 {
		fmt.Fprintf(&story, "%d of the story\n", i)
	}
	for _, c := range []struct {
		name, said string
		lines      int
		has, not   string
	}{
		{"a short one is whole", "=== RUN   A\n    a_test.go:7: broken\n--- FAIL: A (0.1s)\n", 1, "    a_test.go:7: broken", "=== RUN"},
		{"a long one is cut in the middle", "found\n" + story.String(), gistBegins + 1 + gistEnds, "    … 25 lines …", "20 of the story"},
		{"a wide line is cut", strings.Repeat("é", gistWidth), 1, strings.Repeat("é", gistWidth/2) + "…", "\uFFFD"},
		{"none", "", 0, "", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			said.WriteString(c.said)
			got := gist(&said)
			whole := strings.Join(got, "\n")
			if len(got) != c.lines || !strings.Contains(whole, c.has) || strings.Contains(whole, c.not) {
				t.Errorf("%d lines: %s", len(got), whole)
			}
		})
	}
}

func TestGroupsAreCutAtTwoDashes(t *testing.T) {
	t.Parallel()
	got := split([]string{"-short", "./a", "--", "--", "-race", "./b"})
	want := [][]string{{"-short", "./a"}, {"-race", "./b"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGroupsRunAtATime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		atOnce int
		fails  bool
	}{
		{[]string{"./a", "--", "./b", "--", "./c"}, 1, false},
		{[]string{"-at-once=2", "./a", "--", "./b", "--", "./c"}, 2, false},
		{[]string{"-at-once=0", "./a"}, 0, true},
		{[]string{"-at-once=two", "./a"}, 0, true},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			o, groups, err := parse(c.args)
			if (err != nil) != c.fails || err == nil && (o.atOnce != c.atOnce || len(groups) != 3) {
				t.Fatalf("%d at once of %q, %v", o.atOnce, groups, err)
			}
			if c.fails {
				return
			}
			together := make(chan struct{}) // a group ends once so many run, and those behind find the places free
			var running atomic.Int32
			total := runAll(o.atOnce, groups, func(args []string) count {
				if running.Add(1) == int32(c.atOnce) {
					close(together)
				}
				<-together
				return failure(args[0])
			})
			var names []string
			for _, b := range total.bad {
				names = append(names, b.name)
			}
			if want := []string{"./a", "./b", "./c"}; !slices.Equal(names, want) {
				t.Errorf("counted %q, want %q", names, want)
			}
		})
	}
}

func TestTheNamesOfWhatPassedAreWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tests.txt")
	o, groups, err := parse([]string{"-names=" + file, "-at-once=2", "./a", "--", "./b"})
	if err != nil || o.atOnce != 2 || len(groups) != 2 {
		t.Fatalf("%+v of %q, %v", o, groups, err)
	}
	total := runAll(o.atOnce, groups, func(args []string) count {
		return read(strings.NewReader(`{"Action":"pass","Package":"`+args[0]+`","Test":"T/sub"}
{"Action":"fail","Package":"`+args[0]+`","Test":"F"}`), io.Discard)
	})
	if err := o.writeNames(total); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "./a.T/sub\n./b.T/sub\n" {
		t.Errorf("%q, %v", got, err)
	}
}
