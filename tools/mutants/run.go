package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What became of a planted bug.
const (
	caught    = "caught"
	survived  = "SURVIVED"
	tooSlow   = "TOO SLOW"    // its check did not end in time; without the bug it does
	unplanted = "NOT PLANTED" // its text is not in the tree, or what it makes does not compile
	unclean   = "UNCLEAN"     // its check fails without it
)

// result is what became of a planted bug.
type result struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Check   string  `json:"check"`
	Outcome string  `json:"outcome"`
	Seconds float64 `json:"seconds"` // of the check
	By      string  `json:"by"`      // the first test that failed
	Why     string  `json:"why,omitempty"`
}

// run is how bugs are planted.
type run struct {
	root  string
	limit time.Duration
	clean map[string]string // by check: why it fails without a bug; "" if it passes
}

// all plants the bugs one after the other.
func (r *run) all(ctx context.Context, mutants []*mutant, out io.Writer) ([]result, error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	r.clean = map[string]string{}
	var results []result
	for i, m := range mutants {
		res, err := r.one(ctx, m, scratch)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fmt.Fprintf(out, "%3d/%d %-11s %5.1fs %s%s\n", i+1, len(mutants), res.Outcome, res.Seconds, m.Name, by(res.By))
		if res.Why != "" {
			fmt.Fprintln(out, res.Why)
		}
		results = append(results, res)
	}
	return results, nil
}

func by(test string) string {
	if test == "" {
		return ""
	}
	return " by " + test
}

// one plants one bug.
func (r *run) one(ctx context.Context, m *mutant, scratch string) (result, error) {
	res := result{Name: m.Name, What: m.What, Check: m.Package + " " + m.Tests}
	files, err := m.apply(r.root)
	if err != nil {
		res.Outcome, res.Why = unplanted, err.Error()
		return res, nil
	}
	why, err := r.cleanly(ctx, m, scratch)
	if err != nil {
		return res, err
	}
	if why != "" {
		res.Outcome, res.Why = unclean, why
		return res, nil
	}
	overlay, err := overlayOf(r.root, scratch, files)
	if err != nil {
		return res, err
	}
	binary := filepath.Join(scratch, "mutant.test")
	if said, err := r.compile(ctx, m, binary, "-overlay="+overlay); err != nil {
		res.Outcome, res.Why = unplanted, said
		return res, nil
	}
	said, took, err := r.check(ctx, m, binary)
	res.Seconds = took.Seconds()
	switch {
	case err == nil:
		res.Outcome = survived
	case errors.Is(err, errNoTest):
		res.Outcome, res.Why = unplanted, err.Error()
	case took >= r.limit:
		res.Outcome, res.Why = tooSlow, said
	default:
		res.Outcome, res.By = caught, firstFailure(said)
	}
	return res, nil
}

// checkOf names the check of a bug: several may share one.
func checkOf(m *mutant) string { return fmt.Sprint(m.Package, " ", m.Tests, " ", m.Race) }

// cleanly runs the check of a bug without the bug, once for each check. It returns what the check says if it fails.
func (r *run) cleanly(ctx context.Context, m *mutant, scratch string) (why string, err error) {
	key := checkOf(m)
	if why, known := r.clean[key]; known {
		return why, nil
	}
	binary := filepath.Join(scratch, "clean.test")
	if said, err := r.compile(ctx, m, binary); err != nil {
		return "", fmt.Errorf("%s does not compile: %s", m.Package, said)
	}
	if said, _, err := r.check(ctx, m, binary); err != nil {
		why = fmt.Sprintf("%v\n%s", err, said)
	}
	r.clean[key] = why
	return why, nil
}

// compile builds the test binary of a package.
func (r *run) compile(ctx context.Context, m *mutant, binary string, flags ...string) (said string, err error) {
	args := append([]string{"test", "-c", "-vet=off", "-o", binary}, flags...)
	if m.Race {
		args = append(args, "-race", "-gcflags=modernc.org/...=-race=false")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, m.Package)...)
	cmd.Dir = r.root
	text, err := cmd.CombinedOutput()
	return string(text), err
}

var errNoTest = errors.New("no test has such a name")

// check runs the tests of a bug. An error means that they failed, or did not end in time.
func (r *run) check(ctx context.Context, m *mutant, binary string) (said string, took time.Duration, err error) {
	binary, err = filepath.Abs(binary)
	if err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", m.Tests, "-test.failfast", "-test.v", "-test.parallel", "4")
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(m.Package))
	// What a bug keeps from happening is waited for in vain: a third of the time is enough, and the test that waits then says so.
	cmd.Env = append(os.Environ(), "FLOWFABRIC_TEST_GIVE_UP="+(r.limit/3).String())
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with the processes that it started
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	began := time.Now()
	err = cmd.Run()
	said = text.String()
	if err == nil && !strings.Contains(said, "--- PASS") {
		err = errNoTest
	}
	return tail(said), time.Since(began), err
}

// tail keeps the end of what a check said, from the first failure on.
func tail(said string) string {
	if at := strings.Index(said, "--- FAIL"); at >= 0 {
		said = said[at:]
	}
	return said[:min(len(said), 8000)]
}

// firstFailure returns the name of the first test that failed, or what ended the program.
func firstFailure(said string) string {
	for _, mark := range []string{"--- FAIL: ", "panic: ", "fatal error: "} {
		if _, after, found := strings.Cut(said, mark); found {
			name, _, _ := strings.Cut(after, "\n")
			name, _, _ = strings.Cut(name, " (")
			return name
		}
	}
	return "its exit"
}

// overlayOf writes changed files, and the overlay that puts them in the place of the real ones.
func overlayOf(root, scratch string, files map[string]string) (path string, err error) {
	dir, err := os.MkdirTemp(scratch, "overlay")
	if err != nil {
		return "", err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(root, filepath.FromSlash(file))] = changed
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
