package engine

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// command is one caller's wish inside a batch. It is decided anew whenever its batch has to be tried again, so decide must
// set its answer from scratch and keep nothing from an earlier try.
type command interface {
	// name is the operation's name in logs, metrics and crash points.
	name() string
	// want adds the rows that the command needs locked and loaded.
	want(w *store.Want, careful bool)
	// decide applies the command to the unit. Its error is the refusal of this command alone.
	decide(u *unit) error
}

// needier is a command that knows only after the first load which further rows it needs.
type needier interface {
	command
	more(u *unit, w *store.Want)
}

// request is a command on its way through a committer.
type request struct {
	command
	err   error
	done  chan struct{}
	began time.Duration // when it was handed in, by the meter's clock
	span  Span          // nil: none

	waited bool // it was kept back once for endings to go first
}

// do hands a command to the committer and waits for the answer.
func (e *Engine) do(ctx context.Context, cmd command) error {
	r := &request{command: cmd, done: make(chan struct{}), began: e.meter.now(), span: e.startSpan(ctx, cmd.name())}
	if err := e.committer.enqueue(r); err != nil {
		endSpan(r.span, err)
		return err
	}
	return r.wait(ctx)
}

// doAll hands over many commands as one caller and waits for all of them.
func (e *Engine) doAll(ctx context.Context, cmds []command) []error {
	requests := make([]*request, len(cmds))
	errs := make([]error, len(cmds))
	began := e.meter.now()
	for i, cmd := range cmds {
		r := &request{command: cmd, done: make(chan struct{}), began: began, span: e.startSpan(ctx, cmd.name())}
		if errs[i] = e.committer.enqueue(r); errs[i] == nil {
			requests[i] = r
		} else {
			endSpan(r.span, errs[i])
		}
	}
	for i, r := range requests {
		if r != nil {
			errs[i] = r.wait(ctx)
		}
	}
	return errs
}

// wait returns the command's outcome. A caller that gives up does not stop the command: its outcome is then unknown.
func (r *request) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return core.Errorf(core.CodeTimeout, "gave up before the answer came: %w", context.Cause(ctx)).
			WithHint("the outcome is unknown; the same call again is safe")
	}
}

func (r *request) finish(err error) {
	r.err = err
	endSpan(r.span, err)
	close(r.done)
}
