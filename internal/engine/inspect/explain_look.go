package inspect

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// explainLook collects what an explanation needs.
type explainLook struct {
	e      *Inspector
	caller txn.Caller
	dict   *txn.Dictionary
	order  int64 // under which the execution is filed, or would be
	in     core.ExplainInput
}

// lookTries is how often the rows are read again because what they depend on has changed meanwhile.
const lookTries = 3

// lookAt reads the execution and everything that admission, lane and workers contribute, in one read. Which rows these are depends on the
// execution, which is read first: if it has changed meanwhile, they are read again. Codes: execution_not_found, corruption.
func (e *Inspector) lookAt(ctx context.Context, c txn.Caller, id base.GivenID) (*explainLook, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	for try := 1; err == nil; try++ {
		look := &explainLook{e: e, caller: c}
		if look.dict, err = e.Dict.At(ctx, loaded.Dictionary); err != nil {
			return nil, txn.PublicFault(err)
		}
		asked := look.budgetsOf(x)
		if loaded, x, err = e.ReadOne(ctx, c, id, look.Want(x, asked)); err != nil {
			return nil, err
		}
		if look.dict, err = e.Dict.At(ctx, loaded.Dictionary); err != nil {
			return nil, txn.PublicFault(err)
		}
		if try == lookTries || slices.Equal(asked, look.budgetsOf(x)) {
			if err := look.take(loaded, x); err != nil {
				return nil, err
			}
			return look, look.takeNamespace(ctx)
		}
	}
	return nil, err
}

// budgetsOf are the budgets that apply, and those that the grant or lease is charged to.
func (l *explainLook) budgetsOf(x *core.Execution) []base.UUID {
	all := slices.Clone(limits.BudgetsOf(l.dict, x))
	for _, charged := range x.ChargedTo() {
		if !slices.Contains(all, charged) {
			all = append(all, charged)
		}
	}
	return all
}

func (l *explainLook) Want(x *core.Execution, budgets []base.UUID) store.Want {
	want := store.Want{Counters: []string{txn.LaneCounter(x.Class.Lane)}, Scans: []store.Scan{{Kind: txn.DocWorker}}}
	waits.WantWaiting(&want, x.ID.UUID)
	for _, budget := range budgets {
		want.Docs = append(want.Docs, limits.BudgetDocRef(budget))
	}
	for _, use := range x.Policy.Quotas {
		want.Docs = append(want.Docs, limits.RateRef(use.RateKey()))
		want.Counters = append(want.Counters, use.SlotsKey())
	}
	return want
}

// take prepares the rows for core: due timers are applied to this copy only, and not stored.
func (l *explainLook) take(loaded *store.Loaded, x *core.Execution) error {
	d, err := waits.ReadState(loaded, x.ID.UUID)
	if err != nil {
		return err
	}
	room := l.room(loaded, x)
	fx := &core.Effects{Now: loaded.Now, Actor: core.EngineActor(), Budgets: room.Budgets}
	held := x.Holds
	l.order = x.OrderKey
	lane := l.dict.Lanes[x.Class.Lane]
	if x.Settle(fx) && lane != nil {
		l.order = x.RankKey(lane.Settings.AgeingMS)
	}
	d.Apply(fx.Waits)
	room.Settled(held, x.Holds, fx.RatesBack)
	l.in = core.ExplainInput{
		Now: max(loaded.Now, x.Latest()), Execution: x, Lane: lane, Room: room, Set: limits.BudgetsOf(l.dict, x), Holders: map[string][]base.ID{},
	}
	if l.in.Suspended, err = x.SuspendedView(d); err != nil {
		return err
	}
	place := txn.LaneCounter(x.Class.Lane)
	l.in.LaneInUse = room.Slots[place]
	if x.Status == core.Granted && slices.Contains(x.Holds, place) {
		l.in.LaneInUse-- // its own place is free once the grant ends
	}
	if !limits.SeesAll(l.caller, l.dict) {
		l.conceal()
	}
	return l.takeWorkers(loaded.Scanned[0])
}

// room returns what admission decides on, from rows that were read without locks.
func (l *explainLook) room(loaded *store.Loaded, x *core.Execution) *core.Room {
	room := &core.Room{
		Quotas: func(id string) *core.Quota { return limits.RulesOf(l.dict).Quotas[id] },
		Slots:  loaded.Counters, Rates: map[string]*core.RateWindow{}, Budgets: core.NewBudgetSet(), Unreadable: map[string]bool{},
	}
	if room.Slots == nil {
		room.Slots = map[string]int64{}
	}
	for _, use := range x.Policy.Quotas {
		if limits.RulesOf(l.dict).QuotaUnreadable(use.Quota) {
			room.Unreadable[use.RateKey()], room.Unreadable[use.SlotsKey()] = true, true
		}
	}
	for ref, doc := range loaded.Docs {
		switch ref.Kind {
		case limits.DocBudget: // one that cannot be read is missing in the books, and admits nothing
			if budget, err := limits.DecodeBudget(&doc); err == nil {
				room.Budgets.Add(budget)
			}
		case limits.DocRate:
			window, err := core.DecodeRateWindow(doc.Data)
			if err != nil {
				room.Unreadable[ref.Key] = true
				continue
			}
			room.Rates[ref.Key] = window
		}
	}
	return room
}

// conceal hides how far above their limits the shared keys are from a caller that does not see all namespaces: it may know only that they are full
// (U121).
func (l *explainLook) conceal() {
	if l.in.Lane != nil && l.in.Lane.Settings.MaxConcurrent > 0 {
		l.in.LaneInUse = min(l.in.LaneInUse, int64(l.in.Lane.Settings.MaxConcurrent))
	}
	for _, use := range l.in.Execution.Policy.Quotas {
		if quota := limits.RulesOf(l.dict).Quotas[use.Quota]; quota != nil && quota.Settings.ConcurrencyLimit > 0 {
			key := use.SlotsKey()
			l.in.Room.Slots[key] = min(l.in.Room.Slots[key], int64(quota.Settings.ConcurrencyLimit))
		}
	}
}

// takeWorkers keeps the instances that the caller sees. It counts those of the namespace of the execution, also where they serve others too: a
// refusal of another one tells their number as well.
func (l *explainLook) takeWorkers(docs []store.Doc) error {
	for i := range docs {
		w, err := txn.DecodeWorker(&docs[i])
		if err != nil {
			continue // it is unknown what such an instance may take
		}
		if w.Dead == nil && slices.Contains(w.Namespaces, l.in.Execution.Class.Namespace) {
			l.in.Namespace.Workers++
		}
		if l.caller.SeesWorker(w) {
			l.in.Workers = append(l.in.Workers, *w)
		}
	}
	return nil
}

// takeNamespace takes the limits of the namespace of the execution.
func (l *explainLook) takeNamespace(ctx context.Context) error {
	name := l.in.Execution.Class.Namespace
	space, err := l.e.Spaces.Of(ctx, name, l.e.Cfg.Clock.Now())
	if err != nil {
		return txn.PublicFault(err)
	}
	l.in.Namespace.MaxPriority, l.in.Namespace.MaxWorkers = space.MaxPriority, space.WorkersLimit(l.dict.Table.Others(name))
	return nil
}
