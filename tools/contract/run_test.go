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

func TestTheFuzzerTriesBothServersAndSaysWhatCameOfIt(t *testing.T) {
	t.Parallel()
	const ready = `echo '{"msg":"ready","address":"http://127.0.0.1:1"}'` + "\n"
	for name, c := range map[string]struct {
		server string // what a server does
		fuzzer string // what schemathesis does
		exit   int
		says   string
	}{
		"nothing found":       {ready + "exec sleep 600", "exit 0", 0, "contract: dev and serve answer as the OpenAPI document says, EXAMPLES=2 SEED=7"},
		"found on dev":        {ready + "exec sleep 600", `case "$*" in *Bearer*) exit 0 ;; esac; exit 1`, 1, "contract: failed on dev: "},
		"found on serve":      {ready + "exec sleep 600", `case "$*" in *Bearer*) exit 1 ;; esac; exit 0`, 1, "contract: failed on serve: "},
		"found on both":       {ready + "exec sleep 600", "exit 1", 1, "contract: failed on dev serve: "},
		"serve breaks down":   {`case "$1" in serve) trap "exit 2" TERM ;; esac` + "\n" + ready + "while :; do sleep 0.1; done", "exit 0", 1, "contract: failed on serve: "},
		"no server gets up":   {"echo broken; exit 1", "exit 0", 1, "broken"},
		"the flags are wrong": {ready + "exec sleep 600", "exit 2", 1, "contract: failed on dev serve: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			programs := filepath.Join(root, "programs")
			script := copyScript(t, root)
			for _, program := range []string{"sh", "dirname", "mktemp", "cp", "sed", "sleep", "rm", "nice", "tail", "cat", "chmod"} {
				link(t, programs, program)
			}
			write(t, filepath.Join(root, "tools", "contract", "schemathesis.toml"), "")
			write(t, filepath.Join(root, "tools", "contract", "checks.py"), "")
			write(t, filepath.Join(programs, "python3"), "#!/bin/sh\n")
			write(t, filepath.Join(root, "bin", "schemathesis-"+version(t), "bin", "schemathesis"), "#!/bin/sh\necho fuzzed\n"+c.fuzzer+"\n")
			write(t, filepath.Join(root, "server"), "#!/bin/sh\ncase \"$1\" in api-keys) exit 0 ;; esac\n"+c.server+"\n")
			write(t, filepath.Join(programs, "go"), "#!/bin/sh\ncp "+filepath.Join(root, "server")+" \"$3\"\n")
			cmd := exec.Command("sh", script)
			cmd.Env = []string{"PATH=" + programs, "EXAMPLES=2", "SEED=7"}
			said, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != c.exit {
				t.Errorf("it ends with %d, want %d: %s", got, c.exit, said)
			}
			if lines := strings.Split(strings.TrimSpace(string(said)), "\n"); !strings.HasPrefix(lines[len(lines)-1], c.says) {
				t.Errorf("its last line is not %q: %s", c.says, said)
			}
			if tried := strings.Count(string(said), "fuzzed"); tried != 2 && c.says != "broken" {
				t.Errorf("%d servers were tried: %s", tried, said)
			}
		})
	}
}

// version is that of schemathesis in the script.
func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("run")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VERSION=")
	found, _, _ := strings.Cut(rest, "\n")
	return found
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
