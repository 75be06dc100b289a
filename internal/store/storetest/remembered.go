package storetest

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func rememberedTests() []test {
	return []test{
		{"remembered rows are written without being loaded", rememberedRows, anyStore},
		{"I3: a row that was written since is not as remembered, and nothing of the batch is written", writtenSince, anyStore},
		{"L141: a row that is gone is not as remembered", goneSince, anyStore},
		{"I3: a row that was removed and inserted again is not as remembered", insertedAgain, anyStore},
		{"L5 L102: remembered rows are not written once the bound is reached by the store's clock", boundReached, anyStore},
	}
}

// runs inserts a running execution and returns it as it is remembered.
func (w *world) runs(ctx context.Context) *core.Execution {
	w.t.Helper()
	x := claimed(w.execution(), w.now)
	w.insert(ctx, x)
	return w.load(ctx, x.ID.UUID)
}

// later returns the execution with something changed.
func later(x *core.Execution) *core.Execution {
	y := x.Clone()
	y.LastMutationAt = y.LastMutationAt.Add(17)
	return y
}

func rememberedRows(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	a, b, loaded := w.runs(ctx), w.runs(ctx), w.runs(ctx)
	for range 3 { // each write increments the count
		next := []*core.Execution{later(b), later(a)}
		ch := &store.Changes{
			Assume: next, Update: []*core.Execution{later(loaded)}, AssumeUntil: w.clock(ctx).Add(60_000), Dictionary: w.version(ctx),
		}
		w.put(ctx, store.Want{Executions: []base.UUID{loaded.ID.UUID}}, ch)
		for _, x := range next {
			got := w.load(ctx, x.ID.UUID)
			w.equal("written", x, got)
			w.equal("version", store.NextVersion(x.Version, ch.Draw), got.Version)
		}
		a, b, loaded = w.load(ctx, a.ID.UUID), w.load(ctx, b.ID.UUID), w.load(ctx, loaded.ID.UUID)
	}
}

func writtenSince(t *testing.T, f Factory) {
	for what, write := range map[string]func(x *core.Execution) *store.Changes{
		"updated":    func(x *core.Execution) *store.Changes { return &store.Changes{Update: []*core.Execution{later(x)}} },
		"renewed":    func(x *core.Execution) *store.Changes { return &store.Changes{Renew: []*core.Execution{x}} },
		"remembered": func(x *core.Execution) *store.Changes { return &store.Changes{Assume: []*core.Execution{x}} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, w := start(t, f)
			x, sibling, fresh := w.runs(ctx), w.runs(ctx), w.execution()
			w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, write(x))
			now := w.load(ctx, x.ID.UUID)
			w.refuse(ctx, store.Want{}, &store.Changes{
				Insert: []*core.Execution{fresh}, Assume: []*core.Execution{later(sibling), later(x)}, Events: []core.Event{event(x, w.now, 1)},
			}, store.Conflict)
			w.equal("written by another", now, w.load(ctx, x.ID.UUID))
			w.equal("sibling", sibling, w.load(ctx, sibling.ID.UUID))
			w.gone(ctx, fresh.ID.UUID)
			w.equal("events", []core.Event(nil), w.events(ctx, 0))
		})
	}
}

func goneSince(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.runs(ctx)
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	w.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(x)}}, store.Conflict)
	w.gone(ctx, x.ID.UUID)
}

func insertedAgain(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := claimed(w.execution(), w.now)
	w.insert(ctx, x)
	old := w.load(ctx, x.ID.UUID)
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	w.insert(ctx, x.Clone())
	now := w.load(ctx, x.ID.UUID)
	w.equal("written equally often", old.Version>>32, now.Version>>32)
	w.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(old)}}, store.Conflict)
	w.equal("not written", now, w.load(ctx, x.ID.UUID))
	ch := &store.Changes{Assume: []*core.Execution{later(now)}}
	w.put(ctx, store.Want{}, ch)
	w.equal("written as it is remembered now", store.NextVersion(now.Version, ch.Draw), w.load(ctx, x.ID.UUID).Version)
}

func boundReached(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.runs(ctx)
	w.refuse(ctx, store.Want{}, &store.Changes{Assume: []*core.Execution{later(x)}, AssumeUntil: w.clock(ctx)}, store.Conflict)
	w.equal("not written", x, w.load(ctx, x.ID.UUID))
}
