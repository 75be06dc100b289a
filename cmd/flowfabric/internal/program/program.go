// Package program runs any program as the handler of an execution: input on standard input, result from standard output. It does
// not know where work comes from.
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
	"github.com/flowfabric/flowfabric/api"
)

// Program is the program that is run for every task.
type Program struct {
	Command     []string
	Environ     []string               // in addition to the variables of the task
	Hidden      func(line string) bool // reports whether a variable of Environ is withheld; nil: none is
	Server      string                 // passed to the program as FF_SERVER
	ContentType string                 // of the result; "": JSON, text or bytes, detected
	Stderr      io.Writer              // receives standard error of all tasks
	MaxResult   int                    // bytes; a longer result fails the attempt
	// Do sends commands under leases: standard error is sent to the stream of the attempt. nil: it is not.
	Do func(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error)

	mu      sync.Mutex
	running map[*exec.Cmd]chan struct{} // closed when the program has ended
}

// retryExit is the exit code that requests another attempt (EX_TEMPFAIL).
const retryExit = 75

// patience is how long a program may continue after SIGTERM. Then it and its children are killed; output that is still open after
// that is not waited for.
const (
	patience  = 10 * time.Second
	lastWords = time.Second
)

// Handle runs the program for a task. Exit code 0 completes with the output, 75 fails and lets the policy retry, any other code
// fails permanently. The program gets SIGTERM when the lease is lost (U175).
func (p *Program) Handle(ctx context.Context, t *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...) //nolint:gosec // G204: it is the program that the user gave
	apart(cmd)
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(patience, func() { _ = send(cmd, syscall.SIGKILL) })
		return send(cmd, syscall.SIGTERM)
	}
	cmd.WaitDelay = patience + lastWords
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in.Data), &bounded{&out, p.MaxResult}
	tail := &lastBytes{w: p.Stderr}
	cmd.Stderr = tail
	cmd.Env = p.environ(t)
	finish := func() {}
	if p.Do != nil {
		var stream *lines
		stream, finish = p.streamOf(ctx, t)
		tail.w = io.MultiWriter(p.Stderr, stream)
	}
	err := p.run(cmd)
	finish() // before the attempt ends, and its stream with it
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

// environ returns the environment of a task's program. The trace context of this process is removed, and secrets of this process,
// such as its API key, are withheld.
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

// run runs a program to its end and registers it for Finish.
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

// Running returns the number of programs that have not ended.
func (p *Program) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.running)
}

// Finish waits until every running program has ended, so that none outlives its worker. They were signalled and have patience to
// end; a signal from hurry kills them.
func (p *Program) Finish(hurry <-chan os.Signal) {
	p.mu.Lock()
	left := maps.Clone(p.running)
	p.mu.Unlock()
	for _, ended := range left {
		select {
		case <-ended:
		case <-hurry:
			for cmd := range left {
				_ = send(cmd, syscall.SIGKILL)
			}
			<-ended
		}
	}
}

// failure describes how the program ended, with the end of its standard error.
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

// payload returns the output of the program; empty output is no result.
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

// bounded refuses a result that is too long.
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

// lastBytes forwards everything and remembers the end.
type lastBytes struct {
	w    io.Writer
	last []byte
}

// remembered is how much of standard error is included in the message of a failure.
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
