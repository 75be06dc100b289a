package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTheClockIsReadInOnePlace(t *testing.T) {
	t.Parallel()
	holds(t, checkClock, "only the store's clock decides and tests turn time by hand: time enters as an argument or as a clock.Clock")
}

func TestReadersOfTheClockAreFound(t *testing.T) {
	t.Parallel()
	const now = "import \"time\"\nvar x = time.Now()\n"
	finds(t, checkClock, []example{
		{name: "where it may be read", files: map[string]string{
			"internal/clock/a.go": "package a\n" + now, "cmd/x/a.go": "package a\n" + now, "bench/a.go": "package a\n" + now,
			"internal/core/a_test.go": "package a\n" + now, "internal/core/a.go": "package a\nimport \"time\"\nvar x time.Duration",
			"internal/store/a.go": "package a\nimport \"time\"\nvar x = time.NewTimer(1)",
		}},
		{name: "Now, Since and Until", files: map[string]string{
			"internal/engine/a.go": "package a\n" + now + "var y = time.Since(x)\nvar z = time.Until(x)\n",
		}, want: []string{"time.Now", "time.Since", "time.Until"}},
		{name: "under another name", files: map[string]string{"a.go": "package a\nimport clock \"time\"\nvar x = clock.Now\n"}, want: []string{"time.Now"}},
		{name: "a timer that no test can turn", files: map[string]string{"internal/engine/a.go": "package a\nimport \"time\"\nvar x = time.After(1)\n"}, want: []string{"time.After"}},
	})
}

// readsClock lists the directories that may read the host's clock, beside tests.
var readsClock = []string{
	"internal/clock", // it is the clock
	"cmd",            // wiring
	"bench", "tools", // they measure
	"internal/pgtest", // it waits for a process to come up
	"examples",        // programs of users
}

// injected lists the directories in which waiting goes through the injected clock too.
var injected = []string{"internal/core", "internal/engine"}

func checkClock(all []source) []string {
	var found []string
	for _, s := range all {
		if !s.isGo() || s.isTest() || underAny(s.path, readsClock...) {
			continue
		}
		names := []string{"Now", "Since", "Until"}
		if underAny(s.path, injected...) {
			names = append(names, "After", "AfterFunc", "NewTicker", "NewTimer", "Sleep", "Tick")
		}
		found = append(found, uses(s, "time", names...)...)
	}
	return found
}

// uses finds names of an imported package, whatever it is called in the file.
func uses(s source, pkg string, names ...string) []string {
	local := importName(s, pkg)
	if local == "" {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, sel.Sel.Name) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
			found = append(found, s.at(sel)+": "+pkg+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

// importName is the name under which a file knows a package; "" if it does not import it.
func importName(s source, pkg string) string {
	for _, spec := range s.file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil || to != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(strings.TrimSuffix(pkg, "/v2"))
	}
	return ""
}
