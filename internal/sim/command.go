package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// patience is how long a caller waits for an answer.
const patience = 20 * time.Second

var errUnknown = errors.New("the connection to the process was lost")

// command is a call of an engine.
type command struct {
	n      int
	what   string
	p      *process
	run    func(ctx context.Context, e *engine.Engine) (any, error)
	then   func(answer any, err error) // of an outcome that is known
	once   bool                        // it cannot be repeated
	tries  int
	answer any
	err    error
	over   bool
}

// issue begins a command on a process. then is called once its outcome is known. Commands are repeated under the same key until then; run must use
// the same one each time.
func (w *World) issue(p *process, what string, run func(ctx context.Context, e *engine.Engine) (any, error), then func(answer any, err error)) *command {
	w.issued++
	c := &command{n: w.issued, what: what, run: run, then: then}
	w.send(p, c)
	return c
}

// send gives a command to a process.
func (w *World) send(p *process, c *command) {
	c.p, c.over, c.answer, c.err = p, false, nil, nil
	c.tries++
	w.commands = append(w.commands, c)
	w.record("#%d to p%d: %s", c.n, p.index, c.what)
	sent := &command{n: c.n, p: p}
	w.all.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		sent.answer, sent.err = c.run(ctx, p.e)
		sent.then = func(answer any, err error) { // by the driver
			if c.p == p && !c.over {
				c.answer, c.err = answer, err
				w.conclude(c)
			}
		}
		w.answered(sent)
	})
}

// conclude takes in the outcome of a command.
func (w *World) conclude(c *command) {
	if c.run == nil { // as it was sent
		c.then(c.answer, c.err)
		return
	}
	c.over = true
	w.commands = slices.DeleteFunc(w.commands, func(other *command) bool { return other == c })
	switch {
	case c.err == nil:
		w.record("#%d done", c.n)
	case unknown(c.err):
		w.record("#%d unknown", c.n)
		if !c.once {
			w.journal.unknown = append(w.journal.unknown, c)
		}
		return
	default:
		w.record("#%d %s", c.n, base.CodeOf(c.err))
	}
	switch code := base.CodeOf(c.err); code {
	case base.CodeInternal, base.CodeCorruption, base.CodeInvalidArgument:
		w.found("%s is answered %s: %v", c.what, code, c.err)
	}
	c.then(c.answer, c.err)
}

// unknown reports whether an error leaves open what happened, or says that a repeat may help.
func unknown(err error) bool {
	if errors.Is(err, errUnknown) {
		return true
	}
	switch base.CodeOf(err) {
	case base.CodeStoreUnavailable, base.CodeTimeout, base.CodeIdempotencyInProgress, base.CodeOverloaded, base.CodeShuttingDown:
		return true
	}
	return false
}

// repeat sends a command of unknown outcome again.
func (w *World) repeat(p *process, at int) {
	c := w.journal.unknown[at]
	w.journal.unknown = slices.Delete(w.journal.unknown, at, at+1)
	w.send(p, c)
}

// The callers of a history.
func client(key string) engine.Caller {
	return engine.Caller{Principal: "me", Actor: "client", RequestKey: key}
}

func operator() engine.Caller { return engine.Caller{Principal: "op", Actor: "operator"} }

// key makes a request key.
func (w *World) requestKey() string {
	w.journal.keys++
	return fmt.Sprintf("rk-%d", w.journal.keys)
}
