// Package contract has no code of its own: the script run fuzzes the OpenAPI document of a server, and its tests are here.
package contract

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFuzzerFailsAndSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		python string // a script in place of python3; none: there is no python3
		says   string
	}{
		"no Python":       {"", "python3 is missing"},
		"an old Python":   {"exit 1", "python3 is too old"},
		"no venv":         {`case "$2" in *ensurepip*) exit 1 ;; esac`, "lacks venv or pip"},
		"no index to ask": {"case \"$1\" in -m) mkdir -p \"$3/bin\"; printf '#!/bin/sh\\nexit 1\\n' >\"$3/bin/pip\"; chmod +x \"$3/bin/pip\" ;; esac", "cannot be installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			programs := filepath.Join(root, "programs")
			script := copyScript(t, root)
			for _, program := range []string{"sh", "dirname", "mkdir", "chmod"} {
				link(t, programs, program)
			}
			if c.python != "" {
				write(t, filepath.Join(programs, "python3"), "#!/bin/sh\n"+c.python+"\n")
			}
			cmd := exec.Command("sh", script)
			cmd.Env = []string{"PATH=" + programs}
			said, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ends with %v, want exit status 1", err)
			}
			if !strings.Contains(string(said), c.says) || !strings.Contains(string(said), "make fuzz CONTRACT=") {
				t.Errorf("it says %q, want %q and how to leave it out", said, c.says)
			}
		})
	}
}

// copyScript puts the script where it makes its environment below root.
func copyScript(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile("run")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "tools", "contract", "run")
	write(t, path, string(text))
	return path
}

// link puts a program of the machine into dir.
func link(t *testing.T, dir, program string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(dir, program)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
