// Package program runs a program of any language as the handler of a piece of work: input on standard input, result from standard
// output. It does not know where work comes from.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric"
)

// Program is what is run for every task.
type Program struct {
	Command     []string
	Environ     []string               // beside what is added for the task
	Hidden      func(line string) bool // reports whether the program does not get this variable of Environ; nil: it gets all
	Server      string                 // told to the program as FF_SERVER
	ContentType string                 // of the result; "": JSON, text or bytes, whatever it is
	Stderr      io.Writer              // where its standard error goes; many tasks at a time write there
	MaxResult   int                    // bytes; what is longer fails the attempt

	mu      sync.Mutex
	running map[*exec.Cmd]chan struct{} // closed when it has ended
}

// retryExit is the exit code that asks for another attempt (EX_TEMPFAIL).
const retryExit = 75

// patience is how long a program may go on after SIGTERM. Then it and everything that it started is killed; what still holds its
// output after that is not waited for.
const (
	patience  = 10 * time.Second
	lastWords = time.Second
)

// Handle runs the program for a task. Exit 0 completes with what it printed, 75 fails so that the policy may retry, anything else
// fails for good. The program gets SIGTERM when the lease is lost (U175).
func (p *Program) Handle(ctx context.Context, t *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...) //nolint:gosec // G204: it is the program that the user gave
	apart(cmd)
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(patience, func() { _ = tell(cmd, syscall.SIGKILL) })
		return tell(cmd, syscall.SIGTERM)
	}
	cmd.WaitDelay = patience + lastWords
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in.Data), &bounded{&out, p.MaxResult}
	tail := &lastBytes{w: p.Stderr}
	cmd.Stderr = tail
	cmd.Env = p.environ(t)
	err := p.run(cmd)
	if kill != nil {
		kill.Stop()
	}
	if ctx.Err() != nil {
		return flowfabric.Payload{}, context.Cause(ctx)
	}
	if err != nil {
		return flowfabric.Payload{}, failure(err, tail.text())
	}
	return p.payload(out.Bytes()), nil
}

// environ is the environment of a task's program. A trace that this process belongs to is not the task's. The secrets of this process, such
// as its API key, are not passed on.
func (p *Program) environ(t *flowfabric.Task) []string {
	trace := t.Trace()
	env := slices.DeleteFunc(slices.Clone(p.Environ), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return name == "TRACEPARENT" || name == "TRACESTATE" || name == "BAGGAGE" || p.Hidden != nil && p.Hidden(line)
	})
	for name, value := range map[string]string{"TRACEPARENT": trace.Traceparent, "TRACESTATE": trace.Tracestate, "BAGGAGE": trace.Baggage} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env,
		"FF_EXECUTION_ID="+string(t.ID()), fmt.Sprintf("FF_ATTEMPT=%d", t.Attempt().Index), "FF_EFFECT_KEY="+t.EffectKey(""),
		"FF_LEASE="+t.Lease().Fence(), "FF_SERVER="+p.Server)
}

// run runs a program to its end, so that Finish knows of it.
func (p *Program) run(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.mu.Lock()
	if p.running == nil {
		p.running = map[*exec.Cmd]chan struct{}{}
	}
	p.running[cmd] = ended
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.running, cmd)
		p.mu.Unlock()
		close(ended)
	}()
	return cmd.Wait()
}

// Running is how many programs have not ended.
func (p *Program) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.running)
}

// Finish waits until every program has ended that runs now, so that none outlives its worker: they were told to end and have their
// patience. Somebody in a hurry kills them.
func (p *Program) Finish(hurry <-chan os.Signal) {
	p.mu.Lock()
	left := maps.Clone(p.running)
	p.mu.Unlock()
	for _, ended := range left {
		select {
		case <-ended:
		case <-hurry:
			for cmd := range left {
				_ = tell(cmd, syscall.SIGKILL)
			}
			<-ended
		}
	}
}

// failure says how the program ended, with what it said last.
func failure(err error, said string) error {
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == retryExit {
		return flowfabric.Category("exit_75", err)
	}
	return flowfabric.Category("exit", flowfabric.Permanent(err))
}

// payload is what the program printed; nothing is no result.
func (p *Program) payload(data []byte) flowfabric.Payload {
	switch {
	case len(data) == 0:
		return flowfabric.Payload{}
	case p.ContentType != "":
		return flowfabric.Bytes(data, p.ContentType)
	case json.Valid(data):
		return flowfabric.Bytes(data, "application/json")
	case utf8.Valid(data):
		return flowfabric.Text(string(data))
	default:
		return flowfabric.Bytes(data, "")
	}
}

// bounded refuses more than a result may have.
type bounded struct {
	to   *bytes.Buffer
	most int
}

func (b *bounded) Write(data []byte) (int, error) {
	if b.to.Len()+len(data) > b.most {
		return 0, fmt.Errorf("the result has more than %d bytes", b.most)
	}
	return b.to.Write(data)
}

// lastBytes passes everything on and remembers the end.
type lastBytes struct {
	w    io.Writer
	last []byte
}

// remembered is how much of standard error goes into the message of a failure.
const remembered = 2000

func (l *lastBytes) Write(data []byte) (int, error) {
	l.last = append(l.last, data...)
	if over := len(l.last) - remembered; over > 0 {
		l.last = l.last[over:]
	}
	return l.w.Write(data)
}

func (l *lastBytes) text() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(l.last), "?"))
}
