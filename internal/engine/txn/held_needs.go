package txn

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// meets returns the fault that the store would return after a wait, if rows that the unit is about to wait for are recorded as held.
func (u *Tx) meets(locks func() []store.Lock) error {
	if !u.heeds || u.Engine.held.known.Load() == 0 {
		return nil
	}
	if held := u.Engine.held.among(locks(), u.line); len(held) > 0 {
		return &store.Fault{Kind: store.Busy, Err: errRemembered, Held: held}
	}
	return nil
}

// meetsLater is meets for rows that are loaded behind others: executions and keys among them are locked only if they are free.
func (u *Tx) meetsLater(want *store.Want) error {
	return u.meets(func() []store.Lock {
		later := *want
		later.Executions, later.Keys = nil, nil
		return later.Locks()
	})
}

// writes returns the rows that the commit may wait for although the unit has not locked them.
func (u *Tx) writes() (locks []store.Lock) {
	for i := range u.Changes.NewKeys {
		locks = append(locks, store.Lock{Key: u.Changes.NewKeys[i].Key})
	}
	for _, x := range slices.Concat(u.Changes.Insert, u.Changes.Assume) {
		locks = append(locks, store.Lock{Execution: x.ID.UUID})
	}
	for _, doc := range slices.Concat(u.Changes.NewDocs, u.Changes.PutDocs) {
		locks = append(locks, store.Lock{Doc: doc.DocRef})
	}
	for key := range u.Changes.Counters {
		locks = append(locks, store.Lock{Counter: key})
	}
	if u.Changes.RaisesDictionary() {
		locks = append(locks, store.Lock{Dictionary: true})
	}
	return locks
}

// needs returns a row among those held that a command needs: one that the command names, or one that belongs to an execution which it changes. u is
// the unit that met the rows, as far as it got; nil: it had not begun.
func (e *Engine) needs(u *Tx, r *request, held []store.Lock) (lock store.Lock, found bool) {
	var own store.Want
	r.Want(&own, true)
	var flows []base.UUID
	var chains []string
	if u != nil {
		if n, ok := r.command.(needier); ok {
			n.More(u, &own)
		}
		if b, ok := r.command.(behind); ok {
			b.behind(u, &own)
		}
		if f, ok := r.command.(flowLocker); ok {
			flows = f.Flows(u)
		}
		if a, ok := r.command.(audited); ok {
			chains = a.Chains(u)
		}
	}
	own.LockDocs = true // if one command of a batch locks docs, all docs of the batch are locked
	if cmd, ok := r.command.(byWorker); ok {
		own.Executions = append(own.Executions, cmd.Target())
	}
	named := own.Locks()
	changer, ok := r.command.(ruleChanger)
	rules := ok && changer.changesRules()
	for _, lock := range held {
		switch {
		case slices.Contains(named, lock):
			return lock, true
		case lock.Lane != 0 && rules:
			return lock, true
		case lock.Dictionary && u != nil && (rules || len(own.LockLanes) > 0):
			return lock, true
		case lock.Doc.Kind == DocAuditChain && slices.Contains(chains, lock.Doc.Key):
			return lock, true
		case lock.Doc.Kind == docAuditRoll && slices.ContainsFunc(chains, func(name string) bool { return u.needsRoll(name, lock) }):
			return lock, true
		case lock.Doc.Kind == DocFlow && slices.ContainsFunc(flows, func(id base.UUID) bool { return FlowRef(id) == lock.Doc }):
			return lock, true
		case u != nil && slices.ContainsFunc(own.Executions, func(id base.UUID) bool { return u.Entries[id].needs(lock) }):
			return lock, true
		}
	}
	return store.Lock{}, false
}

// needs reports whether what was done to the execution so far needs a row besides its own: the flow in which its end is counted, a budget or rate
// that its lease is charged to, or the counter of a slot that it takes or frees.
func (ent *Row) needs(lock store.Lock) bool {
	switch {
	case ent == nil:
		return false
	case lock.Doc.Owner != "":
		return lock.Doc.Owner == ent.Exec.ID.UUID.String()
	case lock.Doc.Kind == DocFlow:
		return ent.JustEnded() && FlowRef(ent.Exec.FlowID.UUID) == lock.Doc
	case lock.Doc.Kind == DocBudget:
		return slices.ContainsFunc(ent.Exec.ChargedTo(), func(id base.UUID) bool { return BudgetDocRef(id) == lock.Doc }) || ent.reserves(lock)
	case lock.Doc.Kind == DocRate:
		return chargesRate(ent.Exec.Reservation, lock) || chargesRate(ent.reserved, lock)
	case lock.Counter != "":
		return contains(ent.holds, lock.Counter) != contains(ent.Exec.Holds, lock.Counter)
	}
	return false
}

// reserves reports whether the execution was charged to the budget when it was loaded.
func (ent *Row) reserves(lock store.Lock) bool {
	return ent.reserved != nil && slices.ContainsFunc(ent.reserved.Holds, func(h core.BudgetHold) bool { return BudgetDocRef(h.Budget) == lock.Doc })
}

func chargesRate(r *core.Reservation, lock store.Lock) bool {
	if r == nil {
		return false
	}
	for _, taken := range r.Rates {
		if RateRef(taken.Key) == lock.Doc {
			return true
		}
	}
	return false
}
