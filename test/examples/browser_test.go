package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/internal/aptget"
)

// browser is a page in Chromium, driven over a pair of pipes by the protocol of its developer tools.
type browser struct {
	commands io.Writer
	answers  chan message
	loaded   chan struct{} // has an element for each time that the page was loaded
	session  string
	calls    int
}

// message is what Chromium says: the answer to a call, or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openBrowser starts Chromium with an empty page.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	if err := aptget.Need(t.Context(), "chromium"); err != nil {
		t.Fatal(err)
	}
	hears, commands, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(context.WithoutCancel(t.Context()), "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--no-proxy-server", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "about:blank")
	program.ExtraFiles = []*os.File{hears, says} // 3 and 4, as --remote-debugging-pipe has it
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	b := &browser{commands: commands, answers: make(chan message), loaded: make(chan struct{}, 16)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.hear(said)
		if err := program.Wait(); err != nil {
			t.Errorf("chromium: %v", err)
		}
	}()
	t.Cleanup(func() {
		b.session = ""
		b.call(t, "Browser.close", nil, nil)
		<-ended
		_, _ = commands.Close(), said.Close()
	})
	_, _ = hears.Close(), says.Close()
	b.attach(t)
	return b
}

// hear reads what Chromium says, until it has ended.
func (b *browser) hear(from io.Reader) {
	defer close(b.answers)
	for in := bufio.NewReader(from); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		_ = json.Unmarshal(text[:len(text)-1], &m) // what is no message answers no call
		switch {
		case m.ID != 0:
			b.answers <- m
		case m.Method == "Page.loadEventFired":
			b.loaded <- struct{}{}
		}
	}
}

// call calls a method of the protocol.
func (b *browser) call(t *testing.T, method string, params map[string]any, result any) {
	t.Helper()
	b.calls++
	text, err := json.Marshal(map[string]any{"id": b.calls, "method": method, "params": params, "sessionId": b.session})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.commands.Write(append(text, 0)); err != nil {
		t.Fatal(err)
	}
	answer, ok := <-b.answers
	switch {
	case !ok:
		t.Fatalf("%s: chromium has ended", method)
	case answer.Error != nil:
		t.Fatalf("%s: %s", method, answer.Error.Message)
	case result == nil:
	default:
		if err := json.Unmarshal(answer.Result, result); err != nil {
			t.Fatalf("%s: %s: %v", method, answer.Result, err)
		}
	}
}

// attach takes the page that is open.
func (b *browser) attach(t *testing.T) {
	t.Helper()
	var open struct{ TargetID string }
	b.call(t, "Target.createTarget", map[string]any{"url": "about:blank"}, &open)
	var attached struct{ SessionID string }
	b.call(t, "Target.attachToTarget", map[string]any{"targetId": open.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call(t, "Page.enable", nil, nil)
}

// open loads a page.
func (b *browser) open(t *testing.T, address string) {
	t.Helper()
	b.call(t, "Page.navigate", map[string]any{"url": address}, nil)
	<-b.loaded
}

// reload loads the page again.
func (b *browser) reload(t *testing.T) {
	t.Helper()
	b.call(t, "Page.reload", nil, nil)
	<-b.loaded
}

// eval returns the value of an expression, or of its promise.
func (b *browser) eval(t *testing.T, expression string) string {
	t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails json.RawMessage
	}
	b.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	var text string
	if err := json.Unmarshal(answer.Result.Value, &text); err != nil {
		return string(answer.Result.Value)
	}
	return text
}

// until waits in the page until a condition holds.
func (b *browser) until(t *testing.T, condition string) {
	t.Helper()
	b.eval(t, fmt.Sprintf("new Promise(done => { const timer = setInterval(() => { if (%s) { clearInterval(timer); done(); } }, 20); })", condition))
}

// text returns the text of an element.
func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	return b.eval(t, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

// click clicks a button by its name.
func (b *browser) click(t *testing.T, name string) {
	t.Helper()
	b.eval(t, fmt.Sprintf("[...document.querySelectorAll('button')].find(b => b.textContent === %q).click()", name))
}

// screenshot keeps a picture of the page as an artefact of the test.
func (b *browser) screenshot(t *testing.T, name string) {
	t.Helper()
	var taken struct{ Data []byte }
	b.call(t, "Page.captureScreenshot", nil, &taken)
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), taken.Data, 0o600); err != nil {
		t.Fatal(err)
	}
}
