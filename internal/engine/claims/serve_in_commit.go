package claims

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// On a store where transactions take turns, claims that may find work are served in the transaction of the next commit. Both share one transaction,
// and the disk sync at its end, instead of taking turns with one each. The rules are those of a pick (S16); the rows that the commands are going to
// queue are merged into those that were read from the store.

// serveInCommit serves the claims that may find work in this transaction. It returns nil if there are none. Otherwise served or rolledBack must be
// called with the outcome.
func (p *picker) serveInCommit(ctx context.Context, u *txn.Tx) (*pick, error) {
	if p.e.Store.Info().Shared || u.Changes.RaisesDictionary() {
		return nil, nil // claims are decided with the lanes and rules before this change (S36)
	}
	coming, all := newlyQueued(u)
	if !all {
		return nil, nil
	}
	// From here a panic is attributed to the hand-over and not to a command of the batch (gaveUp): the batch is tried again without it.
	u.Handing = true
	k := p.planInCommit(u.Dict)
	if k == nil {
		u.Handing = false
		return nil, nil
	}
	// The calls are marked as being served. Lent to the transaction, they are given back in every case in which it fails.
	u.Lend(withCommit{k})
	p.e.Trap("ride", base.UUID{})
	// Rows of the store and rows that this transaction is going to queue make one list, in the order of the queue: the calls get what a pick right
	// after the commit would give them.
	if err := loadPick(ctx, u, k.Want()); err != nil {
		return k, err
	}
	k.sort(u)
	k.join(coming)
	if err := loadInputs(ctx, u, k.rows()); err != nil {
		return k, err
	}
	if err := k.fill(ctx, u); err != nil {
		return k, err
	}
	attachWaits(u, k)
	return k, nil
}

// rows returns all rows that may be taken.
func (k *pick) rows() (all []store.QueueRow) {
	for _, a := range k.asked {
		all = append(all, a.rows...)
	}
	return all
}

// newlyQueued returns what the transaction puts into queues for ready executions, best first (S6). all is false if the transaction moves a row that
// is queued already, uses one from the cache, or queues one whose admission needs a pick of its own: the rows in the store are then not what they
// will be after the commit.
func newlyQueued(u *txn.Tx) (rows []store.QueueRow, all bool) {
	for _, ent := range u.Order {
		if ent.Created {
			u.Settle(ent) // one that was submitted in a transaction of its caller may have expired by now (S17)
		}
		switch {
		case ent.Removed || !ent.Changed || !ent.Exec.Queued():
		case ent.Filed != nil || ent.Assumed() || ent.Exec.Block() != 0 || !decidesNew(u, ent):
			return nil, false
		default:
			ent.Exec.OrderKey = ent.Exec.RankKey(u.Ageing(ent.Exec))
			rows = append(rows, store.QueueRow{Class: ent.Exec.Class.ID, Order: ent.Exec.OrderKey, ID: ent.Exec.ID.UUID})
		}
	}
	slices.SortFunc(rows, store.QueueRow.Compare)
	return rows, true
}

// loadPick loads what a pick reads, except docs that the commands have loaded already.
func loadPick(ctx context.Context, u *txn.Tx, want store.Want) error {
	want.Docs = slices.DeleteFunc(want.Docs, func(ref store.DocRef) bool { _, known := u.Docs[ref]; return known })
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	u.Absorb(want, loaded)
	return u.Loaded(ctx)
}

// join merges rows that the transaction is going to queue into those that were read, where it is known which rows come before them.
func (k *pick) join(coming []store.QueueRow) {
	asked := k.byID()
	for _, row := range coming {
		a := asked[queueID{class: row.Class}]
		if a == nil && !k.beyond {
			if a = k.unaskedQueue(row.Class); a == nil {
				continue // no claim has asked for the class
			}
			asked[a.id()], k.asked = a, append(k.asked, a)
		}
		// A row is merged only where everything before it was read: not behind the common end of what was read (within), nor behind the end of its
		// own queue (reach), because unread rows may come before it there.
		if a == nil || k.beyond && row.Order >= k.within || a.got >= a.limit && row.Order >= a.reach {
			continue // it is queued, and the next pick finds it in its place
		}
		at, _ := slices.BinarySearchFunc(a.rows, row, store.QueueRow.Compare)
		a.rows = slices.Insert(a.rows, at, row)
		a.got++
		a.limit++
	}
}

// unaskedQueue returns a queue that was not asked because it is known to be empty, or nil if no call takes from it.
func (k *pick) unaskedQueue(class int32) *askedQueue {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	q := k.p.queues[queueID{class: class}]
	if q == nil || q.maybe || q.full != "" || !k.p.open(q) {
		return nil
	}
	a := &askedQueue{classQueue: q, turn: k.p.turnOf(q.class), filingsThen: q.filings, from: q.floor, last: q.floor, limit: 1, headThen: q.head, users: map[string]bool{}}
	for _, call := range k.calls {
		if call.matches(q.class) && txn.Contains(call.req.Lanes, q.class.Lane) {
			a.users[call.filter] = true
		}
	}
	if len(a.users) == 0 {
		return nil
	}
	k.bindTurn(a.turn)
	return a
}

// planInCommit returns a pick for the calls that may find something, marked as being served, or nil if there are none.
func (p *picker) planInCommit(dict *txn.Dictionary) *pick {
	// The lanes and rules of the transaction must be those by which the queues are planned.
	if p.e.Dict.Now() != dict {
		return nil
	}
	p.e.Offered()
	if calls := p.runnable(); len(calls) > 0 {
		return p.planFor(calls)
	}
	return nil
}

// served answers the calls of a commit that served them. Those that got nothing keep waiting.
func (p *picker) served(u *txn.Tx, k *pick) {
	// Committed. grant runs before the lock is taken, because the answers belong to calls that this transaction alone serves.
	k.grant(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repeated = false
	k.learn()
	for _, call := range k.calls {
		call.lookedFor()
		p.conclude(k, call)
	}
	p.wake()
}

// rolledBack lets the calls keep waiting whose commit failed.
func (p *picker) rolledBack(k *pick, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.apart = p.apart || errors.Is(err, errLookApart); !errors.Is(err, errLookApart) {
		p.forgetSlots(k)
	}
	if p.repeated = errors.Is(err, errLookBlocked); p.repeated {
		k.learnBlocks()
	}
	k.putBack()
	p.unserved(k.calls, err)
	p.wake()
}
