package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// On a store where transactions take turns, claims that may find work are served in the transaction of the next commit. Both share one transaction,
// and the disk sync at its end, instead of taking turns with one each. The rules are those of a pick (S16); the rows that the commands are going to
// queue are merged into those that were read from the store.

// ride serves the claims that may find work in this unit. It returns nil if there are none. Otherwise the caller must report the outcome with rode
// or fellOff.
func (u *Tx) ride(ctx context.Context) (*pick, error) {
	if u.Engine.Store.Info().Shared || u.Changes.RaisesDictionary() {
		return nil, nil // claims are decided with the lanes and rules before this change (S36)
	}
	coming, all := u.newlyQueued()
	if !all {
		return nil, nil
	}
	u.handing = true
	k := u.Engine.picker.board(u.dict)
	if k == nil {
		u.handing = false
		return nil, nil
	}
	u.lends(k, u.Engine.picker.fellOff)
	u.Engine.trap("ride", base.UUID{})
	if err := u.loadPick(ctx, k.Want()); err != nil {
		return k, err
	}
	k.sort(u)
	k.join(coming)
	if err := u.loadInputs(ctx, k.rows()); err != nil {
		return k, err
	}
	if err := k.fill(ctx, u); err != nil {
		return k, err
	}
	u.recallWaits(k)
	return k, nil
}

// rows returns all rows that may be taken.
func (k *pick) rows() (all []store.QueueRow) {
	for _, a := range k.asked {
		all = append(all, a.rows...)
	}
	return all
}

// newlyQueued returns what the unit puts into queues for ready executions, best first (S6). all is false if the unit moves a row that is queued
// already, uses one from the cache, or queues one whose admission needs a pick of its own: the rows in the store are then not what they will be
// after the commit.
func (u *Tx) newlyQueued() (rows []store.QueueRow, all bool) {
	for _, ent := range u.order {
		if ent.created {
			u.Settle(ent) // one that was submitted in a transaction of its caller may have expired by now (S17)
		}
		switch {
		case ent.removed || !ent.changed || !ent.Exec.Queued():
		case ent.filed != nil || ent.assumed() || ent.Exec.Block() != 0 || !u.decidesNew(ent):
			return nil, false
		default:
			ent.Exec.OrderKey = ent.Exec.RankKey(u.ageing(ent.Exec))
			rows = append(rows, store.QueueRow{Class: ent.Exec.Class.ID, Order: ent.Exec.OrderKey, ID: ent.Exec.ID.UUID})
		}
	}
	slices.SortFunc(rows, store.QueueRow.Compare)
	return rows, true
}

// loadPick loads what a pick reads, except docs that the commands have loaded already.
func (u *Tx) loadPick(ctx context.Context, want store.Want) error {
	want.Docs = slices.DeleteFunc(want.Docs, func(ref store.DocRef) bool { _, known := u.docs[ref]; return known })
	loaded, err := u.tx.Load(ctx, want)
	if u.Engine.failed(err) != nil {
		return err
	}
	u.absorb(want, loaded)
	return u.loadReserved(ctx)
}

// join merges rows that the unit is going to queue into those that were read, where it is known which rows come before them.
func (k *pick) join(coming []store.QueueRow) {
	asked := k.byID()
	for _, row := range coming {
		a := asked[queueID{class: row.Class}]
		if a == nil && !k.beyond {
			if a = k.newcomers(row.Class); a == nil {
				continue // no claim has asked for the class
			}
			asked[a.id()], k.asked = a, append(k.asked, a)
		}
		if a == nil || k.beyond && row.Order >= k.within || a.got >= a.limit && row.Order >= a.reach {
			continue // it is queued, and the next pick finds it in its place
		}
		at, _ := slices.BinarySearchFunc(a.rows, row, store.QueueRow.Compare)
		a.rows = slices.Insert(a.rows, at, row)
		a.got++
		a.limit++
	}
}

// newcomers returns a queue that was not asked because it is known to be empty, or nil if no call takes from it.
func (k *pick) newcomers(class int32) *askedQueue {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	q := k.p.queues[queueID{class: class}]
	if q == nil || q.maybe || q.full != "" || !k.p.open(q) {
		return nil
	}
	a := &askedQueue{classQueue: q, turn: k.p.turnOf(q.class), filingsThen: q.filings, from: q.floor, last: q.floor, limit: 1, headThen: q.head, users: map[string]bool{}}
	for _, call := range k.calls {
		if call.matches(q.class) && contains(call.req.Lanes, q.class.Lane) {
			a.users[call.filter] = true
		}
	}
	if len(a.users) == 0 {
		return nil
	}
	k.bindTurn(a.turn)
	return a
}

// board returns a pick for the calls that may find something, marked as being served, or nil if there are none.
func (p *picker) board(dict *Dictionary) *pick {
	if p.e.Dict.Now() != dict {
		return nil
	}
	p.e.committer.offered()
	if calls := p.runnable(); len(calls) > 0 {
		return p.planFor(calls)
	}
	return nil
}

// rode answers the calls of a ride that was committed. Those that got nothing keep waiting.
func (p *picker) rode(u *Tx, k *pick) {
	k.grant(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	k.learn()
	for _, call := range k.calls {
		call.lookedFor()
		p.conclude(k, call)
	}
	p.wake()
}

// fellOff lets the calls of a failed ride keep waiting.
func (p *picker) fellOff(k *pick, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.apart = p.apart || errors.Is(err, errLookApart); !errors.Is(err, errLookApart) {
		p.e.slots.forget(k)
	}
	k.putBack()
	p.unserved(k.calls, err)
	p.wake()
}

// commitWithRiders commits the unit together with the claims that it serves.
func (u *Tx) commitWithRiders(ctx context.Context, commands []string) error {
	k, err := u.ride(ctx)
	if k == nil {
		return u.commit(ctx, commands)
	}
	if err == nil {
		u.servesClaims(k.calls)
		err = u.commit(ctx, append(commands, "claim"))
	}
	if err != nil {
		u.takeBack(err)
		return fmt.Errorf("%w: %w", errHandOver, err)
	}
	u.tellClaims(k, u.Engine.picker.rode)
	return nil
}

// mostWithout is how many batches in a row may serve no claims before the claims get a transaction of their own.
const mostWithout = 2

// turn is a turn of the picker, which a line of the committer runs.
type turn struct {
	take func() (again bool)
	done chan bool
}

// between runs take between two commits, on a store where transactions take turns. While it runs, commands collect for the next commit, which may
// serve further claims. It reports whether another turn may help.
func (c *committer) between(take func() bool) (again bool) {
	t := &turn{take, make(chan bool, 1)}
	if !c.giveTurn(t) {
		return false
	}
	c.wake()
	return <-t.done
}

// giveTurn hands a turn to the committer. It returns false if the committer has closed.
func (c *committer) giveTurn(t *turn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.turn = t
	}
	return !c.closed
}

// takeTurn runs the picker's turn if there is one and the next commits cannot serve its claims. It reports whether it did. The lock is held.
func (c *committer) takeTurn() bool {
	t := c.turn
	if t == nil || c.busy > 0 || len(c.queue) > 0 && c.without < mostWithout && !c.closed {
		return false
	}
	c.turn, c.without = nil, 0
	if c.closed {
		t.done <- false
		return true
	}
	c.busy++
	c.mu.Unlock()
	again := false
	_ = c.e.contain(inClaim, func() { again = t.take() }) // a panic must not keep the lock from being taken again, nor the picker from its answer
	t.done <- again
	c.mu.Lock()
	c.busy--
	return true
}

// offered records that the claims could be served by a batch.
func (c *committer) offered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without = 0
}
