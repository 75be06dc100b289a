package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"
)

func TestExplainedRefusalsHaveTheTextsOfTheCode(t *testing.T) {
	t.Parallel()
	holds(t, checkExplained, "the fuzzer takes a refusal for explained by its text: after a rewording it fails, an hour later")
}

func TestExplainedTextsThatNothingSaysAreFound(t *testing.T) {
	t.Parallel()
	const code = "package a\nvar x = \"the revision is %d, \" +\n\t\"not %d\"\nfunc f(name string) string { return name + \" is missing here\" }\n"
	refusal := func(detail string) string {
		return "REFUSALS = [\n    Refusal(\n        \"why, (so)\", FENCED + \"|b\", BAD, r\"/x(/.*)?\", " + detail + ",\n    ),\n]\n"
	}
	finds(t, checkExplained, []example{
		{name: "texts that are said", files: map[string]string{
			"a/a.go": code, "tools/contract/checks.py": refusal(`r"the revision is \d+, not \d+|\w+ is missing (here|there, not)"`),
		}, want: []string{"is missing there"}},
		{name: "any text", files: map[string]string{"a/a.go": code, "tools/contract/checks.py": refusal("ANY")}},
		{name: "a text around a word", files: map[string]string{
			"a/a.go": "package a\nfunc f(kind string) string { return \"expected \" + kind + \", found \" + kind }\n", "tools/contract/checks.py": refusal(`"expected an object, found .*|awaited an object, found .*"`),
		}, want: []string{"awaited an object"}},
		{name: "an old text", files: map[string]string{
			"a/a.go": code, "a/a_test.go": "package a\nvar old = \"the old text\"\n", "tools/contract/checks.py": refusal(`"the old text"`),
		}, want: []string{"the old text"}},
		{name: "a text of a function", files: map[string]string{
			"a/a.go": code, "tools/contract/checks.py": refusal("ANY") + "RAW = r\"an old text, .*\"\n    found = re.search(r\"in (\\d+) old bytes\", detail)\n",
		}, want: []string{"an old text", "old bytes"}},
	})
}

const contractChecks = "tools/contract/checks.py"

var (
	pythonRefusal = regexp.MustCompile(`(?m)^    Refusal\(`)
	pythonOther   = regexp.MustCompile(`(?m)^RAW = r(".*")|re\.(?:search|fullmatch)\(r(".*?"), detail\)`)
)

// checkExplained finds texts of refusals that the exceptions of the contract expect and that no code says.
func checkExplained(all []source) (found []string) {
	var said []string
	var texts []string
	for _, s := range all {
		switch {
		case s.path == contractChecks:
			texts = append(texts, explainedTexts(s.text)...)
		case s.isGo() && !s.isTest() && !s.foreign():
			said = append(said, saidTexts(s)...)
		}
	}
	for _, text := range texts {
		for _, parts := range fixedParts(text) {
			if !saidInOrder(said, parts) {
				found = append(found, fmt.Sprintf("%s: no code says %q", contractChecks, strings.Join(parts, "...")))
			}
		}
	}
	return found
}

// explainedTexts are the expressions for texts of refusals, the last argument of each Refusal and those of functions. A detail that may be anything
// is none.
func explainedTexts(python string) (texts []string) {
	for _, at := range pythonRefusal.FindAllStringIndex(python, -1) {
		if last := lastArgument(python[at[1]:]); last != "" {
			texts = append(texts, last)
		}
	}
	for _, match := range pythonOther.FindAllStringSubmatch(python, -1) {
		texts = append(texts, unquoted(match[1]+match[2]))
	}
	return texts
}

// lastArgument is the last argument of a call of which the arguments follow; "" unless it is a text.
func lastArgument(python string) (last string) {
	depth := 1
	for i := 0; i < len(python); i++ {
		switch python[i] {
		case '"':
			end := i + 1 + strings.IndexByte(python[i+1:], '"')
			last, i = unquoted(python[i:end+1]), end
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return last
			}
		case 'A':
			if strings.HasPrefix(python[i:], "ANY") {
				last = ""
			}
		}
	}
	return ""
}

func unquoted(text string) string { return strings.Trim(text, `"`) }

// fixedParts are the texts between the variable parts of an expression, for each of its alternatives. Numbers are variable.
func fixedParts(expression string) [][]string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return [][]string{{err.Error()}}
	}
	var ways func(e *syntax.Regexp) []string
	ways = func(e *syntax.Regexp) []string {
		switch e.Op {
		case syntax.OpLiteral:
			return []string{string(e.Rune)}
		case syntax.OpEmptyMatch:
			return []string{""}
		case syntax.OpCapture:
			return ways(e.Sub[0])
		case syntax.OpAlternate:
			var all []string
			for _, each := range e.Sub {
				all = append(all, ways(each)...)
			}
			return all
		case syntax.OpConcat:
			all := []string{""}
			for _, each := range e.Sub {
				var longer []string
				for _, before := range all {
					for _, after := range ways(each) {
						longer = append(longer, before+after)
					}
				}
				all = longer
			}
			return all
		default:
			return []string{variable}
		}
	}
	var all [][]string
	for _, way := range ways(parsed) {
		all = append(all, strings.FieldsFunc(way, func(r rune) bool { return r == 0 || '0' <= r && r <= '9' }))
	}
	return all
}

func saidInOrder(said, parts []string) bool {
	for _, text := range said {
		rest, ok := text, len(parts) > 0
		for _, part := range parts {
			var found bool
			_, rest, found = strings.Cut(rest, part)
			ok = ok && found
		}
		if ok || len(parts) > 0 && saysMost(text, parts[0]) {
			return true
		}
	}
	return false
}

// saysMost reports whether a text that is put together around a variable part can be the expected one, with at least half of it in the code.
func saysMost(text, part string) bool {
	before, after, around := strings.Cut(strings.Trim(text, variable), variable)
	if !around || before == "" || after == "" || 2*(len(before)+len(after)) < len(part) {
		return false
	}
	return strings.HasPrefix(part, before) && strings.Contains(part[len(before):], after)
}

// variable stands for what is not in the text itself.
const variable = "\x00"

// saidTexts are the texts in the code of a file; those that are put together stand as one.
func saidTexts(s source) (texts []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text := joined(e)
		if text != variable {
			texts = append(texts, text)
		}
		return text == variable
	})
	return texts
}

// joined is a literal text, or a sum of texts of which some are literal.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return strings.ReplaceAll(joined(e.X)+joined(e.Y), variable+variable, variable)
		}
	}
	return variable
}
