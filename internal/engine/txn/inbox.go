package txn

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OnInbox registers what turns the submissions in the inbox into executions. It must be registered before Start.
func (e *Engine) OnInbox(ingest func(context.Context)) { e.extensions.ingest = ingest }

// Ingest turns everything in the inbox into executions. What cannot be read now is found by the next poll.
func (e *Engine) Ingest(ctx context.Context) {
	if ingest := e.extensions.ingest; ingest != nil {
		ingest(ctx)
	}
}

// Appeared reports whether an execution that was not found is worth another look: the execution exists now, or the inbox has something that is then
// ingested. Both are read in one snapshot, because another process may ingest it between two.
func (e *Engine) Appeared(ctx context.Context, id base.UUID) bool {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{id}, Inbox: 1})
	if err != nil {
		return false
	}
	if len(loaded.Inbox) > 0 {
		e.Ingest(ctx)
		return true
	}
	return loaded.Executions[id] != nil
}

// ProcessBeside runs commands as a batch of their own, in the goroutine of the caller, beside those of the committer. A command that needs a row which
// another transaction holds fails and does not wait: the caller may itself be one that waits for held rows. It returns the errors of the commands.
func (e *Engine) ProcessBeside(cmds []Command) error {
	return errors.Join(e.ProcessEachBeside(cmds)...)
}

// ProcessEachBeside is ProcessBeside, and returns one error for each command.
func (e *Engine) ProcessEachBeside(cmds []Command) []error {
	batch := make([]*Request, len(cmds))
	for i, cmd := range cmds {
		batch[i] = e.beside(cmd)
	}
	e.Process(batch)
	errs := make([]error, len(batch))
	for i, r := range batch {
		<-r.Done
		errs[i] = r.Err
	}
	return errs
}

func (e *Engine) beside(cmd Command) *Request {
	return &Request{Command: cmd, Done: make(chan struct{}), began: e.Meter.now(), stays: true}
}
