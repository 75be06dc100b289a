package docs

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/aptget"
	"github.com/flowfabric/flowfabric/internal/binary"
)

// TestU263_every_shell_block_runs runs the blocks of each page from top to bottom, in a directory of its own against a dev server of its
// own.
func TestU263_every_shell_block_runs(t *testing.T) {
	t.Parallel()
	program := build(t)
	if err := aptget.Need(t.Context(), "curl", "jq"); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, p := range pages() {
		if !slices.ContainsFunc(p.blocks, func(b block) bool { return b.language == "sh" }) {
			continue
		}
		ran++
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range sessionFor(t, program).check(p) {
				t.Error(fault)
			}
		})
	}
	if ran < 5 {
		t.Errorf("only %d pages have shell blocks", ran)
	}
}

// programs is a directory for the time of the tests.
var programs string

// built makes the program when a test first needs it.
var built = sync.OnceValue(func() error {
	_, err := binary.In(programs)
	return err
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "flowfabric-docs")
	if err != nil {
		panic(err)
	}
	programs = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build gives the directory with the program.
func build(t *testing.T) string {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	return programs
}

var target = regexp.MustCompile(`(?m)^([a-z]+):`)

// sessionFor makes what a page needs: a directory, a dev server on a free port, a shell.
func sessionFor(t *testing.T, program string) *session {
	t.Helper()
	dir := t.TempDir()
	server := startDev(t, program, dir)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	s := &session{run: newShell(t, dir, environment(t, program, dir, server.url)).run, server: server.printed, ports: portsFor(t, server.url)}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		s.targets = append(s.targets, m[1])
	}
	return s
}

// environment is that of this process without settings of FlowFabric, with the program on the path.
func environment(t *testing.T, program, dir, server string) []string {
	t.Helper()
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	known, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Split(strings.TrimSpace(string(known)), "\n")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FF_") || strings.HasPrefix(v, "PATH=") })
	return append(env, "PATH="+program+string(os.PathListSeparator)+os.Getenv("PATH"), "FLOWFABRIC="+tree, "FF_SERVER="+server,
		"HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOPATH="+caches[2])
}

var shownPort = regexp.MustCompile(`127\.0\.0\.1:74\d\d`)

// portsFor puts the dev server in the place of port 7433, and a free port in the place of every other that begins with 74.
func portsFor(t *testing.T, server string) func(string) string {
	t.Helper()
	known := map[string]string{"127.0.0.1:7433": strings.TrimPrefix(server, "http://")}
	return func(text string) string {
		return shownPort.ReplaceAllStringFunc(text, func(shown string) string {
			if known[shown] == "" {
				known[shown] = freeAddress(t)
			}
			return known[shown]
		})
	}
}

// given counts the ports that pages were given.
var given atomic.Int32

// freeAddress is an address for a server of a page. Its port lies below those that systems give to programs that ask for any: none gets it
// before that server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+(16*os.Getpid()+int(given.Add(1)))%10_000)
		if free, err := net.Listen("tcp", address); err == nil {
			_ = free.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// dev is a dev server.
type dev struct {
	url string

	mu    sync.Mutex
	lines []string
	more  chan struct{} // gets something with each line
}

var address = regexp.MustCompile(`http://[0-9.]+:[0-9]+`)

// startDev runs flowfabric dev in a directory until the test ends, and waits until it says where it is.
func startDev(t *testing.T, program, dir string) *dev {
	t.Helper()
	d := &dev{more: make(chan struct{}, 1024)}
	cmd := exec.Command(filepath.Join(program, "flowfabric"), "dev", "--listen", "127.0.0.1:0")
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FF_") })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.mu.Lock()
			d.lines = append(d.lines, lines.Text())
			d.mu.Unlock()
			d.more <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	if d.url = address.FindString(d.printed(1)); d.url == "" {
		t.Fatalf("the server does not say where it is: %s", d.printed(0))
	}
	return d
}

// printed is what the server printed, at least so many lines if they come.
func (d *dev) printed(lines int) string {
	for late := time.After(patience); ; {
		d.mu.Lock()
		if len(d.lines) >= lines {
			defer d.mu.Unlock()
			return strings.Join(d.lines, "\n")
		}
		d.mu.Unlock()
		select {
		case <-d.more:
		case <-late:
			lines = 0
		}
	}
}
