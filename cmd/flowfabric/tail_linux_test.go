package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU169_a_stream_on_a_terminal_is_dimmed_marked_and_cannot_control_it(t *testing.T) {
	t.Parallel()
	e := newServer(t)
	id := e.submit(t, "talk", "")
	term := e.onTerminal(t, "flowfabric tail "+string(id))
	term.shows("no attempt has begun")
	task, err := e.client.Operate().Claim(t.Context(), id)
	check(t, err)
	say := func(frames ...api.NewFrame) {
		e.do(t, api.WorkItem{Op: api.OpFrames, ID: id, Lease: task.Lease, Frames: frames})
	}
	say(api.NewFrame{Payload: api.Text("10%\r20% \x1b[2J\u202e")})
	term.shows(`10%\r\n20% \\x1b\[2J\\u202e`)
	say(api.NewFrame{Type: "stderr", Payload: api.Text("careful")})
	term.shows("\x1b\\[2mcareful\x1b\\[22m")
	e.do(t, api.WorkItem{Op: api.OpFail, ID: id, Lease: task.Lease, Message: "no luck", Class: "permanent"})
	term.shows("\x1b\\[22m\r\n\x1b\\[2m--- attempt 0 ended: failure\x1b\\[22m\r\n\x1b\\[2m--- the execution ended: failed\x1b\\[22m\r\n$")
	term.exits(8)

	plain := e.onTerminal(t, "flowfabric tail "+string(id), "NO_COLOR=1")
	plain.exits(8)
	if strings.Contains(plain.text(), "\x1b") || !strings.Contains(plain.text(), "careful\r\n--- attempt 0 ended: failure\r\n") {
		t.Errorf("%q", plain.text())
	}
	asJSON := e.onTerminal(t, fmt.Sprintf("flowfabric tail %s --no-follow --json", id))
	asJSON.exits(0)
	if text := asJSON.text(); strings.ContainsAny(text, "\u202e\x1b") || !strings.Contains(text, `\u202e`) {
		t.Errorf("%q", text)
	}
	piped := e.onTerminal(t, fmt.Sprintf(`sh -c "flowfabric tail %s --no-follow 2> marks | base64 -w 0"`, id))
	piped.shows(regexp.QuoteMeta(base64.StdEncoding.EncodeToString([]byte("10%\r20% \x1b[2J\u202ecareful"))))
	piped.exits(0)
}

func TestU169_a_reader_and_a_writer_go_on_when_the_server_is_back(t *testing.T) {
	t.Parallel()
	e, dir := &examples{}, t.TempDir()
	first := e.launch(t, "flowfabric dev --listen 127.0.0.1:0", dir)
	e.server = first.url
	client, err := flowfabric.Connect(first.url)
	check(t, err)
	defer func() { check(t, client.Close(context.Background())) }()
	e.client = client
	id := e.submit(t, "talk", "")
	check(t, os.WriteFile(filepath.Join(dir, "talk.sh"), []byte("i=0\nuntil test -e last; do i=$((i+1)); echo $i >&2; sleep 0.05; done\necho end >&2\n"), 0o600))
	work := e.shell("exec flowfabric work --kind talk --tasks 1 -- sh talk.sh 2> work.log", dir)
	check(t, work.Start())
	defer func() { _ = work.Process.Kill() }()
	term := e.onTerminal(t, "flowfabric tail "+string(id), "NO_COLOR=1")
	term.shows(`\b5\r\n`)
	first.stop(t)
	before := term.text()
	again := e.launch(t, "flowfabric dev --listen "+strings.TrimPrefix(first.url, "http://"), dir)
	defer again.stop(t)
	term.showsAfter(len(before), `\d\r\n\d+\r\n\d+\r\n`)
	check(t, os.WriteFile(filepath.Join(dir, "last"), nil, 0o600))
	term.exits(0)
	check(t, work.Wait())
	var numbers []string
	for line := range strings.Lines(term.text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "no attempt") {
			numbers = append(numbers, line)
		}
	}
	for i, line := range numbers {
		if want := fmt.Sprint(i + 1); line != want && (i != len(numbers)-1 || line != "end") {
			t.Fatalf("line %d is %q\n%s", i+1, line, term.text())
		}
	}
	if len(numbers) < 6 || numbers[len(numbers)-1] != "end" {
		t.Errorf("%q", numbers)
	}
}
