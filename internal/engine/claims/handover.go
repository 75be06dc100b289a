package claims

import (
	"context"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Work that is submitted, or that continues after a suspension, while a claim waits for it, is leased in the same transaction. It is never queued, no
// pick has to find it, and its handler starts as soon as the submit or the signal is committed.
//
// The rules are those of a pick (S16), with the rows that the transaction is going to queue in place of rows in the store. A pick would have looked
// at the store for three more things: that no other row stands before these in the queues that the claim may take from, that the record of the worker
// allows it to claim, and that the lanes are open. The hand-over takes all three from the caches of this process and writes them down as assumptions
// (AssumeEmpty, AssumeDocs, AssumeLanes). The store checks them under locks when it writes. If one is wrong, nothing is written; the batch is tried
// again without a hand-over, and a pick serves the work in order.

// handOver leases what the transaction has created or resumed to waiting claims. It returns nil if there is nothing to lease or no claim that can
// take it. Otherwise the caller must report the outcome with handed or handedBack.
func (p *picker) handOver(ctx context.Context, u *txn.Tx) *pick {
	if len(u.Changes.Lanes) > 0 || p.waiters() == 0 || p.e.Held.HoldsRoom() {
		return nil // a lane that this transaction opens may have a backlog, and a lane that other transactions hold cannot be read
	}
	rows := comingUp(u)
	if len(rows) == 0 {
		return nil
	}
	u.Handing = true
	k := p.reserve(u.Dict, rows)
	if k == nil {
		u.Handing = false
		return nil
	}
	// The calls are marked as being served. Lent to the transaction, they are given back in every case in which it fails.
	u.Lend(handedOver{k})
	p.e.Trap("hand_over", rows[0].ID)
	if err := loadInputs(ctx, u, rows); err != nil {
		u.TakeBack(err) // the commit will fail in the same way
		return nil
	}
	k.now = u.Now
	// The records of the workers are those of the last look. The store checks them when it writes (assumeClaimable); a record that this transaction
	// has loaded itself is newer and stays.
	for _, call := range k.calls {
		if ref := txn.WorkerRef(call.req.InstanceID); u.Docs[ref] == nil {
			txn.SetIn(&u.Docs, ref, k.looks[call.req.InstanceID].doc)
		}
	}
	// The same code as in a pick, so the same order and the same refusals: only the rows and what surrounds them come from elsewhere.
	limits.UseCachedSlots(u)
	k.serveAll(u)
	attachWaits(u, k)
	assumeClaimable(u, k)
	return k
}

// comingUp lists the executions that the transaction creates or resumes and would queue, best first (S6). It is empty if the transaction queues
// anything else: that may come before them.
func comingUp(u *txn.Tx) (rows []store.QueueRow) {
	for _, ent := range u.Order {
		if ent.Created {
			u.Settle(ent) // one that was submitted in a transaction of its caller may have expired by now (S17)
		}
		switch {
		case ent.Removed || !ent.Changed || !ent.Exec.Queued():
		case !ent.Created && !resumed(ent):
			return nil
		case !decidesNew(u, ent):
			return nil
		default:
			ent.Exec.OrderKey = ent.Exec.RankKey(u.Ageing(ent.Exec))
			rows = append(rows, store.QueueRow{Class: ent.Exec.Class.ID, Order: ent.Exec.OrderKey, ID: ent.Exec.ID.UUID})
		}
	}
	slices.SortFunc(rows, store.QueueRow.Compare)
	return rows
}

// decidesNew reports whether the transaction can decide on the admission of what it is going to queue. Otherwise a pick decides.
func decidesNew(u *txn.Tx, ent *txn.Row) bool {
	return !limits.Limits(u, ent.Exec) || ent.Created && limits.Of(u).Slots.Decides(u, ent.Exec)
}

// resumed reports whether the execution was suspended when it was loaded, or waited for others of its flow or for its children.
func resumed(ent *txn.Row) bool {
	return ent.Waits != nil && ent.Waits.Suspension != nil || ent.Waited != core.ReasonNone
}

// loadInputs loads the inputs of resumed executions: commands do not load them.
func loadInputs(ctx context.Context, u *txn.Tx, rows []store.QueueRow) error {
	want := store.Want{Inputs: true}
	for _, row := range rows {
		if ent := u.Entries[row.ID]; !ent.Created && ent.Exec.Input.Size > len(ent.Exec.Input.Data) {
			want.Executions = append(want.Executions, row.ID)
		}
	}
	if len(want.Executions) == 0 {
		return nil
	}
	loaded, err := u.StoreTx.Load(ctx, want)
	if u.Engine.Failed(err) != nil {
		return err
	}
	for id, x := range loaded.Executions {
		u.Entries[id].Exec.Input.Data = x.Input.Data
	}
	return nil
}

// attachWaits adds to each task that continues what it waited for, if the transaction has all of it, so that it need not be read again.
func attachWaits(u *txn.Tx, k *pick) {
	for _, tasks := range k.given {
		for i := range tasks {
			t := &tasks[i]
			waits := waits.LoadedState(u, t.ent.Exec.ID.UUID)
			if waits == nil {
				continue
			}
			shown, err := t.ent.Exec.ResumedWait(waits, t.got)
			if err == nil && shown != nil && complete(shown) {
				t.resumed = shown
			}
		}
	}
}

// complete reports whether all payloads of a wait are present. Empty ones are set to what a reader expects.
func complete(o *core.Observation) bool {
	var missing waits.WaitData
	missing.Observation(base.UUID{}, o, waits.WaitBytes)
	return len(missing.Blank) == 0
}

// assumeClaimable adds the assumptions that the store has to check, for the calls that got something.
func assumeClaimable(u *txn.Tx, k *pick) {
	for _, call := range k.calls {
		if len(k.given[call]) == 0 {
			continue
		}
		if doc := k.looks[call.req.InstanceID].doc; !slices.ContainsFunc(u.Changes.AssumeDocs, func(d store.Doc) bool { return d.DocRef == doc.DocRef }) {
			u.Changes.AssumeDocs = append(u.Changes.AssumeDocs, *doc)
		}
		if cached := k.assumed[call.filter]; !cached.noted {
			cached.noted = true
			assumeEmpty(u, k, cached.queues)
		}
		assumeRoom(u, k.given[call])
		u.Changes.Dictionary = u.Dict.Version
	}
	slices.Sort(u.Changes.AssumeLanes)
}

// assumeEmpty adds the assumption that queues are empty and that their lanes have not changed.
func assumeEmpty(u *txn.Tx, k *pick, queues []store.Pick) {
	for _, q := range queues {
		if k.noted[q] {
			continue // calls of another filter use it too
		}
		txn.SetIn(&k.noted, q, true)
		u.Changes.AssumeEmpty = append(u.Changes.AssumeEmpty, q)
		if lane := u.Dict.Lanes[k.lanes[q.Class]]; !slices.Contains(u.Changes.AssumeLanes, lane.ID) {
			u.Changes.AssumeLanes = append(u.Changes.AssumeLanes, lane.ID)
		}
	}
}

// waiters returns how many calls wait.
func (p *picker) waiters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// reserve selects waiting claims that can take rows like these, in order of arrival (S18), and marks them as being served, so that no pick serves
// them too.
func (p *picker) reserve(dict *txn.Dictionary, rows []store.QueueRow) *pick {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.e.Cfg.Clock.Now()
	if p.closed || len(p.waiting) == 0 || p.pause.After(now) || p.e.Dict.Now() != dict {
		return nil
	}
	k := p.newPick(nil)
	k.assumed, k.lanes = map[string]*cachedQueues{}, map[int32]string{}
	if k.asked = p.filing(dict, rows); len(k.asked) == 0 {
		return nil
	}
	served := p.servedNow()
	room, reserved := 0, false
	defer func() {
		if !reserved { // also if it panics
			p.unserved(k.calls, nil)
		}
	}()
	for _, call := range p.waiting {
		look := p.lookOf(call)
		// Left out: grants, which only a pick signs; a call whose request, or a repeat of it, is being served; one that has news to look at first
		// (check), because a better row may be among them; and one whose instance must be looked at in the store before it gets anything (S50).
		if call.grants() || served[call.request()] || call.serving || call.gone || call.check || !call.deadline.After(now) || look.doc == nil || !now.Before(look.until) {
			continue
		}
		// The rows come next only if no other queue of the call has rows. That is an assumption, which the store checks (assumeEmpty).
		if !k.knownEmpty(call) || !k.offer(call) {
			continue
		}
		call.serving = true
		served.add(call)
		k.calls = append(k.calls, call)
		k.looks[call.req.InstanceID] = &look
		if room += call.req.Max; room >= len(rows) {
			break
		}
	}
	reserved = true
	if len(k.calls) == 0 {
		return nil
	}
	return k
}

// filing turns rows that are going to be queued into queues of a pick.
func (p *picker) filing(dict *txn.Dictionary, rows []store.QueueRow) (asked []*askedQueue) {
	byClass := map[int32]*askedQueue{}
	for _, row := range rows {
		a := byClass[row.Class]
		if a == nil {
			q := p.queues[queueID{class: row.Class}]
			if q == nil || p.waitsFor(dict.Needs(row.Class)) {
				continue // no claim has asked for the class, or as far as this process knows there is no room for it
			}
			a = &askedQueue{classQueue: q, turn: p.turnOf(q.class), users: map[string]bool{}}
			asked, byClass[row.Class] = append(asked, a), a
		}
		a.rows = append(a.rows, row)
		a.got++
		a.limit = a.got + 1
	}
	return asked
}

// cachedQueues are the open queues that calls of one filter would take from, if all of them are empty according to the cache.
type cachedQueues struct {
	queues []store.Pick
	empty  bool
	noted  bool // already added to the transaction's assumptions
}

// knownEmpty reports whether, according to the cache, all open queues that the call would take from are empty. As in a pick, rows below the floor
// of a queue are not considered.
func (k *pick) knownEmpty(call *claim) bool {
	if known := k.assumed[call.filter]; known != nil {
		return known.empty
	}
	// Each queue becomes a check in the commit. Of a call with very many queues too little would be saved.
	b := &cachedQueues{empty: len(k.p.queuesOf(call)) <= assumeAtMost}
	k.assumed[call.filter] = b
	if !b.empty {
		return false
	}
	k.p.each(call, func(q *classQueue) {
		switch {
		case !k.p.open(q) || q.full != "": // as far as this process knows, nothing of it can be taken
		case q.maybe || q.block == 0 && !q.surveyed:
			b.empty = false
		default:
			b.queues = append(b.queues, store.Pick{Class: q.class.ID, Block: q.block, Floor: q.floor})
			for _, block := range q.unseen() {
				b.queues = append(b.queues, store.Pick{Class: q.class.ID, Block: block, Floor: math.MinInt64})
			}
			k.lanes[q.class.ID] = q.class.Lane
		}
	})
	return b.empty
}

// offer lets the call take from the queues that match it. It reports whether there is one.
func (k *pick) offer(call *claim) bool {
	found := false
	for _, a := range k.asked {
		if len(a.rows) > 0 && call.matches(a.class) && txn.Contains(call.req.Lanes, a.class.Lane) {
			a.users[call.filter] = true
			found = true
		}
	}
	return found
}

// handed answers the calls of a hand-over that was committed. Those that got nothing keep waiting.
func (p *picker) handed(u *txn.Tx, k *pick) {
	k.grant(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	// Nothing was read of the queues, so there is nothing to learn but which turns are idle now.
	k.judgeIdle()
	answered := claimSet{}
	for _, call := range k.calls {
		call.serving = false
		if len(k.given[call]) > 0 || k.errs[call] != nil || k.drain[call] {
			p.conclude(k, call)
			answered.add(call)
		}
	}
	for _, call := range p.waiting {
		call.check = call.check || answered[call.request()] // a repeat of an answered request gets the same leases (L117)
	}
	p.release(k.calls)
	p.wake()
}

// handedBack lets the calls of a failed hand-over keep waiting. What the cache has about their queues and workers is dropped.
func (p *picker) handedBack(k *pick, err error) {
	p.forgetSlots(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	// Some assumption was wrong, and the store does not say which: everything that these calls relied on is read again by the next pick.
	for _, call := range k.calls {
		delete(p.looks, call.req.InstanceID)
		p.each(call, p.reset)
	}
	p.unserved(k.calls, err)
	p.wake()
}

// unserved lets calls keep waiting whose transaction failed. If its outcome is unknown they get that error instead, since they may have leases. The
// lock is held.
func (p *picker) unserved(calls []*claim, err error) {
	for _, call := range calls {
		call.serving, call.check = false, true
		if store.FaultOf(err) == store.Unknown {
			p.finish(call, txn.PublicFault(err))
		}
	}
	p.release(calls)
}

// release answers those of the calls that must not keep waiting. The lock is held.
func (p *picker) release(calls []*claim) {
	for _, call := range calls {
		switch {
		case !slices.Contains(p.waiting, call):
		case call.gone:
			p.finish(call, base.Errorf(base.CodeTimeout, "the caller gave up"))
		case p.closed:
			p.finish(call, txn.ErrShuttingDown())
		}
	}
}

// claimRequest identifies a claim: calls with equal values are repeats of each other (L117).
type claimRequest struct {
	instance, key string
	grants        bool
}

func (c *claim) request() claimRequest {
	return claimRequest{c.req.InstanceID, c.req.RequestKey, c.grants()}
}

// claimSet is a set of requests. A call without a request key is not added: it repeats no other call.
type claimSet map[claimRequest]bool

func (s claimSet) add(call *claim) {
	if call.req.RequestKey != "" {
		s[call.request()] = true
	}
}

// servedNow returns the requests that transactions under way serve. A repeat of one waits until that outcome is known. The lock is held.
func (p *picker) servedNow() claimSet {
	served := claimSet{}
	for _, call := range p.waiting {
		if call.serving {
			served.add(call)
		}
	}
	return served
}
