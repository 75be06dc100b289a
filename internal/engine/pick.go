package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	askAll     = 16 // so few queues are simply all asked
	askAtMost  = 64 // queues asked in one transaction
	peekAtMost = 4096
)

// pick is one transaction of the picker.
type pick struct {
	p      *picker
	calls  []*claim
	asked  []*askedQueue
	bound  map[string]int64 // by lane: order keys above it may belong behind rows of queues that were not asked
	unseen bool             // queues were left out, or rows left behind: look again at once
	errs   map[*claim]error
	given  map[*claim][]grantedTask
	drain  map[*claim]bool
	now    core.Time
}

// askedQueue is a queue in a pick: what was asked of it and what came back.
type askedQueue struct {
	*classQueue
	filingsThen uint64
	limit       int
	rows        []store.QueueRow // not yet taken, best first
	got         int
	last        int64 // order key of the last row taken
	users       map[*claim]bool
}

type grantedTask struct {
	ent *entry
	got core.Acquired
}

// plan decides which queues to ask for how many rows.
func (p *picker) plan(calls []*claim) *pick {
	k := &pick{p: p, calls: calls, errs: map[*claim]error{}, given: map[*claim][]grantedTask{}, drain: map[*claim]bool{}, bound: map[string]int64{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	byQueue := map[*classQueue]*askedQueue{}
	for _, call := range calls {
		for _, q := range p.queuesOf(call) {
			if !q.maybe || !p.open(q) {
				continue
			}
			a := byQueue[q]
			if a == nil {
				a = &askedQueue{classQueue: q, filingsThen: q.filings, users: map[*claim]bool{}}
				byQueue[q] = a
				k.asked = append(k.asked, a)
			}
			a.users[call] = true
			a.limit = min(a.limit+call.req.Max, maxClaimTasks)
		}
	}
	k.choose()
	return k
}

// choose keeps the queues whose heads come first, when there are many, and remembers how far their rows may be trusted.
func (k *pick) choose() {
	if len(k.asked) <= askAll {
		return
	}
	k.peek()
	slices.SortFunc(k.asked, func(a, b *askedQueue) int {
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.class.ID, b.class.ID))
	})
	if len(k.asked) <= askAtMost {
		return
	}
	for _, left := range k.asked[askAtMost:] {
		lane := left.class.Lane
		if bound, ok := k.bound[lane]; !ok || left.head < bound {
			k.bound[lane] = left.head
		}
	}
	k.asked = k.asked[:askAtMost]
	k.unseen = true
}

// peek learns the heads of queues of which nothing is known, in one read without locks.
func (k *pick) peek() {
	var unknown []*askedQueue
	for _, a := range k.asked {
		if a.head == math.MinInt64 && len(unknown) < peekAtMost {
			unknown = append(unknown, a)
		}
	}
	if len(unknown) <= askAll {
		return
	}
	want := store.Want{Pick: make([]store.Pick, len(unknown))}
	for i, a := range unknown {
		want.Pick[i] = store.Pick{Class: a.class.ID, Floor: a.floor, Limit: 1}
	}
	ctx, cancel := context.WithTimeout(k.p.e.background(), storeTimeout)
	defer cancel()
	loaded, err := k.p.e.store.Read(ctx, want)
	if err != nil {
		return // the transaction itself will meet the failure
	}
	heads := map[int32]int64{}
	for _, row := range loaded.Picked {
		heads[row.Class] = row.Order
	}
	now := k.p.e.cfg.Clock.Now()
	for _, a := range unknown {
		head, found := heads[a.class.ID]
		a.head, a.maybe, a.seen = head, found, now
	}
	k.asked = slices.DeleteFunc(k.asked, func(a *askedQueue) bool { return !a.maybe })
}

// run takes rows, leases them and commits.
func (k *pick) run() error {
	e := k.p.e
	ctx, cancel := context.WithTimeout(e.background(), storeTimeout)
	defer cancel()
	u, err := e.begin(ctx, k.want())
	if err != nil {
		return err
	}
	defer u.tx.Rollback(ctx)
	k.now = u.now
	k.sort(u)
	for _, call := range k.calls {
		k.serve(u, call)
	}
	if err := u.commit(ctx, []string{"claim"}); err != nil {
		return err
	}
	for call, tasks := range k.given {
		for _, t := range tasks {
			call.answer.Tasks = append(call.answer.Tasks, Task{Execution: t.ent.x, How: t.got.How, ResumedFrom: t.got.ResumedFrom})
		}
	}
	return nil
}

func (k *pick) want() store.Want {
	var want store.Want
	dict := k.p.e.dict.now()
	for _, a := range k.asked {
		want.Pick = append(want.Pick, store.Pick{Class: a.class.ID, Floor: a.floor, Limit: a.limit})
		if lane := dict.lanes[a.class.Lane]; lane != nil && !slices.Contains(want.ShareLanes, lane.ID) {
			want.ShareLanes = append(want.ShareLanes, lane.ID)
			if lane.Settings.MaxConcurrent > 0 {
				want.Counters = append(want.Counters, laneCounter(lane.Name))
			}
		}
	}
	for _, call := range k.calls {
		want.Docs = append(want.Docs, workerRef(call.req.InstanceID))
		if call.req.RequestKey != "" {
			want.Docs = append(want.Docs, claimRef(&call.req))
		}
	}
	return want
}

// sort hands the rows that came back to their queues, leaving out those whose timers moved them (S17).
func (k *pick) sort(u *unit) {
	byClass := map[int32]*askedQueue{}
	for _, a := range k.asked {
		byClass[a.class.ID] = a
	}
	for _, row := range u.picked {
		a := byClass[row.Class]
		a.got++
		ent := u.entries[row.ID]
		if ent == nil {
			continue
		}
		u.settle(ent)
		if ent.x.Status == core.Ready {
			a.rows = append(a.rows, row)
		}
	}
}

// learn brings what the picker knows of the queues up to date after a commit. A look that something was filed behind is
// worth nothing. The picker's lock is held.
func (k *pick) learn() {
	now := k.p.e.cfg.Clock.Now()
	for _, a := range k.asked {
		if a.filings != a.filingsThen {
			continue
		}
		a.seen = now
		switch {
		case len(a.rows) > 0:
			a.floor, a.head = a.rows[0].Order, a.rows[0].Order
		case a.got < a.limit:
			a.maybe = false
			a.floor = max(a.floor, a.last)
			k.idle(a)
		default:
			a.floor, a.head = a.last, a.last
		}
	}
}

// idle tells the turns of a lane that a key has nothing more to give (S24).
func (k *pick) idle(empty *askedQueue) {
	lane := k.p.e.dict.now().lanes[empty.class.Lane]
	if lane == nil || !fair(lane) {
		return
	}
	key := core.FairnessKeyOf(lane.Settings.Fairness, empty.class)
	for _, class := range k.p.e.dict.now().ofLane[lane.Name] {
		if core.FairnessKeyOf(lane.Settings.Fairness, class) == key && k.p.queue(class).maybe {
			return
		}
	}
	k.p.turns.Idle(lane.Name, key)
}

// answers tells whether the call is done: it has work, an error, a drain, or no time left. The picker's lock is held.
func (k *pick) answers(call *claim) bool {
	call.check = false
	call.answer.Now = k.now
	call.answer.Drain = k.drain[call]
	if k.errs[call] != nil || len(call.answer.Tasks) > 0 || call.answer.Drain {
		return true
	}
	return !k.unseen && !call.deadline.After(k.p.e.cfg.Clock.Now())
}
