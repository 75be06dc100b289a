package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module writes a module with a test that runs the statements, and returns a search of two rounds in it.
func module(t *testing.T, statements string) search {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26\n",
		"a/a_test.go":   "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestRandom(t *testing.T) {\n" + statements + "\n}\n",
		"a/all_test.go": "package a\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) { t.Error(\"not asked for\") }\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return search{limit: time.Hour, rounds: 2, dir: dir}
}

func TestTestsRunFromFreshSeeds(t *testing.T) {
	t.Parallel()
	s := module(t, `	if os.Getenv("FLOWFABRIC_TEST_SEED") != "random" { t.Error("a fixed seed") }`)
	var out strings.Builder
	findings, err := s.run(t.Context(), []string{"./a=TestRandom"}, &out)
	if findings != 0 || err != nil || strings.Contains(out.String(), "FOUND") || !strings.Contains(out.String(), "2 runs, 0 failed  ./a TestRandom") {
		t.Errorf("%d findings, %v:\n%s", findings, err, &out)
	}
}

func TestAFindingIsPrintedWithItsStoryAndCounted(t *testing.T) {
	t.Parallel()
	s := module(t, `	if _, err := os.Stat("found"); err != nil { os.WriteFile("found", nil, 0o600); t.Fatal("the story") }`)
	var out strings.Builder
	findings, err := s.run(t.Context(), []string{"./a=TestRandom"}, &out)
	if findings != 1 || err != nil || !strings.Contains(out.String(), "the story") || !strings.Contains(out.String(), "FOUND in ./a TestRandom") {
		t.Errorf("%d findings, %v:\n%s", findings, err, &out)
	}
}

func TestWhatDoesNotBuildIsAnError(t *testing.T) {
	t.Parallel()
	s := module(t, `	undefined()`)
	if _, err := s.run(t.Context(), []string{"./a"}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "does not build") {
		t.Errorf("%v", err)
	}
}
