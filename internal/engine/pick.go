package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// believeAtMost bounds how many classes a claim may take from that is handed work: each is checked when that is written.
	believeAtMost = 256

	askAll      = 16   // so few queues are simply all asked
	askFew      = 256  // so few are all asked once their heads are known
	leastOfMany = 64   // of more so many are asked at least
	askAtMost   = 1024 // queues asked in one transaction
	peekAtMost  = 4096
	// longestPick is how long a call that does not wait is served while there may be more to see (S19).
	longestPick = 250 * time.Millisecond
	// leastLooks is how many looks such a call has at least: on a machine that stands still for a moment the first alone may take longer.
	leastLooks = 8
)

// pick is one transaction of the picker.
type pick struct {
	p        *picker
	since    string // the incarnation that was known before the queues were looked at
	calls    []*claim
	asked    []*askedQueue
	groups   []*claimGroup            // the calls by their filters
	taken    map[*classQueue]bool     // queues that were taken out of the order of their lanes; nil: all were asked
	left     map[leftFor]string       // the turn that is served first among the queues that were not asked
	bound    map[laneTurn]int64       // order keys above it may belong behind rows of queues that were not asked
	moved    bool                     // the look told something new, so that another may tell more
	ended    bool                     // timers took rows out of the queues: what stands behind them was not seen (S17)
	judged   map[laneTurn]bool        // turns that were judged: they are idle or not
	index    map[queueID]*askedQueue  // for judging them
	short    bool                     // all rows that came were taken though there are more, so that another look may find them
	best     int                      // rows that are asked for of all queues together; 0: of each alone
	beyond   bool                     // there are more
	within   int64                    // the last order key of those that came: all others stand behind it
	saw      []store.QueueLook        // of the queues asked, in their order; nil: others hold no rows
	below    bool                     // rows may stand below where the look began
	dried    []*askedQueue            // queues of which it is not known what comes next
	fields   map[string]*laneField    // of the call that is being served, by lane
	fieldOf  string                   // its filter
	known    int64                    // version of the dictionary that the queues are of
	grown    bool                     // the store had a newer one: there may be work in queues that were not asked (S9)
	survey   []*core.Class            // classes of which nobody knows under which numbers they have rows
	age      uint64                   // of what was known of that
	found    bool                     // queues were found that were not asked
	late     bool                     // lanes and their places are loaded with the other keys of admission, behind the budgets (S73)
	heldBack []*askedQueue            // queues of which rows were passed over that need what others hold
	shut     map[*claim]bool          // calls of which a lane could not be looked at because others hold it
	full     map[string]*core.Refusal // keys that had no room for the first row of a queue
	stands   map[blockedFirst]bool
	blocks   map[int32][]int32 // numbers under which the classes of the survey have rows
	errs     map[*claim]error
	given    map[*claim][]grantedTask
	drain    map[*claim]bool
	over     map[*claim]bool // its request is answered with nothing, now or before (L117)
	now      core.Time
	safe     *safety // of what was given

	call      *claim // that is being served
	committed bool
	aside     map[core.UUID]aside // rows that it passes over because they made others panic
	told      []core.UUID         // those of which it tells in an event

	ring *core.KeyRing // signs grants; nil: no call has asked for one

	refresh bool                     // records of instances are locked, so that they may be written
	looks   map[string]*instanceLook // as this pick found them
	workers map[string]*core.Worker  // the records it saw
	docs    map[string]*store.Doc    // the same as they are stored
	lapsed  map[*claim]bool          // of instances that are live again once their records are written, which needs a lock (S50)

	// Only of a hand-over: what calls of a filter believe of their queues, and the lanes of their classes.
	believed map[string]*beliefs
	noted    map[store.Pick]bool
	lanes    map[int32]string
}

// laneTurn is a fairness key in a lane; "" is the only key of a lane without fairness (S26).
type laneTurn struct{ lane, key string }

// askedQueue is a queue in a pick: what was asked of it and what came back.
type askedQueue struct {
	*classQueue
	turn        laneTurn
	filingsThen uint64
	headThen    int64
	from        int64 // floor when it was asked
	limit       int
	cut         bool             // limit is lower than what is wanted
	size        int              // of the largest input seen
	rows        []store.QueueRow // not yet taken, best first
	bad         []store.QueueRow // those that cannot be read
	got         int              // rows seen
	came        int              // those of them that came
	first       int64            // order key of the first that came
	last        int64            // order key of the last row taken; the floor while none is
	reach       int64            // order key of the last row seen
	skipped     []string         // what others hold that rows of it need which were passed over alone
	passed      string           // the key that has no room for its rows: they stay as they are (S19)
	refused     bool             // rows of it were refused that speak for no other
	users       map[string]bool  // filters of the calls that may take from it
}

type grantedTask struct {
	ent     *entry
	got     core.Acquired
	key     core.GrantKey     // of one that is only promised
	resumed *core.Observation // what it waited for, if that is at hand
}

// plan decides which queues to ask for how many rows.
func (p *picker) plan(calls []*claim) *pick {
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
		p: p, since: p.e.incarnation(), calls: calls, errs: map[*claim]error{}, given: map[*claim][]grantedTask{}, drain: map[*claim]bool{},
		looks: map[string]*instanceLook{}, workers: map[string]*core.Worker{}, docs: map[string]*store.Doc{}, lapsed: map[*claim]bool{},
	}
}

// turnOf is the fairness key under which the lane of a class serves it.
func (p *picker) turnOf(class *core.Class) laneTurn { return p.e.dict.now().turnOf(class) }

func (d *dictionary) turnOf(class *core.Class) laneTurn {
	turn := laneTurn{lane: class.Lane}
	if lane := d.lanes[class.Lane]; lane != nil && fair(lane) {
		turn.key = core.FairnessKeyOf(lane.Settings.Fairness, class)
	}
	return turn
}

// fill leases the best of the rows to the calls.
func (k *pick) fill(ctx context.Context, u *unit) error {
	k.passHeldRoom(u)
	if err := k.loadRoom(ctx, u); err != nil {
		return err
	}
	k.serveAll(u)
	if k.beyond && len(k.full) > 0 {
		return &store.Fault{Kind: store.Retry, Err: errLookApart}
	}
	for _, tasks := range k.given {
		u.assumeRoom(tasks)
	}
	k.noteCaps(u)
	return nil
}

// grant puts what the calls got into their answers, once it is committed: what is left of their budgets is what all of them have left.
func (k *pick) grant(u *unit) {
	k.safe = &u.safe
	for call, tasks := range k.given {
		for _, t := range tasks {
			task := Task{Execution: t.ent.x, How: t.got.How, ResumedFrom: t.got.ResumedFrom, Resumed: t.resumed, GrantKey: t.key}
			if !call.grants() {
				task.Remaining = u.books.Remaining(t.ent.x)
			}
			call.answer.Tasks = append(call.answer.Tasks, task)
		}
	}
}

func (k *pick) want() store.Want {
	want := store.Want{LockDocs: k.refresh, SkipUnreadable: true, PickBest: k.best}
	dict := k.p.e.dict.now()
	for _, a := range k.asked {
		want.Pick = append(want.Pick, store.Pick{Class: a.class.ID, Block: a.block, Floor: a.from, Limit: a.limit})
		k.late = k.late || dict.limited(a.class)
	}
	for _, class := range k.survey {
		want.Blocks = append(want.Blocks, class.ID)
	}
	if !k.late {
		k.wantLanes(dict, &want)
	}
	for _, call := range k.calls {
		want.Docs = append(want.Docs, workerRef(call.req.InstanceID))
		if call.req.RequestKey != "" {
			want.Docs = append(want.Docs, claimRef(&call.req))
		}
		if call.grants() && !slices.Contains(want.Docs, keySetRef) {
			wantKeys(&want)
		}
	}
	return want
}

// wantLanes adds the lanes of the queues, and their places.
func (k *pick) wantLanes(dict *dictionary, want *store.Want) {
	for _, a := range k.asked {
		if lane := dict.lanes[a.class.Lane]; lane != nil && !slices.Contains(want.ShareLanes, lane.ID) {
			want.ShareLanes = append(want.ShareLanes, lane.ID)
			if lane.Settings.MaxConcurrent > 0 {
				want.Counters = append(want.Counters, laneCounter(lane.Name))
			}
		}
	}
}

// byID are the queues asked, by what names them.
func (k *pick) byID() map[queueID]*askedQueue {
	asked := make(map[queueID]*askedQueue, len(k.asked))
	for _, a := range k.asked {
		asked[a.id()] = a
	}
	return asked
}

// sort hands the rows that came back to their queues, leaving out those whose timers moved them (S17).
func (k *pick) sort(u *unit) {
	k.now, k.grown, k.blocks = u.now, u.dict.version > k.known, u.blocks
	asked := k.byID()
	k.beyond, k.within, k.saw = u.leftOut, math.MinInt64, u.looks
	for _, row := range u.picked {
		k.within = max(k.within, row.Order)
		a := asked[queueID{row.Class, row.Block}]
		a.got++
		if a.came++; a.came == 1 {
			a.first = row.Order
		}
		a.reach = row.Order
		ent := u.entries[row.ID]
		if ent == nil {
			k.setAside(u, a, row)
			continue
		}
		if k.passesAside(u, a, row) {
			continue
		}
		u.at("pick", row.ID)
		a.size = max(a.size, ent.x.Input.Size)
		if _, passed := u.passed[row.ID]; passed { // it cannot be settled now
			a.rows = append(a.rows, row)
			continue
		}
		u.settle(ent)
		if ent.x.Queued() && ent.x.Block() == row.Block {
			a.rows = append(a.rows, row)
		} else {
			k.ended = true
		}
	}
	u.row = core.UUID{}
	for i, a := range k.asked {
		k.passHeld(i, a)
		k.noteDry(a)
	}
}

// learn brings what the picker knows of the queues up to date after a commit. A look that something was filed behind is
// worth nothing. The picker's lock is held.
func (k *pick) learn() {
	k.learnAside()
	k.noteLooks()
	k.learnSizes()
	k.learnFull()
	k.learnSkipped()
	defer k.judgeIdle() // by what is known of all queues at the end, when each has its place again
	defer k.putBack()
	k.moved = len(k.given) > 0
	for i, a := range k.asked {
		a.learnBad()
		a.learnRefused()
		if a.filings != a.filingsThen {
			continue
		}
		maybe, head := a.maybe, a.head
		switch {
		case a.passed != "": // its first row is still there
		case len(a.rows) > 0:
			a.floor, a.head = a.rows[0].Order, a.rows[0].Order
		case k.spent(a):
			a.maybe = false
			a.floor = max(a.floor, a.last)
			k.p.forgetQueue(a.classQueue)
		case k.beyond && a.got < a.limit: // its next row was left out
			a.floor, a.head = max(a.last, k.within), max(a.last, k.within)
		default:
			a.floor, a.head = a.last, a.last
		}
		k.keepBelow(i, a)
		k.moved = k.moved || a.maybe != maybe || a.head != head
	}
	k.lookBelow()
}

// spent tells that the look saw the end of the queue.
func (k *pick) spent(a *askedQueue) bool {
	return a.passed == "" && len(a.rows) == 0 && a.got < a.limit && !k.beyond
}

// sawEnds tells that the look saw the ends of all queues.
func (k *pick) sawEnds() bool {
	return len(k.left) == 0 && !slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return a.passed == "" && !k.spent(a) })
}

// judgeIdle judges the turns whose queues were seen to end. The picker's lock is held.
func (k *pick) judgeIdle() {
	for _, a := range k.asked {
		if k.spent(a) {
			k.idle(a)
		}
	}
}

// idle tells the turns of a lane that a key had nothing more to give (S24): each of its queues was seen to end, or is known to
// be empty.
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

// idleLooks is how many classes of a turn are looked at one by one to judge whether it is idle.
const idleLooks = 64

// turnHasMore reports whether there may be rows under a key that could be taken by somebody who asks for them: with rows that nobody asks for
// the key would save up turns. A key with many classes, as a namespace may be, is judged by the order that filters keep: what that costs does
// not depend on how many classes there are. The lock is held.
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

// again reports whether another look at once may find more: queues were left out, and this look taught something, or rows turned
// out to be none, or fewer were asked for than were wanted, or there are new queues, or rows below where this one began, or an instance
// waits to be brought back.
func (k *pick) again() bool {
	return len(k.left) > 0 && k.moved || k.ended || k.short || k.grown || k.found || k.below || len(k.lapsed) > 0
}

// answers reports whether the call is done: it has work, an error, a drain, or no time left. The picker's lock is held.
func (k *pick) answers(call *claim) bool {
	call.answer.Now = k.now
	call.answer.Drain = k.drain[call]
	if k.errs[call] != nil || len(call.answer.Tasks) > 0 || call.answer.Drain || k.over[call] {
		return true
	}
	left := call.deadline.Sub(k.p.e.cfg.Clock.Now())
	switch {
	case left > 0 || k.p.outwaits(call, k.passedFor(call)):
		return false
	case k.again() && !(k.found && call.looks >= leastLooks && left <= call.req.Wait-longestPick):
		return false
	}
	call.closing = k.p.e.closes(call)
	return !call.closing
}
