package archtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// heavy are the packages of this module that a program does not carry which only connects to a server.
var heavy = []string{"internal/engine", "internal/store", "internal/service", "internal/server", "internal/inprocess", "sqlite", "postgres", "embedded"}

// heavyIn finds among the packages that a program is built of those that the root must not bring along.
func heavyIn(packages []string) (found []string) {
	for _, name := range packages {
		rel, own := strings.CutPrefix(name, module)
		switch {
		case !own && strings.Contains(strings.SplitN(name, "/", 2)[0], "."):
			found = append(found, name+" is a third-party package")
		case own && underAny(strings.TrimPrefix(rel, "/"), heavy...):
			found = append(found, name+" belongs to an engine in the process")
		case name == module+"/internal/core":
			found = append(found, name+" has the rules, which a server applies")
		}
	}
	return found
}

// goTool runs the go command in this directory.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(text)
}

func TestTheRootCarriesNoEngineAndNoLibrary(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../..", "./testdata/light"} {
		packages := strings.Fields(goTool(t, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", name))
		if len(packages) < 5 {
			t.Errorf("%s is built of %q", name, packages)
		}
		for _, finding := range heavyIn(packages) {
			t.Errorf("%s: %s\n\twhy: a program that only connects to a server must not pay for engines and databases", name, finding)
		}
	}
}

func TestAProgramThatOnlyConnectsIsBuilt(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "light")
	goTool(t, "build", "-o", program, "./testdata/light")
	for line := range strings.Lines(goTool(t, "version", "-m", program)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			t.Errorf("the program contains %s", fields[1])
		}
	}
}

func TestWhatTheRootMustNotCarryIsFound(t *testing.T) {
	t.Parallel()
	got := heavyIn([]string{module, module + "/api", module + "/internal/engine/txn", module + "/internal/store/sqlite", "modernc.org/sqlite", "encoding/json", module + "/sqlite", module + "/internal/core", module + "/internal/core/base"})
	if len(got) != 5 {
		t.Errorf("found %q", got)
	}
}
