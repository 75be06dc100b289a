package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module in which bugs are planted.
const root = "../.."

func planted(t *testing.T) []*mutant {
	t.Helper()
	all, err := readAll("planted")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Whoever changes a line in which a bug is planted plants it anew: a bug that is not in the tree proves nothing.
func TestEveryBugCanBePlanted(t *testing.T) {
	t.Parallel()
	all := planted(t)
	if len(all) < 40 {
		t.Errorf("%d bugs, want at least 40", len(all))
	}
	for _, m := range all {
		files, err := m.apply(root)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for file, text := range files {
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: %s is a test", m.Name, file)
			}
			if before, _ := os.ReadFile(filepath.Join(root, file)); string(before) == text {
				t.Errorf("%s: %s stays as it is", m.Name, file)
			}
		}
	}
}
