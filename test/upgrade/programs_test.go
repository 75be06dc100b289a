package upgrade_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/binary"
	"github.com/flowfabric/flowfabric/internal/pgtest"
)

var cluster = pgtest.New(nil)

// olderCommit names the program of the version before. Without it the stories run with today's program on both sides.
var olderCommit = flag.String("older", "", `the commit of the older program; "schema": the last one that has not the newest step of the schema of Postgres`)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(tidy{cluster.Around(m)})
}

// built is the directory of the programs.
func built() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("flowfabric-upgrade-%d", os.Getpid()))
}

// tidy removes what the tests have built.
type tidy struct{ tests interface{ Run() int } }

// Run runs the tests.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built()) }()
	return t.tests.Run()
}

// newer is today's program, built once.
var newer = sync.OnceValues(func() (string, error) { return binary.In(filepath.Join(built(), "newer")) })

// older is the program of the version before, built once from its commit.
var older = sync.OnceValues(func() (string, error) {
	if *olderCommit == "" {
		return newer()
	}
	commit := *olderCommit
	if commit == "schema" {
		var err error
		if commit, err = beforeLastStep(); err != nil {
			return "", err
		}
	}
	source, path := filepath.Join(built(), "source"), filepath.Join(built(), "older")
	archive := filepath.Join(built(), "source.tar")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	top, err := output(exec.Command("git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return "", err
	}
	pack := exec.Command("git", "archive", "--output", archive, commit)
	pack.Dir = strings.TrimSpace(top)
	build := exec.Command("go", "build", "-o", path, "./cmd/flowfabric")
	build.Dir = source
	for _, cmd := range []*exec.Cmd{pack, exec.Command("tar", "-xf", archive, "-C", source), build} {
		if _, err := output(cmd); err != nil {
			return "", err
		}
	}
	return path, nil
})

// beforeLastStep returns the last commit that has not the newest step of the schema of Postgres.
func beforeLastStep() (string, error) {
	const steps = "../../internal/store/postgres/migrations/*.sql"
	names, err := filepath.Glob(steps)
	if err != nil || len(names) == 0 {
		return "", fmt.Errorf("%d steps of the schema: %w", len(names), err)
	}
	added, err := output(exec.Command("git", "log", "--diff-filter=A", "--format=%H", "-1", "--", slices.Max(names)))
	if err != nil || strings.TrimSpace(added) == "" {
		return "", fmt.Errorf("the sources have no history that says where to find the older program: run it in a clone (%v)", err) //nolint:errorlint // err may be nil
	}
	before, err := output(exec.Command("git", "rev-parse", "--verify", "--quiet", strings.TrimSpace(added)+"^"))
	if err != nil {
		return "", fmt.Errorf("the history ends before the older program, fetch all of it: %w", err)
	}
	return strings.TrimSpace(before), nil
}

// both returns the two programs, the older first.
func both(t *testing.T) (before, after program) {
	t.Helper()
	for i, build := range []func() (string, error){older, newer} {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		[]*program{&before, &after}[i].path = path
	}
	for _, p := range []*program{&before, &after} {
		var version struct{ Schemas map[string]int }
		text, err := output(exec.Command(p.path, "version", "--json"))
		if err == nil {
			err = json.Unmarshal([]byte(text), &version)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.schemas = version.Schemas
	}
	t.Logf("the older program knows the schemas %v, the newer one %v", before.schemas, after.schemas)
	return before, after
}

// program is a built flowfabric.
type program struct {
	path    string
	schemas map[string]int // that it knows, by kind of store
}

// output runs a command and returns what it writes.
func output(cmd *exec.Cmd) (string, error) {
	var out, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &wrong)
	}
	return out.String(), nil
}

// run runs a command of the program.
func (p program) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	return output(cmd)
}

// process is a program that runs.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // of a server
	ended   chan struct{}
	said    strings.Builder // complete once ended is closed
}

// start starts a command of the program. told gets each line that it writes.
func (p program) start(t *testing.T, told func(line string), args ...string) *process {
	t.Helper()
	s := &process{t: t, cmd: exec.Command(p.path, args...), ended: make(chan struct{})}
	s.cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.cmd.Stdout
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&s.said, lines.Text())
			told(lines.Text())
		}
	}()
	return s
}

// end sends the process a signal and waits until it has ended, once.
func (s *process) end(by os.Signal) {
	_ = s.cmd.Process.Signal(by)
	<-s.ended
	_ = s.cmd.Wait()
}

var listensAt = regexp.MustCompile(`http://(127\.0\.0\.1:[0-9]+)`)

// patience bounds what a story waits for: a machine may be slow, and no test depends on how slow.
const patience = 10 * time.Minute

// serve runs the program as a server and waits until it says where it listens.
func (p program) serve(t *testing.T, store string) *process {
	t.Helper()
	address := make(chan string, 1)
	s := p.start(t, func(line string) {
		if found := listensAt.FindStringSubmatch(line); found != nil && len(address) == 0 {
			address <- found[1]
		}
	}, "serve", "--store", store, "--listen", "127.0.0.1:0", "--unsafe-durability", "--insecure-open")
	select {
	case s.address = <-address:
	case <-s.ended:
		t.Fatalf("the server ended: %s", &s.said)
	case <-time.After(patience):
		t.Fatal("the server does not say where it listens")
	}
	return s
}

// roads lead requests to the servers of the moment in turn, at addresses of their own: a port that is given up may be taken by anybody.
type roads struct {
	http.RoundTripper
	mu   sync.Mutex
	open []*process
	next atomic.Uint64
}

func (r *roads) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	if len(open) == 0 {
		return nil, syscall.ECONNREFUSED
	}
	to := open[r.next.Add(1)%uint64(len(open))]
	request = request.Clone(request.Context())
	request.URL.Host, request.Host = to.address, to.address
	return r.RoundTripper.RoundTrip(request)
}

// lead leads to these servers from now on.
func (r *roads) lead(to ...*process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = to
}

// contextOf ends with the test, and before the tests of the package time out.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
