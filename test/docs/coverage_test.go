package docs

import (
	"fmt"
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
	for _, fault := range faults {
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
