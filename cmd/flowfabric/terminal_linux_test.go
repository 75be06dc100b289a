package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"golang.org/x/sys/unix"

	"github.com/flowfabric/flowfabric"
)

// terminal is a command that runs on a terminal of its own.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	keys   *os.File
	ended  chan struct{}
	mu     sync.Mutex
	screen bytes.Buffer // everything that was written
}

// onTerminal starts a line on a terminal of 80 columns and 24 rows.
func (e *examples) onTerminal(t *testing.T, line string, env ...string) *terminal {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	check(t, err)
	fd := int(ours.Fd())
	check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}))
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	check(t, err)
	term := &terminal{t: t, cmd: e.shell("exec "+line, t.TempDir()), keys: ours, ended: make(chan struct{})}
	term.cmd.Env = append(append(term.cmd.Env, "TERM=xterm-256color"), env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = theirs, theirs, theirs
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(t, term.cmd.Start())
	check(t, theirs.Close())
	go func() {
		defer close(term.ended)
		part := make([]byte, 4096)
		for {
			n, err := ours.Read(part)
			term.mu.Lock()
			term.screen.Write(part[:n])
			term.mu.Unlock()
			if err != nil { // the last one on the other side has gone
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		<-term.ended
		_ = ours.Close()
	})
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.screen.String()
}

// shows waits until the terminal has shown a text.
func (term *terminal) shows(want string) {
	term.t.Helper()
	term.showsAfter(0, want)
}

// showsAfter is shows for what is written from a position on.
func (term *terminal) showsAfter(from int, want string) {
	term.t.Helper()
	pattern, tick := regexp.MustCompile(want), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !pattern.MatchString(term.text()[from:]); <-tick.C {
		if time.Now().After(deadline) {
			term.t.Fatalf("no %s in\n%q", want, term.text()[from:])
		}
	}
}

func (term *terminal) types(keys string) {
	term.t.Helper()
	_, err := term.keys.WriteString(keys)
	check(term.t, err)
}

// exits waits for the end and wants its exit code.
func (term *terminal) exits(want int) {
	term.t.Helper()
	select {
	case <-term.ended:
	case <-time.After(patience):
		term.t.Fatalf("it does not end:\n%q", term.text())
	}
	_ = term.cmd.Wait() // the exit code tells
	if got := term.cmd.ProcessState.ExitCode(); got != want {
		term.t.Errorf("exit %d, want %d\n%q", got, want, term.text())
	}
}

const interrupt = "\x03"

func TestU156_colour_and_alignment_are_for_terminals_without_NO_COLOR(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	e.submit(t, "mail", "")
	plain := regexp.MustCompile(`(?m)^ID +KIND +LANE +STATUS +REASON +ATTEMPTS +CREATED\r?$`)
	coloured := e.onTerminal(t, "flowfabric list")
	coloured.exits(0)
	if !strings.Contains(coloured.text(), "\x1b[") || !strings.Contains(coloured.text(), "ms ago") && !strings.Contains(coloured.text(), "s ago") {
		t.Errorf("%q", coloured.text())
	}
	for _, env := range [][]string{{"NO_COLOR=1"}, {"NO_COLOR=anything"}} {
		term := e.onTerminal(t, "flowfabric list", env...)
		term.exits(0)
		if strings.Contains(term.text(), "\x1b") || !plain.MatchString(term.text()) {
			t.Errorf("%v: %q", env, term.text())
		}
	}
}

func TestU169_a_watched_list_shows_what_came_and_ends_when_interrupted(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	term := e.onTerminal(t, "flowfabric list --watch")
	e.submit(t, "first", "")
	term.shows("first")
	e.submit(t, "second", "")
	term.shows("second")
	term.types(interrupt)
	term.exits(130)
}

func TestU248_the_live_page_stays_open_on_a_terminal(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	term := e.onTerminal(t, "flowfabric demo live-page")
	term.shows(`The page stays at http://127\.0\.0\.1:\d+ until Ctrl-C`)
	address := regexp.MustCompile(`stays at (\S+)`).FindStringSubmatch(term.text())[1]
	page, err := http.Get(address)
	check(t, err)
	check(t, page.Body.Close())
	if page.StatusCode != http.StatusOK {
		t.Errorf("the page answers %s", page.Status)
	}
	term.types(interrupt)
	term.exits(0)
}

func TestU159_an_interrupted_bulk_job_goes_on_and_says_how_to_follow_it(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	for range 60 {
		e.submit(t, "mail", "")
	}
	term := e.onTerminal(t, "flowfabric cancel --where kind=mail --rate 1")
	term.shows(`cancel 60 executions\? \[y/N\] `)
	term.types("y\r")
	term.shows(`\[=* *\] cancel \d+ of 60, \d+/s`)
	term.types(interrupt)
	term.shows(`the job continues; follow it: flowfabric bulk get [0-9a-f-]{36} --watch`)
	term.exits(130)
	job := regexp.MustCompile(`bulk get ([0-9a-f-]{36})`).FindStringSubmatch(term.text())[1]
	status, err := e.client.Operate().BulkStatus(t.Context(), job)
	check(t, err)
	if status.State != "running" {
		t.Errorf("the job is %s", status.State)
	}
	watched := e.onTerminal(t, "flowfabric bulk get "+job+" --watch")
	watched.shows(`cancel \d+ of 60`)
	_, err = e.client.Operate().StopBulk(t.Context(), job)
	check(t, err)
	watched.shows(`state: +(\x1b\[\d+m)?stopped`)
	watched.exits(0)
}

func TestU177_top_runs_on_a_terminal_acts_and_leaves_it_as_it_was(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	id := e.submit(t, "mail", "")
	term := e.onTerminal(t, "flowfabric top --stuck-after 0s")
	term.shows("no worker for it")
	term.types("\tc")
	term.shows("Reason")
	term.types("late\r")
	term.shows("is cancelled")
	x, err := e.client.Get(t.Context(), id)
	check(t, err)
	if x.Status != flowfabric.StatusCancelled || x.Cancellation.Reason != "late" {
		t.Errorf("%s %+v", x.Status, x.Cancellation)
	}
	term.types("q")
	term.exits(0)
	if text := term.text(); strings.Count(text, "\x1b[?1049h") != strings.Count(text, "\x1b[?1049l") {
		t.Errorf("the screen was not given back: %q", text)
	}
}

func TestU177_top_goes_on_when_the_server_is_back(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	dir := t.TempDir()
	second := e.launch(t, "flowfabric dev --listen 127.0.0.1:0", dir)
	term := e.onTerminal(t, "flowfabric top --server "+second.url)
	term.shows("LANES")
	second.stop(t)
	term.shows("SERVER UNREACHABLE")
	before := len(term.text())
	again := e.launch(t, "flowfabric dev --listen "+strings.TrimPrefix(second.url, "http://"), dir)
	term.showsAfter(before, `\d\d:\d\d:\d\d`)
	term.types("q")
	term.exits(0)
	again.stop(t)
}

func TestU173_a_watched_inbox_shows_what_came_and_what_was_decided(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	term := e.onTerminal(t, "flowfabric approvals --watch")
	term.shows("no open approvals")
	id := e.submit(t, "deploy", "")
	task, err := e.client.Operate().Claim(t.Context(), id)
	check(t, err)
	item := suspend(task)
	item.Suspension.Until = flowfabric.Condition{Type: "count", N: 2, CountKind: "distinct_sources", Name: "approved", Keys: []string{"payment"}}
	waitpoint := e.do(t, item).Waitpoints[0]
	term.shows("deploy.*0 of 2")
	_, err = e.client.Waitpoints().NewLink(t.Context(), waitpoint.ID, ops.LinkOptions{Approver: "ana"})
	check(t, err)
	term.shows(`ana \(open\)`)
	_, err = e.client.Operate().Approve(t.Context(), id, ops.Approve{Comment: "fine"})
	check(t, err)
	term.shows(`(?s)1 of 2.*dev approved:`)
	before := len(term.text())
	_, err = e.client.Signal(t.Context(), flowfabric.Signal{WaitpointID: waitpoint.ID, Token: waitpoint.Token, Name: "approved"})
	check(t, err)
	term.showsAfter(before, "no open approvals")
	term.types(interrupt)
	term.exits(130)
}
