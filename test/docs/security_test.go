package docs

import (
	"regexp"
	"strings"
	"testing"
)

// securityPage makes promises, and names the tests that hold them.
const securityPage = "docs/security.md"

// TestU263_every_claim_of_the_security_page_has_tests holds that each section of the page has claims, and that their tests exist.
func TestU263_every_claim_of_the_security_page_has_tests(t *testing.T) {
	t.Parallel()
	p := pageNamed(t, securityPage)
	for _, fault := range checkClaims(p, testBodies(t)) {
		t.Error(fault)
	}
}

func TestU263_a_claim_without_a_test_is_found(t *testing.T) {
	t.Parallel()
	const head = "# Security\n\n## Keys\n\n## What shows it\n\n| Section | Claim | Shown by |\n|---|---|---|\n"
	bodies := map[string][]string{"TestU1_there": {""}}
	planted{
		{head + "| Keys | good ones | `TestU1_there` |\n", ""},
		{head + "| Keys | good ones | `TestU1_gone` |\n", "there is no TestU1_gone"},
		{head + "| Keys | good ones | soon |\n", "good ones: no test"},
		{head, "Keys: no claim"},
		{head + "| Keys | good ones | `TestU1_there` |\n| Locks | good ones | `TestU1_there` |\n", "there is no section Locks"},
	}.finds(t, func(p page) []string { return checkClaims(p, bodies) })
}

// lastSection of the page has the table of claims.
const lastSection = "What shows it"

var sectionName = regexp.MustCompile(`(?m)^##+ (.+)$`)

// checkClaims reads the table of claims.
func checkClaims(p page, bodies map[string][]string) (faults []string) {
	claims := map[string]int{}
	for _, found := range sectionName.FindAllStringSubmatch(p.prose, -1) {
		claims[found[1]] = 0
	}
	_, table, _ := strings.Cut(p.prose, "## "+lastSection)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Section |") {
			continue
		}
		section, claim := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		if _, known := claims[section]; !known {
			faults = append(faults, p.name+": there is no section "+section)
		}
		claims[section]++
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 {
			faults = append(faults, p.name+": "+claim+": no test")
		}
		for _, name := range tests {
			if bodies[name[1]] == nil {
				faults = append(faults, p.name+": there is no "+name[1])
			}
		}
	}
	for section, n := range claims {
		if n == 0 && section != lastSection {
			faults = append(faults, p.name+": "+section+": no claim")
		}
	}
	return faults
}
