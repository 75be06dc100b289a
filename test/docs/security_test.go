package docs

import (
	"os"
	"path/filepath"
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

// TestU179_no_page_and_no_manifest_puts_a_secret_on_a_command_line holds that what people copy leaves secrets out of the list of processes.
func TestU179_no_page_and_no_manifest_puts_a_secret_on_a_command_line(t *testing.T) {
	t.Parallel()
	holds(t, checkCommandLines)
	for _, name := range files(".yaml") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range secretsInArguments(name, string(text)) {
			t.Error(fault)
		}
	}
}

func TestU179_a_secret_on_a_command_line_is_found(t *testing.T) {
	t.Parallel()
	planted{
		{"```text\n$ docker run --env FF_API_KEY --env FF_LISTEN=127.0.0.1:1 -e FF_STORE_FILE=/s x\n```\n", ""},
		{"```text\n$ kubectl create secret generic x --from-file=key\n```\n", ""},
		{"```text\n$ export FF_API_KEY=\"$(cat key)\"\n```\n", ""},
		{"```text\n$ kubectl create secret generic x --from-literal=key=1\n```\n", "--from-literal"},
		{"```text\n$ docker run --env FF_BOOTSTRAP_ADMIN_KEY=\"$(cat key)\" x\n```\n", "FF_BOOTSTRAP_ADMIN_KEY"},
		{"```text\n$ docker run -e FF_MASTER_KEY=1 x\n```\n", "FF_MASTER_KEY"},
		{"```text\n$ flowfabric list --key \"$(cat key)\"\n```\n", "--key"},
	}.finds(t, checkCommandLines)
}

// secretArgument finds secrets among the arguments of programs, which all users of a host can list.
var secretArgument = regexp.MustCompile(`--from-literal\b|(?:--env|-e)[ =]FF_\w*(?:KEY|SECRET|PASSWORD)=\S|--(?:key|master-key|new-master-key|signing-secret)[ =]["'$]\S*`)

func checkCommandLines(p page) (faults []string) {
	for _, b := range p.blocks {
		faults = append(faults, secretsInArguments(p.name, b.text)...)
	}
	return faults
}

func secretsInArguments(name, text string) (faults []string) {
	for _, found := range secretArgument.FindAllString(text, -1) {
		faults = append(faults, name+": a secret on a command line: "+found)
	}
	return faults
}
