package txn

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Outcomes that a user's own transaction has left (store.TxOutcomes).
//
// The transaction locks the row of the execution, checks the fence on it, writes the outcome beside it and marks the row: its version becomes negative.
// All of it becomes visible with the commit, at once. From then on nothing may be decided about the execution before the outcome is applied:
//
//   - A transaction that locks the row sees the mark. begin rolls it back, applies what the row carries in a transaction of its own, and begins again.
//     A row that is met later (Load, or a pick in the transaction of commands) gives the transaction up with the fault Stale, and nothing that has met
//     a marked row is committed (carries).
//   - A copy of the row in the cache of any process has another version, so that no write from it succeeds (row_cache.go). That is also true of a process
//     that was frozen in between.
//   - While the user's transaction is open, the row is held like any other that a foreign transaction holds (held_rows.go).
//
// So between the check of the fence and the outcome nothing can happen to the execution, whenever the outcome is applied: no lapse, no takeover, no
// cancel, no timer. Timers that are due are judged by the time at which the user's transaction held the lock, which is stored with the outcome.

// mostOutcomeTries is how often a transaction begins again because of outcomes that it met.
const mostOutcomeTries = 8

// carriesOutcomes is why a transaction is given up that has met executions which carry outcomes.
type carriesOutcomes struct{ ids []base.UUID }

func (*carriesOutcomes) Error() string {
	return "an execution carries outcomes that were not applied yet"
}

// carriedBy returns the executions with outcomes that a transaction has met; nil if that is not why it failed.
func carriedBy(err error) []base.UUID {
	var met *carriesOutcomes
	if errors.As(err, &met) {
		return met.ids
	}
	return nil
}

func carriedFault(ids []base.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return &store.Fault{Kind: store.Stale, Err: &carriesOutcomes{ids}}
}

// meetsCarried is the fault of a transaction whose first rows include some that carry outcomes.
func (u *Tx) meetsCarried(loaded *store.Loaded) error {
	var ids []base.UUID
	for id, x := range loaded.Executions {
		if store.Carries(x.Version) && !u.applies[id] {
			ids = append(ids, id)
		}
	}
	return carriedFault(ids)
}

// carries is the fault of a transaction that has met executions which carry outcomes.
func (u *Tx) carries() error { return carriedFault(u.carried) }

// appliesOutcomes is a command that applies the outcomes of an execution.
type appliesOutcomes interface {
	Command
	AppliesTo() base.UUID
}

// appliedBy returns the executions whose outcomes a batch applies.
func appliedBy(batch []*Request) (ids map[base.UUID]bool) {
	for _, r := range batch {
		if cmd, ok := r.Command.(appliesOutcomes); ok {
			SetIn(&ids, cmd.AppliesTo(), true)
		}
	}
	return ids
}

// OnOutcomes registers what makes the commands that apply the outcomes of executions. It must be registered before Start.
func (e *Engine) OnOutcomes(commands func(context.Context, []base.UUID) ([]Command, error)) {
	e.extensions.outcomes = commands
}

// ApplyOutcomes applies the outcomes that executions carry, in a transaction of its own. The caller must not hold their rows. What cannot be applied
// now, because a further transaction of the user holds the row, still stands in the inbox.
func (e *Engine) ApplyOutcomes(ctx context.Context, ids []base.UUID) error {
	cmds, err := e.outcomesOf(ctx, ids)
	if err != nil || len(cmds) == 0 {
		return err
	}
	return e.ProcessBeside(cmds)
}

func (e *Engine) outcomesOf(ctx context.Context, ids []base.UUID) ([]Command, error) {
	commands := e.extensions.outcomes
	if commands == nil {
		return nil, base.Errorf(base.CodeInternal, "nothing applies outcomes")
	}
	return commands(ctx, ids)
}

// applyFirst prepares another try of a batch that has met executions with outcomes. A batch that applies outcomes itself gets those too: members of a
// flow may each end the other, so that neither can be applied before the other.
func (e *Engine) applyFirst(batch []*Request, ids []base.UUID) ([]*Request, error) {
	ctx, cancel := e.Bounded()
	defer cancel()
	if len(appliedBy(batch)) == 0 {
		return batch, e.ApplyOutcomes(ctx, ids)
	}
	cmds, err := e.outcomesOf(ctx, ids)
	for _, cmd := range cmds {
		batch = append(batch, e.beside(cmd))
	}
	return batch, err
}

// LookAtInbox has the inbox looked at soon. Many calls are one look.
func (e *Engine) LookAtInbox() {
	select {
	case e.inboxKick <- struct{}{}:
	default:
	}
}

// watchInbox looks at the inbox whenever that is asked for, until ctx ends.
func (e *Engine) watchInbox(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.inboxKick:
			e.Ingest(ctx)
		}
	}
}
