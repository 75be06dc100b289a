package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// claimsPage names the tests of what the pages about security say.
const claimsPage = "docs/security-tests.md"

// claimed are the sections of the page of claims, and the pages whose sections must have claims there.
var claimed = map[string]string{"Security policy": "SECURITY.md", "Security": "docs/security.md"}

// unclaimed are sections about what people do.
var unclaimed = []string{"Which versions get fixes", "Reporting a vulnerability"}

// TestU263_every_claim_about_security_has_tests holds that each section of these pages has claims, and each attack tests, and that all tests exist.
func TestU263_every_claim_about_security_has_tests(t *testing.T) {
	t.Parallel()
	p := pageNamed(t, claimsPage)
	exists := shownBy(t)
	for title, name := range claimed {
		for _, fault := range checkClaims(p, title, pageNamed(t, name), exists) {
			t.Error(fault)
		}
	}
	for _, fault := range checkAttacks(p, exists) {
		t.Error(fault)
	}
}

func TestU263_a_claim_without_a_test_is_found(t *testing.T) {
	t.Parallel()
	const head = "# Tests\n\n## Security\n\n| Section | Claim | Shown by |\n|---|---|---|\n"
	about := readPage("page.md", "# Security\n\n## Keys\n")
	exists := func(name string) bool { return name == "TestU1_there" || name == "there.txtar" }
	planted{
		{head + "| Keys | good ones | `TestU1_there`, `there.txtar` |\n", ""},
		{head + "| Keys | good ones | `TestU1_gone` |\n", "there is no TestU1_gone"},
		{head + "| Keys | good ones | `gone.txtar` |\n", "there is no gone.txtar"},
		{head + "| Keys | good ones | soon |\n", "good ones: no test"},
		{head, "Keys: no claim"},
		{head + "\n## Attacks\n\n| Keys | good ones | `TestU1_there` |\n", "Keys: no claim"},
		{head + "| Keys | good ones | `TestU1_there` |\n| Locks | good ones | `TestU1_there` |\n", "there is no section Locks"},
	}.finds(t, func(p page) []string { return checkClaims(p, "Security", about, exists) })
}

func TestU263_an_attack_without_a_test_is_found(t *testing.T) {
	t.Parallel()
	const head = "# Tests\n\n## Attacks\n\n| No. | Attack | Shown by |\n|---|---|---|\n"
	exists := func(name string) bool { return name == "TestU1_there" }
	planted{
		{head + "| 1 | a flood | `TestU1_there` |\n| 2 | a forgery | `TestU1_there` |\n", ""},
		{head + "| 1 | a flood | `TestU1_gone` |\n", "there is no TestU1_gone"},
		{head + "| 1 | a flood | |\n", "a flood: no test"},
		{head + "| 2 | a flood | `TestU1_there` |\n", "2 in place of 1"},
		{head, "no attacks"},
	}.finds(t, func(p page) []string { return checkAttacks(p, exists) })
}

// shownBy reports whether there is a test, or a script of commands, of that name.
func shownBy(t *testing.T) func(name string) bool {
	t.Helper()
	bodies := testBodies(t)
	return func(name string) bool {
		if !strings.HasSuffix(name, ".txtar") {
			return bodies[name] != nil
		}
		_, err := os.Stat(filepath.Join(root, "cmd/flowfabric/testdata/script", name))
		return err == nil
	}
}

var (
	sectionName = regexp.MustCompile(`(?m)^##+ (.+)$`)
	shownName   = regexp.MustCompile("`(Test\\w+|[a-z-]+\\.txtar)`")
)

// claimRow is a row of a table of the page of claims.
type claimRow struct{ of, claim, shown string }

// claimRows are the rows of the table below that title.
func claimRows(p page, title string) (rows []claimRow) {
	_, table, _ := strings.Cut(p.prose, "\n## "+title+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Section |") || strings.HasPrefix(line, "| No. |") {
			continue
		}
		rows = append(rows, claimRow{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), cells[2]})
	}
	return rows
}

// faults are the tests of a claim that are missing.
func (r claimRow) faults(p page, exists func(name string) bool) (faults []string) {
	names := shownName.FindAllStringSubmatch(r.shown, -1)
	if len(names) == 0 {
		faults = append(faults, p.name+": "+r.claim+": no test")
	}
	for _, name := range names {
		if !exists(name[1]) {
			faults = append(faults, p.name+": there is no "+name[1])
		}
	}
	return faults
}

// checkClaims reads the table of claims of the page that it is about.
func checkClaims(p page, title string, about page, exists func(name string) bool) (faults []string) {
	claims := map[string]int{}
	for _, found := range sectionName.FindAllStringSubmatch(about.prose, -1) {
		claims[found[1]] = 0
	}
	for _, row := range claimRows(p, title) {
		if _, known := claims[row.of]; !known {
			faults = append(faults, about.name+": there is no section "+row.of)
		}
		claims[row.of]++
		faults = append(faults, row.faults(p, exists)...)
	}
	for section, n := range claims {
		if n == 0 && !slices.Contains(unclaimed, section) {
			faults = append(faults, about.name+": "+section+": no claim")
		}
	}
	return faults
}

// checkAttacks reads the table of attacks, which are numbered.
func checkAttacks(p page, exists func(name string) bool) (faults []string) {
	rows := claimRows(p, "Attacks")
	if len(rows) == 0 {
		faults = append(faults, p.name+": no attacks")
	}
	for i, row := range rows {
		if want := strconv.Itoa(i + 1); row.of != want {
			faults = append(faults, p.name+": attack "+row.of+" in place of "+want)
		}
		faults = append(faults, row.faults(p, exists)...)
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
		{"```text\n$ curl -H @key.header http://127.0.0.1:7433/v1/whoami\n```\n", ""},
		{"```text\n$ curl -H \"Authorization: Bearer $FF_API_KEY\" http://127.0.0.1:7433/v1/whoami\n```\n", "Authorization"},
		{"```text\n$ flowfabric list --key \"$(cat key)\"\n```\n", "--key"},
	}.finds(t, checkCommandLines)
}

// secretArgument finds secrets among the arguments of programs, which all users of a host can list.
var secretArgument = regexp.MustCompile(`--from-literal\b|(?:--env|-e)[ =]FF_\w*(?:KEY|SECRET|PASSWORD)=\S|-H "Authorization: Bearer \$|--(?:key|master-key|new-master-key|signing-secret)[ =]["'$]\S*`)

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
