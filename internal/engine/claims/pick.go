package claims

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// assumeAtMost bounds the number of classes of a claim that is handed work: each is checked when the transaction is written.
	assumeAtMost = 256

	askAll      = 16   // up to this many queues are all asked
	askFew      = 256  // up to this many are all asked once their heads are known
	leastOfMany = 64   // of more queues, at least this many are asked
	askAtMost   = 1024 // queues asked in one transaction
	peekAtMost  = 4096
	// longestPick is how long a call that does not wait is served while there may be more to see (S19).
	longestPick = 250 * time.Millisecond
	// leastLooks is the minimum number of looks of such a call: on a machine that stalls for a moment the first alone may take longer.
	leastLooks = 8
)

// pick is one transaction of the picker: which queues it asks (plan), what it saw of them (sort), what it gave to which call (fill), and what the
// picker learns from it (learn). It is used by one goroutine; mu of the picker is needed for the queues.
type pick struct {
	p        *picker
	since    string // the incarnation, read before the queues were
	calls    []*claim
	asked    []*askedQueue
	groups   []*claimGroup            // the calls by filter
	taken    map[*classQueue]bool     // queues that were taken out of the order of their lanes; nil: all queues were asked
	left     map[leftFor]string       // the turn that comes first among the queues that were not asked
	bound    map[laneTurn]int64       // rows with higher order keys may belong behind rows of queues that were not asked
	moved    bool                     // the look learned something new, so another one may learn more
	ended    bool                     // timers moved rows out of the queues: the rows behind them were not seen (S17)
	judged   map[laneTurn]bool        // turns for which judgeIdle has decided whether they are idle
	index    map[queueID]*askedQueue  // used for that
	short    bool                     // all rows that were read were taken although there are more, so another look may find them
	best     int                      // rows asked for of all queues together; 0: of each queue separately
	beyond   bool                     // there are more
	within   int64                    // the highest order key among the rows that were read: all others come after it
	saw      []store.QueueLook        // one for each queue asked, in that order; nil: the store is not shared, so no other process holds rows
	below    bool                     // there may be rows below where the look began
	dried    []*askedQueue            // queues whose next row is not known
	fields   map[string]*laneField    // of the call being served, by lane
	fieldOf  string                   // its filter
	known    int64                    // version of the dictionary that the queues were planned with
	grown    bool                     // the store had a newer one: queues that were not asked may have work (S9)
	survey   []*core.Class            // classes for which it is not known under which block numbers they have rows
	age      uint64                   // value of picker.surveys when the survey was planned
	found    bool                     // queues were found that were not asked
	vain     bool                     // it saw what a look of the same run saw already, and gave nothing (pick_again.go)
	late     bool                     // lanes and their places are loaded with the other admission keys, after the budgets (S73)
	heldBack []*askedQueue            // queues of which rows were passed over because others hold what they need
	shut     map[*claim]bool          // calls with a lane that could not be read because others hold it
	full     map[string]*core.Refusal // keys that had no room for the first row of a queue
	stands   map[blockedFirst]bool
	blocks   map[int32][]int32 // block numbers under which the surveyed classes have rows
	errs     map[*claim]error
	given    map[*claim][]grantedTask
	drain    map[*claim]bool
	over     map[*claim]bool // its request is answered with nothing, now or earlier (L117)
	now      base.Time
	safe     *txn.Safety // durability of what was given

	call      *claim // the call being served
	committed bool
	aside     map[base.UUID]aside // rows that it passes over because they made other picks panic
	logged    []base.UUID         // rows of aside for which this pick writes an event

	ring *keyring.Ring // signs grants; nil: no call asked for one

	refresh bool                       // the records of instances are locked, so that they can be written
	looks   map[string]*workerLiveness // as this pick found them
	workers map[string]*core.Worker    // the records that it read
	docs    map[string]*store.Doc      // the same, as stored
	lapsed  map[*claim]bool            // calls of instances that are live again once their records are written, which needs a lock (S50)
	bystand map[*claim]bool            // whether a call is a bystander, of those that it looked at

	// Only in a hand-over: what is cached of the queues of each filter, and the lanes of their classes.
	assumed map[string]*cachedQueues
	noted   map[store.Pick]bool
	lanes   map[int32]string
}

// laneTurn is a fairness key in a lane. "" is the only key of a lane without fairness (S26).
type laneTurn struct{ lane, key string }

// askedQueue is a queue in a pick: what was asked of it and what was read.
type askedQueue struct {
	*classQueue
	turn        laneTurn
	filingsThen uint64
	headThen    int64
	from        int64 // the floor when it was asked
	limit       int
	cut         bool             // limit is lower than the number that is wanted
	size        int              // of the largest input read
	rows        []store.QueueRow // not taken yet, best first
	bad         []store.QueueRow // rows that cannot be read
	got         int              // rows seen, including those that others hold
	came        int              // rows that were read
	first       int64            // order key of the first row read
	last        int64            // order key of the last row taken; the floor if none was
	reach       int64            // order key of the last row read
	skipped     []string         // rows that others hold and because of which single rows of it were passed over
	passed      string           // the key that has no room for its rows: they are left as they are (S19)
	refused     bool             // rows of it were refused, which says nothing about the rows behind them
	users       map[string]bool  // filters of the calls that may take from it
}

type grantedTask struct {
	ent     *txn.Row
	got     core.Acquired
	key     keyring.GrantKey  // of a grant
	resumed *core.Observation // what it waited for, if the transaction has it
}

// plan decides which queues to ask and for how many rows.
func (p *picker) plan(calls []*claim) *pick {
	// Each step takes the lock of the picker for itself. Between two steps, and during the transaction, commits and hints may change the queues.
	// That needs no lock: each queue counts what was filed in it (filings), and learn ignores what was seen of a queue whose count has moved.
	k := p.newPick(calls)
	k.gather()
	k.peek()
	k.choose()
	k.cutToSize()
	k.cutToShares()
	k.askTogether()
	return k
}

func (p *picker) newPick(calls []*claim) *pick {
	return &pick{
		p: p, since: p.e.Incarnation(), calls: calls, errs: map[*claim]error{}, given: map[*claim][]grantedTask{}, drain: map[*claim]bool{},
		looks: map[string]*workerLiveness{}, workers: map[string]*core.Worker{}, docs: map[string]*store.Doc{}, lapsed: map[*claim]bool{},
		bystand: map[*claim]bool{},
	}
}

// turnOf returns the fairness key under which the lane of a class serves it.
func (p *picker) turnOf(class *core.Class) laneTurn { return turnOf(p.e.Dict.Now(), class) }

func turnOf(d *txn.Dictionary, class *core.Class) laneTurn {
	turn := laneTurn{lane: class.Lane}
	if lane := d.Lanes[class.Lane]; lane != nil && fair(lane) {
		turn.key = core.FairnessKeyOf(lane.Settings.Fairness, class)
	}
	return turn
}

// fill checks admission and leases the best rows to the calls.
func (k *pick) fill(ctx context.Context, u *txn.Tx) error {
	k.passHeldRoom(u)
	if err := k.loadRoom(ctx, u); err != nil {
		return err
	}
	k.serveAll(u)
	// The store returned the best rows of all queues together. Some of them had no room, and rows of other queues that were cut off behind them
	// might come next: what was chosen may be out of order. The look is repeated with each queue asked for all that is wanted (apart).
	if k.beyond && len(k.full) > 0 {
		return &store.Fault{Kind: store.Retry, Err: errLookApart}
	}
	if k.overtakes() {
		return &store.Fault{Kind: store.Retry, Err: errLookBlocked}
	}
	for _, tasks := range k.given {
		assumeRoom(u, tasks)
	}
	k.noteCaps(u)
	return nil
}

// grant puts what the calls got into their answers. It runs after the commit, so that the remaining budget is what is left after all leases.
func (k *pick) grant(u *txn.Tx) {
	k.safe = &u.Safe
	for call, tasks := range k.given {
		for _, t := range tasks {
			task := txn.Task{Execution: t.ent.Exec, How: t.got.How, ResumedFrom: t.got.ResumedFrom, Resumed: t.resumed, GrantKey: t.key}
			if !call.grants() {
				task.Remaining = u.Accounts.Remaining(t.ent.Exec)
			}
			call.answer.Tasks = append(call.answer.Tasks, task)
		}
	}
}

func (k *pick) Want() store.Want {
	want := store.Want{LockDocs: k.refresh, SkipUnreadable: true, PickBest: k.best}
	dict := k.p.e.Dict.Now()
	for _, a := range k.asked {
		want.Pick = append(want.Pick, store.Pick{Class: a.class.ID, Block: a.block, Floor: a.from, Limit: a.limit})
		k.late = k.late || limits.Limited(dict, a.class)
	}
	for _, class := range k.survey {
		want.Blocks = append(want.Blocks, class.ID)
	}
	if !k.late {
		k.wantLanes(dict, &want)
	}
	for _, call := range k.calls {
		want.Docs = append(want.Docs, txn.WorkerRef(call.req.InstanceID))
		if call.req.RequestKey != "" {
			want.Docs = append(want.Docs, claimRef(&call.req))
		}
		if call.grants() && !slices.Contains(want.Docs, admin.KeySetRef) {
			admin.WantKeys(&want)
		}
	}
	return want
}

// wantLanes adds the lanes of the queues, and the counters of their places.
func (k *pick) wantLanes(dict *txn.Dictionary, want *store.Want) {
	for _, a := range k.asked {
		if lane := dict.Lanes[a.class.Lane]; lane != nil && !slices.Contains(want.ShareLanes, lane.ID) {
			want.ShareLanes = append(want.ShareLanes, lane.ID)
			if lane.Settings.MaxConcurrent > 0 {
				want.Counters = append(want.Counters, txn.LaneCounter(lane.Name))
			}
		}
	}
}

// byID returns the queues asked, by their ids.
func (k *pick) byID() map[queueID]*askedQueue {
	asked := make(map[queueID]*askedQueue, len(k.asked))
	for _, a := range k.asked {
		asked[a.id()] = a
	}
	return asked
}

// sort assigns the rows that were read to their queues. Rows that their timers have moved are left out (S17).
func (k *pick) sort(u *txn.Tx) {
	k.now, k.grown, k.blocks = u.Now, u.Dict.Version > k.known, u.Blocks
	asked := k.byID()
	k.beyond, k.within, k.saw = u.LeftOut, math.MinInt64, u.Looks
	for _, row := range u.Picked {
		k.within = max(k.within, row.Order)
		// Rows come best first within each queue. within is the end of what was read of all queues together, and reach of one of them.
		a := asked[queueID{row.Class, row.Block}]
		a.got++
		if a.came++; a.came == 1 {
			a.first = row.Order
		}
		a.reach = row.Order
		ent := u.Entries[row.ID]
		if ent == nil {
			k.setAside(u, a, row)
			continue
		}
		if k.passesAside(u, a, row) {
			continue
		}
		u.At("pick", row.ID)
		a.size = max(a.size, ent.Exec.Input.Size)
		// A row whose execution is locked may have a due timer, which acts first (L18): it may end the execution, or move it to another block. What
		// is still ready under this block may be taken.
		if _, passed := u.Passed[row.ID]; passed { // it cannot be settled in this transaction
			a.rows = append(a.rows, row)
			continue
		}
		u.Settle(ent)
		if ent.Exec.Queued() && ent.Exec.Block() == row.Block {
			a.rows = append(a.rows, row)
		} else {
			k.ended = true
		}
	}
	u.Row = base.UUID{}
	for i, a := range k.asked {
		k.passHeld(i, a)
		k.noteDry(a)
	}
}

// learn updates what the picker knows of the queues after a commit. What was seen of a queue is void if something was filed there meanwhile. The
// picker's lock is held.
func (k *pick) learn() {
	k.p.repeated = false
	k.learnAside()
	k.noteLooks()
	k.learnSizes()
	k.learnFull()
	k.learnSkipped()
	defer k.judgeIdle() // with what is known of all queues at the end, after putBack
	defer k.putBack()
	k.moved = len(k.given) > 0
	for i, a := range k.asked {
		a.learnBad()
		a.learnRefused()
		if a.filings != a.filingsThen {
			continue
		}
		// Only the picker's own look and filings change these fields, both under the lock. The cases are what a look can have seen of the end of a
		// queue.
		maybe, head := a.maybe, a.head
		switch {
		case a.passed != "": // its first row is still there
		case len(a.rows) > 0:
			// Read and not taken: the next look begins at this row.
			a.floor, a.head = a.rows[0].Order, a.rows[0].Order
		case k.spent(a):
			// Everything was read and taken. Empty until something is filed, or until the poll finds a row that others have given back (floors.go).
			a.maybe = false
			a.floor = max(a.floor, a.last)
			k.p.forgetQueue(a.classQueue)
		case k.beyond && a.got < a.limit: // its next row was left out
			// Its rows were read as far as those of all queues together: what is left comes after that point.
			a.floor, a.head = max(a.last, k.within), max(a.last, k.within)
		default:
			// As many rows were taken as were asked for, and there may be more behind the last one.
			a.floor, a.head = a.last, a.last
		}
		k.keepBelow(i, a)
		k.moved = k.moved || a.maybe != maybe || a.head != head
	}
	k.lookBelow()
}

// spent reports whether the look saw the end of the queue.
func (k *pick) spent(a *askedQueue) bool {
	return a.passed == "" && len(a.rows) == 0 && a.got < a.limit && !k.beyond
}

// sawEnds reports whether the look saw the ends of all queues.
func (k *pick) sawEnds() bool {
	return len(k.left) == 0 && !slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return a.passed == "" && !k.spent(a) })
}

// judgeIdle checks the turns whose queues were seen to end. The picker's lock is held.
func (k *pick) judgeIdle() {
	for _, a := range k.asked {
		if k.spent(a) {
			k.idle(a)
		}
	}
}

// idle marks a fairness key as idle if it has nothing more to give (S24): each of its queues was seen to end, or is known to be empty.
func (k *pick) idle(empty *askedQueue) {
	if empty.turn.key == "" || k.judged[empty.turn] {
		return
	}
	if k.judged == nil {
		k.judged, k.index = map[laneTurn]bool{}, k.byID()
	}
	k.judged[empty.turn] = true
	if k.turnHasMore(empty.turn) {
		return
	}
	k.p.turning.Lock()
	defer k.p.turning.Unlock()
	k.p.turns.Idle(empty.turn.lane, empty.turn.key)
}

// idleLooks is the number of classes of a turn up to which each is examined to decide whether the turn is idle.
const idleLooks = 64

// turnHasMore reports whether there may be rows under a key that a claim in use could take. Rows that no claim asks for do not count: with them the
// key would save up turns. A key with many classes, such as a namespace, is judged by the order that the filters keep, at a cost that does not
// depend on the number of classes. The lock is held.
func (k *pick) turnHasMore(turn laneTurn) bool {
	classes := k.p.classesOf(turn.lane)
	if classes.count(turn.key) > idleLooks {
		return k.p.filtersHaveMore(turn)
	}
	for class := range classes.of(turn.key) {
		if first := k.p.queue(class); (k.hasMore(first) || slices.ContainsFunc(first.behind, k.hasMore)) && k.p.wanted(class) {
			return true
		}
	}
	return false
}

// hasMore reports whether there may be rows in the queue that could be taken.
func (k *pick) hasMore(q *classQueue) bool {
	if a := k.index[q.id()]; a != nil {
		return a.passed == "" && !k.spent(a)
	}
	return q.takes()
}

// answers reports whether the call is done: it has work, an error, a drain notice, or no time left. The picker's lock is held.
func (k *pick) answers(call *claim) bool {
	call.answer.Now = k.now
	call.answer.Drain = k.drain[call]
	if k.errs[call] != nil || len(call.answer.Tasks) > 0 || call.answer.Drain || k.over[call] {
		return true
	}
	left := call.deadline.Sub(k.p.e.Cfg.Clock.Now())
	switch {
	case left > 0 || k.p.outwaits(call, k.passedFor(call)):
		return false
	case k.again() && !(k.found && call.looks >= leastLooks && left <= call.req.Wait-longestPick):
		return false
	}
	call.closing = k.p.e.closes(call)
	return !call.closing
}
