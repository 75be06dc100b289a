package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// project writes a round of search rows. If an execution makes it panic, it is found by leaving out half of the executions, and the round continues
// without it: lists show it as it was until it changes again, and no list waits for it (S63).
func (f *follower) project(ctx context.Context, round *store.Projection) error {
	err := f.tryProject(ctx, *round)
	if panicOf(err) == nil {
		return err
	}
	if err := f.split(ctx, round, round.Rows); err != nil {
		return err
	}
	return f.tryProject(ctx, *round)
}

// split takes the executions out of a round that make it panic, of some of its rows. What it tries moves nothing: the position stays.
func (f *follower) split(ctx context.Context, round *store.Projection, rows []*core.Execution) error {
	if len(rows) == 0 {
		return nil
	}
	trial := store.Projection{From: round.From, To: round.From, Incarnation: round.Incarnation, Rows: rows, Doubted: round.Doubted}
	err := f.tryProject(ctx, trial)
	fault := panicOf(err)
	switch {
	case fault == nil:
		return err
	case len(rows) > 1:
		half := len(rows) / 2
		first, second := slices.Clone(rows[:half]), slices.Clone(rows[half:])
		if err := f.split(ctx, round, first); err != nil {
			return err
		}
		return f.split(ctx, round, second)
	}
	bad := rows[0]
	fault.row = bad.ID.UUID
	f.e.reportPanic(InSearch, "", fault)
	round.Rows = slices.DeleteFunc(round.Rows, func(x *core.Execution) bool { return x == bad })
	now := f.e.Sweep.StoreNow()
	ch := &store.Changes{Events: []core.Event{quarantined(bad.ID.UUID, base.CodeInternal, 1, now, 0)}}
	return f.e.Write(ctx, "quarantine", ch)
}

// tryProject writes search rows. A panic becomes its error.
func (f *follower) tryProject(ctx context.Context, round store.Projection) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = newPanicked(InSearch, store.Recovered(what), base.UUID{})
		}
	}()
	for _, x := range round.Rows {
		f.e.trap("project", x.ID.UUID)
	}
	return f.e.Store.Project(ctx, round)
}
