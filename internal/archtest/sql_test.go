package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSQLLivesInTheStores(t *testing.T) {
	t.Parallel()
	holds(t, checkSQLPlace, "only internal/store/<name> has SQL, and there it lies in .sql files: a test prepares every statement and looks at its plan")
}

func TestSQLHoldsNoRuleOfTheDomain(t *testing.T) {
	t.Parallel()
	holds(t, checkSQLRules, "no rule of the domain in SQL: a case over states is a smell. What may happen to an execution is decided once, in core; statements only keep it")
}

func TestSQLInOtherPlacesIsFound(t *testing.T) {
	t.Parallel()
	finds(t, checkSQLPlace, []example{
		{name: "where it belongs", files: map[string]string{
			"internal/store/sqlite/claim.sql": "select 1 from queue", "internal/store/sqlite/sql/a.sql": "select 1", "bench/raw/a.sql": "select 1",
			"a.go":                       "package a\nvar s = \"select what you want from the list\"\n",
			"postgres/b.go":              "package a\nimport \"github.com/jackc/pgx/v5\"\nfunc SubmitTx(tx pgx.Tx) {}\n",
			"internal/store/p/p.go":      "package p\nimport _ \"github.com/jackc/pgx/v5/pgxpool\"\n",
			"internal/engine/a_test.go":  "package a\nimport _ \"database/sql\"\nvar s = \"select id from exec\"\n",
			"examples/order-tx/order.go": "package a\nimport _ \"database/sql\"\nvar s = \"insert into orders values (1)\"\n",
		}},
		{name: "a file outside the stores", files: map[string]string{"internal/engine/a.sql": "select 1", "internal/store/a.sql": "select 1"}, want: []string{"internal/engine/a.sql", "internal/store/a.sql"}},
		{name: "text in Go", files: map[string]string{
			"internal/engine/a.go":  "package a\nvar s = `\n  Update exec\n  set status = 1`\nvar r = \"delete from \" + t\n",
			"internal/store/p/p.go": "package p\nvar s = \"insert into queue values (1)\"\n",
		}, want: []string{"a.go:2", "a.go:5", "p.go:2"}},
		{name: "a driver outside the stores", files: map[string]string{"internal/engine/a.go": "package a\nimport _ \"database/sql\"\nimport _ \"modernc.org/sqlite\"\n"}, want: []string{"database/sql", "modernc.org/sqlite"}},
	})
}

func TestRulesInSQLAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkSQLRules, []example{
		{name: "rows and conditions", files: map[string]string{
			"a.sql": "-- CASE WHEN status: a comment\nupdate exec set status = $1 where id = $2 and status = 5;\nselect case when count(*) > 5 then 5 else 0 end from queue where status = 1;\nselect 'Case when status';\n" +
				"create table exec (status int, constraint c check (case status when 1 then (reason = 1) else false end), reason int);",
		}},
		{name: "a case over states", files: map[string]string{
			"a.sql": "update exec set reason = case\n  when e.status = 1 then 2 else 3 end;",
			"b.sql": "select case status when 1 then 'x' end, case when a then case when next = 1 then 2 end end from exec",
			"c.sql": "select iif(status = 1, 2, 3)",
		}, want: []string{"a.sql:1", "b.sql:1", "b.sql:1", "c.sql:1"}},
		{name: "a trigger", files: map[string]string{"a.sql": "select 1;\ncreate trigger t"}, want: []string{"a.sql:2"}},
		{name: "upper case", files: map[string]string{"a.sql": "select 1;\nSELECT 2"}, want: []string{"a.sql:2"}},
	})
}

var (
	// statement recognises SQL by a verb and what must follow it.
	statement = regexp.MustCompile(`(?is)^\s*(with\s+\w+\s+as\b|select\b.*\bfrom\s+\w+\s*(where|order|limit|join|for|,|$)|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|(create|alter|drop)\s+(table|index|schema|view|sequence)\s)`)
	drivers   = []string{"database/sql", "github.com/jackc/pgx/v5", "modernc.org/sqlite"}
	// speakSQL lists the directories beside the stores in which SQL may stand.
	speakSQL = []string{
		"bench",           // measures the database without the engine
		"internal/pgtest", // makes and drops databases
		"examples",        // programs of users with tables of their own
		"tools",
	}
)

func checkSQLPlace(all []source) []string {
	var found []string
	for _, s := range all {
		if underAny(s.path, speakSQL...) || s.isTest() {
			continue
		}
		inStore := under(s.path, "internal/store") && strings.Count(s.path, "/") > 2
		switch {
		case s.isSQL() && !inStore:
			found = append(found, s.path+" lies outside internal/store/<name>")
		case s.isGo():
			found = append(found, statements(s)...)
			if !inStore && !slices.Contains(openers, s.dir()) { // which name the transactions of their users
				found = append(found, imported(s, drivers)...)
			}
		}
	}
	return found
}

// statements finds SQL in the string literals of a Go file.
func statements(s source) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
			found = append(found, s.at(lit)+" holds SQL")
		}
		return true
	})
	return found
}

func imported(s source, pkgs []string) []string {
	var found []string
	for _, spec := range s.file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err == nil && underAny(to, pkgs...) {
			found = append(found, s.path+" imports "+to)
		}
	}
	return found
}

var (
	sqlNoise   = regexp.MustCompile(`--[^\n]*|'[^']*'`)
	sqlWord    = regexp.MustCompile(`[A-Za-z_]+`)
	sqlState   = regexp.MustCompile(`^(status|reason|next|state|attempt_state|patch_state)$`)
	sqlTrigger = regexp.MustCompile(`(?i)\bcreate\s+(or\s+replace\s+)?(constraint\s+)?trigger\b`)
	sqlCheck   = regexp.MustCompile(`(?i)\bcheck\s*\(`)
	sqlTernary = regexp.MustCompile(`(?i)\biif\s*\(\s*(\w+\.)?(status|reason|next|state)\b`)
	sqlUpper   = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|CREATE|TABLE|INTO|VALUES|JOIN)\b`)
)

func checkSQLRules(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isSQL() {
			continue
		}
		text := sqlNoise.ReplaceAllStringFunc(s.text, blank)
		report := func(offset int, what string) {
			found = append(found, fmt.Sprintf("%s:%d: %s", s.path, 1+strings.Count(text[:offset], "\n"), what))
		}
		for _, offset := range casesOverStates(withoutChecks(text)) {
			report(offset, "a case over states")
		}
		for _, at := range sqlTernary.FindAllStringIndex(text, -1) {
			report(at[0], "a case over states")
		}
		for _, at := range sqlTrigger.FindAllStringIndex(text, -1) {
			report(at[0], "a trigger acts where no reader of the code sees it")
		}
		for _, at := range sqlUpper.FindAllStringIndex(text, 1) {
			report(at[0], "keywords are written in lower case")
		}
	}
	return found
}

// withoutChecks blanks constraints: they decide nothing, they refuse what core never writes.
func withoutChecks(text string) string {
	for _, at := range sqlCheck.FindAllStringIndex(text, -1) {
		depth, end := 1, at[1]
		for ; end < len(text) && depth > 0; end++ {
			switch text[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		text = text[:at[1]] + blank(text[at[1]:end]) + text[end:]
	}
	return text
}

// casesOverStates returns where a `case ... end` begins in which a column that holds a state is named.
func casesOverStates(text string) []int {
	type open struct {
		at   int
		told bool
	}
	var found []int
	var stack []open
	for _, at := range sqlWord.FindAllStringIndex(text, -1) {
		word := strings.ToLower(text[at[0]:at[1]])
		switch {
		case word == "case":
			stack = append(stack, open{at: at[0]})
		case len(stack) == 0:
		case word == "end":
			stack = stack[:len(stack)-1]
		case sqlState.MatchString(word) && !stack[len(stack)-1].told:
			stack[len(stack)-1].told = true
			found = append(found, stack[len(stack)-1].at)
		}
	}
	return found
}

// blank keeps the length and the lines of a text and nothing else.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}
