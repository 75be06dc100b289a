package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// coveragePage lists behaviours and the tests that show them.
const coveragePage = "docs/seed-coverage.md"

var shownTest = regexp.MustCompile("^`Test[A-Z][A-Za-z0-9]*_\\w+`$")

// TestU263_every_behaviour_of_the_coverage_page_has_tests holds that no row goes without a test, and that each of them exists.
func TestU263_every_behaviour_of_the_coverage_page_has_tests(t *testing.T) {
	t.Parallel()
	p := pageNamed(t, coveragePage)
	rows, faults := checkCoverage(p)
	if rows < 80 {
		t.Errorf("only %d rows are read: the page is written in another way", rows)
	}
	for _, fault := range append(faults, checkStores(p, testBodies(t))...) {
		t.Error(fault)
	}
	for _, fault := range checkWords(p) {
		t.Error(fault)
	}
}

func TestU263_a_behaviour_without_a_test_is_found(t *testing.T) {
	t.Parallel()
	const head = "| Seen in the seed | Here | Shown by |\n|---|---|---|\n"
	planted{
		{head + "| it waits | W50 | `TestW50_it_waits`, `TestW51_it_goes_on` |\n", ""},
		{head + "| it waits | W50 | |\n", "it waits: no test"},
		{head + "| it waits | W50 | see above |\n", "it waits: no test"},
		{head + "| it waits | W50 | `TestW50_it_waits`, soon |\n", "it waits: no test"},
		{head + "| it waits | | `TestW50_it_waits` |\n", "it waits: nothing is said of it"},
		{head + "| it waits | W50 |\n", "has 2 cells"},
	}.finds(t, func(p page) []string {
		_, faults := checkCoverage(p)
		return faults
	})
}

func TestU263_a_behaviour_that_no_test_shows_on_both_stores_is_found(t *testing.T) {
	t.Parallel()
	const head = "| Seen in the seed | Here | Shown by |\n|---|---|---|\n"
	bodies := map[string][]string{
		"TestW50_alone": {"x := newStory(t)"}, "TestW50_stores": {"onStores(t, func(t *testing.T, w *world) {})"},
		"TestW50_one": {"onAlone(t, cfg, f)", "onShared(t, cfg, f)"},
	}
	planted{
		{head + "| it waits | W50 | `TestW50_alone`, `TestW50_stores` |\n", ""},
		{head + "| it waits | W50 | `TestW50_alone` |\n", "it waits: no test runs on both stores"},
		{head + "| it waits | W50 | `TestW50_one` |\n", "it waits: no test runs on both stores"},
		{head + "| it waits | W50 | `TestW50_gone`, `TestW50_stores` |\n", "there is no TestW50_gone"},
	}.finds(t, func(p page) []string { return checkStores(p, bodies) })
}

// onBothStores is how a test runs on both stores: by one of the functions of its package that do so.
var onBothStores = regexp.MustCompile(`\b(on[A-Z]\w*|unswept|everyStore|atOwnTime)\(t`)

// onOneStore are those functions that use one store alone.
var onOneStore = regexp.MustCompile(`\b(onAlone|onShared|onOneStore)\(t`)

// checkStores holds that every row names a test that is there and runs on both stores.
func checkStores(p page, bodies map[string][]string) (faults []string) {
	for line := range strings.Lines(p.prose) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[2], "`Test") {
			continue
		}
		both := false
		for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			if bodies[name[1]] == nil {
				faults = append(faults, p.name+": there is no "+name[1])
			}
			for _, body := range bodies[name[1]] {
				both = both || onBothStores.MatchString(onOneStore.ReplaceAllString(body, ""))
			}
		}
		if !both {
			faults = append(faults, p.name+": "+strings.TrimSpace(cells[0])+": no test runs on both stores")
		}
	}
	return faults
}

var testFunction = regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n(.*?)^\}`)

// testBodies reads what the tests of the tree do, by name.
func testBodies(t *testing.T) map[string][]string {
	t.Helper()
	bodies := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunction.FindAllSubmatch(text, -1) {
			bodies[string(found[1])] = append(bodies[string(found[1])], string(found[2]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies
}

// checkCoverage reads the rows of the tables.
func checkCoverage(p page) (rows int, faults []string) {
	for line := range strings.Lines(p.prose) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Seen in the seed |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			faults = append(faults, fmt.Sprintf("%s: %q has %d cells", p.name, line, len(cells)))
			continue
		}
		seen := strings.TrimSpace(cells[0])
		if strings.TrimSpace(cells[1]) == "" {
			faults = append(faults, p.name+": "+seen+": nothing is said of it")
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			if !shownTest.MatchString(strings.TrimSpace(name)) {
				faults = append(faults, p.name+": "+seen+": no test")
			}
		}
	}
	return rows, faults
}
