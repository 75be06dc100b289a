package txn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Command is one caller's request inside a batch. It is decided again whenever its batch is retried, so decide must set its answer from scratch and
// keep nothing from an earlier try.
type Command interface {
	// Name is the operation's name in logs, metrics and crash points.
	Name() string
	// Want adds the rows that the command needs locked and loaded. careful: also those that it could otherwise insert without looking.
	Want(w *store.Want, careful bool)
	// Decide applies the command to the transaction. Its error is the refusal of this command alone.
	Decide(u *Tx) error
}

// loadsMore is a command that knows only after the first load which further rows it needs.
type loadsMore interface {
	Command
	More(u *Tx, w *store.Want)
}

// Yielding is a command that lets others go first, because there may be many, and others must not wait for all of them (yielding.go).
type Yielding interface {
	Command
	Yields()
}

// Request is a command on its way through a committer.
type Request struct {
	Command
	Err   error
	Done  chan struct{}
	began time.Duration // when it was enqueued, by the meter's clock
	span  Span          // nil: none

	waited   bool // it was held back once so that endings go first
	answered atomic.Bool

	stays      bool          // it is answered at once, and not set apart, if it needs a row that others hold
	apartSince time.Duration // when it was first set apart, by the meter's clock; 0: it was not
	tries      int           // how often it has waited in vain
}

// Do enqueues a command and waits for the answer.
func (e *Engine) Do(ctx context.Context, cmd Command) error {
	r := e.NewRequest(ctx, cmd)
	if _, err := e.Committer.enqueue(r); err != nil {
		EndSpan(r.span, err)
		return err
	}
	return r.wait(ctx)
}

// RunNow runs a command in a transaction of its own, without the queue: it may be large, and has no caller who could give up.
func (e *Engine) RunNow(cmd Command) error {
	r := &Request{Command: cmd, Done: make(chan struct{}), began: e.Meter.now()}
	e.Process([]*Request{r})
	<-r.Done
	return r.Err
}

// NewRequest makes a request of a command, which is answered on behalf of ctx.
func (e *Engine) NewRequest(ctx context.Context, cmd Command) *Request {
	return &Request{Command: cmd, Done: make(chan struct{}), began: e.Meter.now(), span: e.StartSpan(ctx, cmd.Name())}
}

// Answered returns what a command has left in answer, if it has been answered. A caller that gave up must not read it: the command may still be
// running and writing to it.
func Answered[T any](answer *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}

// DoAll enqueues many commands as one caller and waits for all of them.
func (e *Engine) DoAll(ctx context.Context, cmds []Command) []error {
	requests := make([]*Request, len(cmds))
	for i, cmd := range cmds {
		requests[i] = e.NewRequest(ctx, cmd)
	}
	return e.CommitWithOthers(ctx, requests)
}

// CommitWithOthers lets requests of one caller share commits with those of others, and waits for all of them.
func (e *Engine) CommitWithOthers(ctx context.Context, requests []*Request) []error {
	errs := make([]error, len(requests))
	taken, err := e.Committer.enqueue(requests...)
	for i, r := range requests {
		if i < taken {
			errs[i] = r.wait(ctx)
			continue
		}
		errs[i] = err
		EndSpan(r.span, err)
	}
	return errs
}

// wait returns the command's outcome. A caller that gives up does not stop the command: its outcome is then unknown.
func (r *Request) wait(ctx context.Context) error {
	select {
	case <-r.Done:
		return r.Err
	default:
	}
	select {
	case <-r.Done:
		return r.Err
	case <-ctx.Done():
		return base.Errorf(base.CodeTimeout, "gave up before the answer came: %w", context.Cause(ctx)).
			WithHint("the outcome is unknown; the same call again is safe")
	}
}

// finish answers the request. Only the first answer counts.
func (r *Request) finish(err error) {
	if r.answered.Swap(true) {
		return
	}
	defer close(r.Done) // also if the span panics
	r.Err = err
	EndSpan(r.span, err)
}

// aloneAtOnce is how many commands run alone at a time: each may need a second connection to look at a graph while it holds its lock, and
// there are not many.
const aloneAtOnce = 2

// DoAlone runs a command in a transaction of its own, on the caller's own goroutine and connection.
func (e *Engine) DoAlone(ctx context.Context, cmd Command) error {
	return e.RunAlone(ctx, cmd, e.alone, BatchMode{})
}

// RunAlone is doAlone with a token of its own, beginning in a mode.
func (e *Engine) RunAlone(ctx context.Context, cmd Command, tokens chan struct{}, mode BatchMode) error {
	if e.Stopping() {
		return ErrShuttingDown()
	}
	select {
	case tokens <- struct{}{}:
	case <-ctx.Done():
		return PublicFault(ctx.Err())
	case <-e.Stop:
		return ErrShuttingDown()
	}
	r := e.NewRequest(ctx, cmd)
	e.processAs([]*Request{r}, mode)
	<-tokens // a command that waits for a row of others has its place in a line of it
	<-r.Done
	return r.Err
}

// Behind is a command that needs rows which are locked behind executions (S73).
type Behind interface {
	Command
	Behind(u *Tx, w *store.Want)
}
