package binary

import (
	"os"
	"path/filepath"
	"testing"
)

func TestA_program_that_is_already_built_is_used(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	if err := os.WriteFile(ready, []byte("ready"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, ready)
	path, err := In(filepath.Join(t.TempDir(), "programs"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "ready" {
		t.Errorf("%s: %q, %v", path, text, err)
	}
}
