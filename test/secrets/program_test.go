package secrets

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/internal/binary"
)

// built is the directory of the program that the tests run.
func built() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("flowfabric-secrets-%d", os.Getpid()))
}

// tidy removes what the tests have built.
type tidy struct{ tests interface{ Run() int } }

// Run runs the tests.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built()) }()
	return t.tests.Run()
}

// program is the flowfabric program, built once.
var program = sync.OnceValues(func() (string, error) { return binary.In(built()) })

// run runs the program as somebody at a terminal does, and writes down all that it prints. token is what FLOWFABRIC_TOKEN holds.
func (w *world) run(to *book, token string, args ...string) (string, error) {
	w.t.Helper()
	path, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.ctx(), path, args...)
	cmd.Env = []string{"HOME=" + w.t.TempDir(), "FF_SERVER=" + w.url, "FF_API_KEY=" + w.key, "FF_NAMESPACE=default", "FLOWFABRIC_TOKEN=" + token}
	var out, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err = cmd.Run()
	fmt.Fprintf(to, "%s: %v\n%s\n%s\n", args[0], err, &out, &wrong)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &wrong)
	}
	return strings.TrimSpace(out.String()), err
}

// succeeds is run for a command that is not refused.
func (w *world) succeeds(to *book, token string, args ...string) string {
	w.t.Helper()
	out, err := w.run(to, token, args...)
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// byProgram issues and uses tokens by the commands that do (U167), and runs those that show what waits.
func (w *world) byProgram() {
	w.t.Helper()
	path, lease := w.claimed()
	execution, err := url.PathUnescape(path[strings.LastIndex(path, "/")+1:])
	if err != nil {
		w.t.Fatal(err)
	}
	waitpoint := field(w.t, w.issue("POST", path+"/suspend", `{"lease":`+lease+`,"waitpoints":[{"fresh":{"waitpoint_key":"a key at a terminal"}}],`+
		`"reason_code":"waiting_for_approval","resume_condition":{"type":"count","n":2,"count_kind":"distinct_signals","waitpoints":["a key at a terminal"]}}`), "waitpoint_id")
	token := w.succeeds(&w.shown, "", "token", waitpoint)
	w.succeeds(&w.shown, "", "token", waitpoint, "--url")
	w.succeeds(&w.shown, "", "token", waitpoint, "--json")
	link := field(w.t, w.succeeds(&w.shown, "", "link", waitpoint, "--approver", "ann", "--json"), "link_id")
	w.succeeds(&w.shown, "", "link", waitpoint, "--approver", "ben")
	w.succeeds(&w.shown, "", "links", "url", link)
	w.looks(execution, waitpoint)
	w.succeeds(&w.said, "", "links", "revoke", link)
	w.succeeds(&w.said, token, "signal", waitpoint, "--name", "go", "--text", "x")
	fresh := w.succeeds(&w.shown, "", "token", waitpoint, "--reissue")
	for _, bad := range []string{token, fresh + "0", fresh[:len(fresh)-1], ""} {
		if out, err := w.run(&w.said, bad, "signal", waitpoint, "--name", "go"); err == nil {
			w.t.Errorf("a token that is not good is taken: %s", out)
		}
	}
	for _, args := range [][]string{{"waitpoints", "get", fresh}, {"token", fresh}, {"links", "url", fresh}, {"get", fresh}, {"signal", fresh, "--name", "go"}} {
		if out, err := w.run(&w.said, fresh, args...); err == nil {
			w.t.Errorf("%s is answered where a token stands for an id: %s", args[0], out)
		}
	}
	w.succeeds(&w.said, fresh, "signal", waitpoint, "--name", "go", "--json")
	w.looks(execution, waitpoint)
	w.succeeds(&w.said, "", "cancel", execution, "--reason", "it is over")
}

// looks runs every command that shows waits, keys and settings to callers who may know no token.
func (w *world) looks(execution, waitpoint string) {
	w.t.Helper()
	for _, args := range [][]string{
		{"get", execution},
		{"waitpoints"},
		{"waitpoints", execution, "--all"},
		{"waitpoints", "get", waitpoint},
		{"suspended"},
		{"approvals"},
		{"suspensions", execution},
		{"suspension", execution},
		{"signals", execution},
		{"links", waitpoint},
		{"events", execution},
		{"audit", "list"},
		{"keys", "list", "--all"},
		{"export"},
		{"config"},
		{"info"},
	} {
		w.succeeds(&w.said, "", args...)
		w.succeeds(&w.said, "", append(args, "--json")...)
	}
}
