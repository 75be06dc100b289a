package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

var cluster = pgtest.New(nil)

func TestMain(m *testing.M) {
	testscript.Main(cluster.Around(m), map[string]func(){"flowfabric": main})
}

// TestU2_the_command_line_does_what_it_says runs the scripts, each in a directory of its own, against a real server where they start
// one.
func TestU2_the_command_line_does_what_it_says(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Deadline: time.Now().Add(20 * time.Minute),
		Setup: func(env *testscript.Env) error {
			env.Vars = slices.DeleteFunc(env.Vars, func(v string) bool { return strings.HasPrefix(v, "FF_") })
			env.Values[serversKey{}] = &servers{running: map[string]*process{}}
			env.Values[collectorKey{}] = &spans{}
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": startServer, "shut": stopServer, "hangup": hangUp, "exits": exits, "capture": capture, "json": checkJSON, "eventually": eventually,
			"interrupts": interrupts, "reads": reads, "collector": startCollector, "collected": collected,
			"removechain": removeChain,
			// postgres puts the address of an empty database, whose role may make others, into POSTGRES.
			"postgres": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("POSTGRES", cluster.AdminURL(t, cluster.Database(t)))
			},
		},
	})
}

// removeChain takes the whole audit chain of a namespace out of a SQLite store, as somebody does who can write the file.
func removeChain(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	st, err := sqlite.Open(ctx, ts.MkAbs(args[0]), sqlite.Config{})
	ts.Check(err)
	defer func() { ts.Check(st.Close()) }()
	const heads, rows store.DocKind = 10, 11
	loaded, err := st.Read(ctx, store.Want{Scans: []store.Scan{{Kind: rows, Prefix: args[1] + "\x01"}}})
	ts.Check(err)
	ch := &store.Changes{DropDocs: []store.DocRef{{Kind: heads, Key: args[1]}}}
	for _, doc := range loaded.Scanned[0] {
		ch.DropDocs = append(ch.DropDocs, doc.DocRef)
	}
	tx, _, err := st.Begin(ctx, store.Want{})
	ts.Check(err)
	ts.Check(tx.Commit(ctx, ch))
}

type serversKey struct{}

type servers struct{ running map[string]*process }

// process is a server that a script started.
type process struct {
	cmd    *exec.Cmd
	ended  chan error
	mu     sync.Mutex
	output strings.Builder
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

var addressed = regexp.MustCompile(`https?://[0-9a-z.\[\]:]+:[0-9]+`)

// patience is how long a script waits for what must come.
const patience = 5 * time.Minute

// startServer runs flowfabric with the arguments after a name, and waits until it says where it is: FF_SERVER is then that.
func startServer(ts *testscript.TestScript, _ bool, args []string) {
	p := &process{ended: make(chan error, 1)}
	p.cmd = exec.Command("flowfabric", args[1:]...)
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	if key := ts.Getenv("BOOTSTRAP"); key != "" {
		p.cmd.Env = append(p.cmd.Env, "FF_BOOTSTRAP_ADMIN_KEY="+key)
	}
	p.cmd.Env = append(p.cmd.Env, strings.Fields(ts.Getenv("SERVER_ENV"))...)
	if proxy := ts.Getenv("HTTP_PROXY"); proxy != "" {
		p.cmd.Env = append(p.cmd.Env, "HTTP_PROXY="+proxy)
	}
	address, err := p.begin()
	ts.Check(err)
	select {
	case url := <-address:
		ts.Setenv("FF_SERVER", url)
	case err := <-p.ended:
		ts.Fatalf("the server ended: %v\n%s", err, p.text())
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		ts.Fatalf("the server is not ready\n%s", p.text())
	}
	ts.Value(serversKey{}).(*servers).running[args[0]] = p
	ts.Defer(func() { _ = p.cmd.Process.Kill() })
}

// begin starts the process and gathers what it writes; the first address in that is sent.
func (p *process) begin() (<-chan string, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	if err := errors.Join(p.cmd.Start(), writer.Close()); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	address := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.output, lines.Text())
			p.mu.Unlock()
			if found := addressed.FindString(lines.Text()); found != "" && !strings.Contains(lines.Text(), found+"/metrics") {
				select {
				case address <- found:
				default:
				}
			}
		}
		_ = reader.Close()
		p.ended <- p.cmd.Wait()
	}()
	return address, nil
}

// stopServer sends SIGTERM and wants a good end; what the server wrote is then in the file of its name.
func stopServer(ts *testscript.TestScript, _ bool, args []string) {
	p := ts.Value(serversKey{}).(*servers).running[args[0]]
	ts.Check(p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		if err != nil {
			ts.Fatalf("the server ended badly: %v\n%s", err, p.text())
		}
	case <-time.After(patience):
		ts.Fatalf("the server does not end\n%s", p.text())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(p.text()), 0o644))
}

// hangUp sends SIGHUP and waits until the server has written a text.
func hangUp(ts *testscript.TestScript, _ bool, args []string) {
	p := ts.Value(serversKey{}).(*servers).running[args[0]]
	ts.Check(p.cmd.Process.Signal(syscall.SIGHUP))
	p.writes(ts, args[1], func(text string) bool { return strings.Contains(text, args[1]) })
}

// writes waits until what a server has written is so.
func (p *process) writes(ts *testscript.TestScript, what string, so func(text string) bool) {
	for late := time.After(patience); !so(p.text()); {
		select {
		case <-late:
			ts.Fatalf("the server did not write %s\n%s", what, p.text())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// reads waits until a server has written a text and puts what stands in its parentheses into a variable.
func reads(ts *testscript.TestScript, _ bool, args []string) {
	p, want := ts.Value(serversKey{}).(*servers).running[args[0]], regexp.MustCompile(args[2])
	p.writes(ts, want.String(), func(text string) bool {
		found := want.FindStringSubmatch(text)
		if found != nil {
			ts.Setenv(args[1], found[1])
		}
		return found != nil
	})
}

// exits runs a command and wants its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// eventually runs a command until its output matches.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(patience); ; {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); want.MatchString(out) {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("no %s in %s (%v)", want, out, err)
		}
	}
}

// interrupts starts a command, interrupts it once it has written a line, and wants its exit code.
func interrupts(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "FF_SERVER=" + ts.Getenv("FF_SERVER")}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		ts.Fatalf("the command wrote nothing: %v", cmd.Wait())
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
		ts.Logf("%s", lines.Text())
	}
	_ = cmd.Wait() // the exit code tells
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit %s, want %s", got, args[0])
	}
}

// capture puts the output of the last command into a variable.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// checkJSON wants every line of the last output to be an object with the given fields; name=value compares. The stream may be named
// first: stderr.
func checkJSON(ts *testscript.TestScript, _ bool, args []string) {
	stream := "stdout"
	if args[0] == "stderr" {
		stream, args = "stderr", args[1:]
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(stream)), "\n")
	for _, line := range lines {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("%q is no object: %v", line, err)
		}
		for _, arg := range args {
			name, want, compare := strings.Cut(arg, "=")
			got, found := object[name]
			if !found || compare && fmt.Sprint(got) != want {
				ts.Fatalf("%s is %v, want %s in %s", name, got, arg, line)
			}
		}
	}
}
