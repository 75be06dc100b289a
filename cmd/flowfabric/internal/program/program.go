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
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric"
)

// Program is what is run for every task.
type Program struct {
	Command     []string
	Environ     []string  // beside what is added for the task
	Server      string    // told to the program as FF_SERVER
	ContentType string    // of the result; "": JSON, text or bytes, whatever it is
	Stderr      io.Writer // where its standard error goes; many tasks at a time write there
	MaxResult   int       // bytes; what is longer fails the attempt
}

// retryExit is the exit code that asks for another attempt (EX_TEMPFAIL).
const retryExit = 75

// patience is how long a program may go on after SIGTERM.
const patience = 10 * time.Second

// Handle runs the program for a task. Exit 0 completes with what it printed, 75 fails so that the policy may retry, anything else
// fails for good. The program gets SIGTERM when the lease is lost (U175).
func (p *Program) Handle(ctx context.Context, t *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	apart(cmd)
	cmd.Cancel = func() error { return tell(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = patience
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in.Data), &bounded{&out, p.MaxResult}
	tail := &lastBytes{w: p.Stderr}
	cmd.Stderr = tail
	cmd.Env = append(append([]string{}, p.Environ...),
		"FF_EXECUTION_ID="+string(t.ID()), fmt.Sprintf("FF_ATTEMPT=%d", t.Attempt().Index), "FF_EFFECT_KEY="+t.EffectKey(""),
		"FF_LEASE="+t.Lease().Fence(), "FF_SERVER="+p.Server)
	err := cmd.Run()
	if ctx.Err() != nil {
		return flowfabric.Payload{}, context.Cause(ctx)
	}
	if err != nil {
		return flowfabric.Payload{}, failure(err, tail.text())
	}
	return p.payload(out.Bytes()), nil
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
