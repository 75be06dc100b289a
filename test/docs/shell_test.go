package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// command is a command of a page and what the page shows of its output.
type command struct {
	at   string
	text string
	want string
}

var here = regexp.MustCompile(`<<'?([A-Z]+)'?`)

// commandsOf splits a shell block: a command begins with "$ ", goes on after a backslash and up to the end of a here document; the other
// lines are output.
func commandsOf(b block) ([]command, error) {
	var all []command
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		text, isCommand := strings.CutPrefix(lines[i], "$ ")
		if !isCommand {
			if len(all) == 0 {
				return nil, fmt.Errorf("%s: the block does not begin with a command: $ and a space", b)
			}
			all[len(all)-1].want += lines[i] + "\n"
			continue
		}
		c := command{at: fmt.Sprintf("%s:%d", b.page, b.line+i)}
		for strings.HasSuffix(text, `\`) && i+1 < len(lines) {
			i++
			text += "\n" + lines[i]
		}
		if m := here.FindStringSubmatch(text); m != nil {
			for i+1 < len(lines) && !strings.HasSuffix(text, "\n"+m[1]) {
				i++
				text += "\n" + lines[i]
			}
		}
		c.text = text
		all = append(all, c)
	}
	return all, nil
}

// shell is one sh for all commands of a page, so that variables last.
type shell struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	dir   string
}

// patience is how long a command may take.
const patience = 5 * time.Minute

// mark ends the output of a command.
const mark = "--- the command has ended with"

// newShell starts an sh in a directory.
func newShell(t *testing.T, dir string, env []string) *shell {
	t.Helper()
	s := &shell{cmd: exec.Command("sh"), lines: make(chan string, 1024), dir: dir}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = writer, writer
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	go func() {
		defer close(s.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				_ = out.Close()
				return
			}
			s.lines <- line
		}
	}()
	t.Cleanup(s.end)
	return s
}

// end kills the sh and what it left running.
func (s *shell) end() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.in.Close()
	for range s.lines {
		continue
	}
	_ = s.cmd.Wait()
}

// run gives the output of a command, both streams together, and its exit code.
func (s *shell) run(text string) (output string, exit int, err error) {
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null; code=$?; printf '\\n%s %%d\\n' $code; (exit $code)\n", text, mark); err != nil {
		return "", 0, err
	}
	var all strings.Builder
	for late := time.After(patience); ; {
		select {
		case line, open := <-s.lines:
			if !open {
				return all.String(), 0, fmt.Errorf("the shell has ended")
			}
			if rest, ended := strings.CutPrefix(line, mark+" "); ended {
				exit, err := strconv.Atoi(strings.TrimSpace(rest))
				return all.String(), exit, err
			}
			all.WriteString(line)
		case <-late:
			return all.String(), 0, fmt.Errorf("the command does not end")
		}
	}
}

// session runs the commands of a page one after the other.
type session struct {
	run     func(text string) (output string, exit int, err error)
	ports   func(text string) string // puts the ports of this run in the place of those of the page
	server  func(lines int) string   // what the page's dev server printed
	targets []string                 // of the Makefile
}

// check runs the shell blocks of a page and tells where the page is wrong.
func (s *session) check(p page) (faults []string) {
	var all []command
	for _, b := range p.blocks {
		if b.language != "sh" {
			continue
		}
		commands, err := commandsOf(b)
		if err != nil {
			return append(faults, err.Error())
		}
		all = append(all, commands...)
	}
	for i, c := range all {
		asked := i+1 < len(all) && all[i+1].text == "echo $?"
		if fault := s.checkCommand(c, asked); fault != "" {
			faults = append(faults, fmt.Sprintf("%s: $ %s\n%s", c.at, c.text, fault))
		}
	}
	return faults
}

// checkCommand tells what is wrong with a command, "" if nothing. Only where the page asks for the exit code may it be another than 0.
func (s *session) checkCommand(c command, asked bool) string {
	text, where := translate(c.text)
	switch where {
	case elsewhere:
		return s.checkElsewhere(c)
	case servers:
		if got := s.server(strings.Count(c.want, "\n")); !matches(c.want, got) {
			return fmt.Sprintf("the page shows:\n%s\nthe server printed:\n%s", c.want, got)
		}
		return ""
	}
	got, exit, err := s.run(s.ports(text))
	switch {
	case err != nil:
		return err.Error() + "\n" + got
	case exit != 0 && !asked:
		return fmt.Sprintf("ends with %d:\n%s", exit, got)
	case !matches(c.want, got):
		return fmt.Sprintf("the page shows:\n%s\nthe command printed:\n%s", c.want, got)
	}
	return ""
}

// Where a command is run.
const (
	inShell   = "in the shell"
	servers   = "by the runner, once for the page"
	elsewhere = "in other tests, or on other machines"
)

// translate gives a command as the runner can run it. The program is built once; examples are run from the tree.
func translate(text string) (string, string) {
	text = strings.ReplaceAll(text, "go run ./cmd/flowfabric", "flowfabric")
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return text, inShell
	case text == "flowfabric dev":
		return text, servers
	case slices.Contains([]string{"git", "make", "cd"}, words[0]), words[0] == "go" && len(words) > 1 && words[1] != "run":
		return text, elsewhere
	case words[0] == "go":
		return `(cd "$FLOWFABRIC" && ` + text + ")", inShell
	}
	return text, inShell
}

// checkElsewhere looks whether a command that is not run here names what exists. Its output cannot be compared.
func (s *session) checkElsewhere(c command) string {
	words := strings.Fields(c.text)
	if strings.TrimSpace(c.want) != "" {
		return "the output of this command is not compared: do not show it"
	}
	if words[0] == "make" {
		for _, word := range words[1:] {
			if !strings.Contains(word, "=") && !slices.Contains(s.targets, word) {
				return "the Makefile has no target " + word
			}
		}
	}
	for _, word := range words {
		if path := strings.TrimSuffix(word, "/..."); words[0] == "go" && strings.HasPrefix(path, "./") {
			if _, err := os.Stat(root + "/" + path); err != nil {
				return word + " does not exist"
			}
		}
	}
	return ""
}

func TestU263_commands_are_told_from_their_output(t *testing.T) {
	t.Parallel()
	got, err := commandsOf(block{page: "p.md", line: 3, text: "$ one \\\n  --two\nout\n\nmore\n$ cat <<'EOF'\n$ not a command\nEOF\n"})
	if err != nil || len(got) != 2 || got[0].text != "one \\\n  --two" || got[0].want != "out\n\nmore\n" || got[1].at != "p.md:8" ||
		got[1].text != "cat <<'EOF'\n$ not a command\nEOF" || got[1].want != "" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestU263_a_shell_block_that_lies_is_found(t *testing.T) {
	t.Parallel()
	s := &session{
		run: newShell(t, t.TempDir(), os.Environ()).run, ports: func(text string) string { return strings.ReplaceAll(text, ":7433", ":40000") },
		server: func(int) string { return "ready at http://127.0.0.1:40000" }, targets: []string{"test"},
	}
	planted{
		{"```sh\n$ X=17\n$ echo $X 127.0.0.1:7433\n17 127.0.0.1:7433\n```\n\n```sh\n$ echo still $X\nstill 17\n```\n", ""},
		{"```sh\n$ echo problem >&2\nproblem\n$ false\n$ echo $?\n1\n```\n", ""},
		{"```sh\n$ flowfabric dev\nready at http://127.0.0.1:7433\n$ make test\n$ go test ./internal/core\n```\n", ""},
		{"```sh\n$ cat\n$ printf 'no newline'\nno newline\n```\n", ""},
		{"```sh\necho no dollar\n```\n", "page.md:2: the block does not begin with a command"},
		{"```sh\n$ echo yes\nno\n```\n", "page.md:2: $ echo yes\nthe page shows"},
		{"```sh\n$ echo yes\n```\n", "the command printed:\nyes"},
		{"```sh\n$ false\n```\n", "ends with 1"},
		{"```sh\n$ no-such-program\n$ echo $?\n127\n```\n", "no-such-program"},
		{"```sh\n$ flowfabric dev\nready at nowhere\n```\n", "the server printed"},
		{"```sh\n$ make coffee\n```\n", "no target coffee"},
		{"```sh\n$ make test\nok\n```\n", "not compared"},
		{"```sh\n$ go test ./internal/nowhere/...\n```\n", "does not exist"},
		{"```sh\n$ exit 3\n```\n", "the shell has ended"},
	}.finds(t, s.check)
}
