package engine

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// believeAtMost bounds how many classes a claim may take from that is handed work: each is checked when that is written.
	believeAtMost = 256

	askAll     = 16  // so few queues are simply all asked
	askAtMost  = 256 // queues asked in one transaction
	peekAtMost = 4096
	// longestPick is how long a call that does not wait is served while there may be more to see (S19).
	longestPick = 250 * time.Millisecond
)

// pick is one transaction of the picker.
type pick struct {
	p      *picker
	calls  []*claim
	asked  []*askedQueue
	left   map[string][]*askedQueue // by lane: queues that were not asked, in the order in which the lane serves them
	bound  map[laneTurn]int64       // order keys above it may belong behind rows of queues that were not asked
	moved  bool                     // the look told something new, so that another may tell more
	ended  bool                     // timers took rows out of the queues: what stands behind them was not seen (S17)
	judged map[laneTurn]bool        // turns of which it is known whether they are idle
	index  map[queueID]*askedQueue  // for judging them
	short  bool                     // all rows that came were taken though there are more, so that another look may find them
	best   int                      // rows that are asked for of all queues together; 0: of each alone
	beyond bool                     // there are more
	within int64                    // the last order key of those that came: all others stand behind it
	dried  []*askedQueue            // queues of which it is not known what comes next
	fields map[string]*laneField    // of the call that is being served, by lane
	known  int64                    // version of the dictionary that the queues are of
	grown  bool                     // the store had a newer one: there may be work in queues that were not asked (S9)
	survey []*core.Class            // classes of which nobody knows under which numbers they have rows
	age    uint64                   // of what was known of that
	found  bool                     // queues were found that were not asked
	late   bool                     // lanes and their places are loaded with the other keys of admission, behind the budgets (S73)
	full   map[string]*core.Refusal // keys that had no room for the first row of a queue
	stands map[blockedFirst]bool
	blocks map[int32][]int32 // numbers under which the classes of the survey have rows
	errs   map[*claim]error
	given  map[*claim][]grantedTask
	drain  map[*claim]bool
	now    core.Time
	safe   *safety       // of what was given
	ring   *core.KeyRing // signs grants; nil: no call has asked for one

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
	place       int // of the turn in its lane, when there are many
	filingsThen uint64
	from        int64 // floor when it was asked
	limit       int
	cut         bool             // limit is lower than what is wanted
	size        int              // of the largest input seen
	rows        []store.QueueRow // not yet taken, best first
	bad         []store.QueueRow // those that cannot be read
	got         int
	last        int64  // order key of the last row taken; the floor while none is
	reach       int64  // order key of the last row seen
	passed      string // the key that has no room for its rows: they stay as they are (S19)
	refused     bool   // rows of it were refused that speak for no other
	users       map[*claim]bool
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
	if len(k.asked) > askAll {
		k.peek()
		k.choose()
	}
	k.cutToShares()
	k.askTogether()
	return k
}

func (p *picker) newPick(calls []*claim) *pick {
	return &pick{
		p: p, calls: calls, errs: map[*claim]error{}, given: map[*claim][]grantedTask{}, drain: map[*claim]bool{},
		looks: map[string]*instanceLook{}, workers: map[string]*core.Worker{}, docs: map[string]*store.Doc{}, lapsed: map[*claim]bool{},
	}
}

// gather lists the queues that the calls may take from.
func (k *pick) gather() {
	p := k.p
	p.mu.Lock()
	defer p.mu.Unlock()
	k.expect(p.e.cfg.Clock.Now())
	k.known = p.e.dict.now().version
	k.age = p.surveys
	clear(p.freed)
	byQueue, surveyed := map[*classQueue]*askedQueue{}, map[*classQueue]bool{}
	for _, call := range k.calls {
		p.each(call, func(q *classQueue) {
			if q.block == 0 && !q.surveyed && !surveyed[q] {
				surveyed[q] = true
				k.survey = append(k.survey, q.class)
			}
			if !q.takes() || !p.open(q) {
				return
			}
			a := byQueue[q]
			if a == nil {
				a = &askedQueue{classQueue: q, turn: p.turnOf(q.class), filingsThen: q.filings, from: q.floor, last: q.floor, users: map[*claim]bool{}}
				byQueue[q] = a
				k.asked = append(k.asked, a)
			}
			a.users[call] = true
			a.limit = min(a.limit+call.req.Max, maxClaimTasks)
		})
	}
	k.cutToSize()
	for _, a := range k.asked {
		a.limit = min(a.limit+a.more, max(a.limit, maxClaimTasks)) + a.knownBad() // so that they keep no other row out
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

// choose keeps, when there are many queues, those that their lanes serve first, the same number of every lane, and remembers
// how far their rows may be trusted.
func (k *pick) choose() {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	k.asked = slices.DeleteFunc(k.asked, func(a *askedQueue) bool { return !a.maybe })
	if len(k.asked) <= askAtMost {
		return
	}
	k.left, k.bound = k.inOrder(), map[laneTurn]int64{}
	k.asked = k.asked[:0:0]
	lanes := slices.Sorted(maps.Keys(k.left))
	for len(k.asked) < askAtMost {
		for _, lane := range lanes {
			if queues := k.left[lane]; len(queues) > 0 && len(k.asked) < askAtMost {
				k.asked, k.left[lane] = append(k.asked, queues[0]), queues[1:]
			}
		}
	}
	for _, queues := range k.left {
		for _, left := range queues {
			if bound, ok := k.bound[left.turn]; !ok || left.head < bound {
				k.bound[left.turn] = left.head
			}
		}
	}
}

// inOrder sorts the queues of every lane: by the turn of their key, then by their heads (S18, S24).
func (k *pick) inOrder() map[string][]*askedQueue {
	lanes, keys := map[string][]*askedQueue{}, map[string][]string{}
	places := map[laneTurn]int{}
	for _, a := range k.asked {
		lanes[a.turn.lane] = append(lanes[a.turn.lane], a)
		if _, known := places[a.turn]; !known && a.turn.key != "" {
			places[a.turn] = 0
			keys[a.turn.lane] = append(keys[a.turn.lane], a.turn.key)
		}
	}
	k.p.turning.Lock()
	defer k.p.turning.Unlock()
	for lane, keys := range keys {
		round := k.p.turns.Round(lane, keys, weightsOf(k.p.e.dict.now().lanes[lane]))
		for place := range keys {
			key, _ := round.Next()
			places[laneTurn{lane, key}] = place
			round.Drop()
		}
	}
	for _, queues := range lanes {
		for _, a := range queues {
			a.place = places[a.turn]
		}
		slices.SortFunc(queues, func(a, b *askedQueue) int {
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.head, b.head), cmp.Compare(a.class.ID, b.class.ID))
		})
	}
	return lanes
}

// peek learns the heads of queues of which nothing is known, in one read without locks. Nobody waits for it: what is filed
// meanwhile counts more than what it saw.
func (k *pick) peek() {
	unknown := k.unknown()
	if len(unknown) <= askAll {
		return
	}
	want := store.Want{Pick: make([]store.Pick, len(unknown))}
	for i, a := range unknown {
		want.Pick[i] = store.Pick{Class: a.class.ID, Block: a.block, Floor: a.from, Limit: 1}
	}
	ctx, cancel := context.WithTimeout(k.p.e.background(), storeTimeout)
	defer cancel()
	loaded, err := k.p.e.store.Read(ctx, want)
	if err != nil {
		return // the transaction itself will meet the failure
	}
	heads := map[queueID]int64{}
	for _, row := range loaded.Picked {
		heads[queueID{row.Class, row.Block}] = row.Order
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	for _, a := range unknown {
		if a.filings == a.filingsThen {
			a.head, a.maybe = heads[a.id()]
		}
	}
}

// unknown lists queues whose heads nobody knows.
func (k *pick) unknown() []*askedQueue {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	var unknown []*askedQueue
	for _, a := range k.asked {
		if a.head == math.MinInt64 && len(unknown) < peekAtMost {
			unknown = append(unknown, a)
		}
	}
	return unknown
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
	k.sort(u)
	if err := k.fill(ctx, u); err != nil {
		return err
	}
	u.servesClaims(k.calls)
	if err := u.commit(ctx, []string{"claim"}); err != nil {
		return err
	}
	k.grant(u)
	return nil
}

// fill leases the best of the rows to the calls.
func (k *pick) fill(ctx context.Context, u *unit) error {
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
	k.beyond, k.within = u.leftOut, math.MinInt64
	for _, row := range u.picked {
		k.within = max(k.within, row.Order)
		a := asked[queueID{row.Class, row.Block}]
		a.got++
		a.reach = row.Order
		ent := u.entries[row.ID]
		if ent == nil {
			k.setAside(u, a, row)
			continue
		}
		a.size = max(a.size, ent.x.Input.Size)
		u.settle(ent)
		if ent.x.Queued() && ent.x.Block() == row.Block {
			a.rows = append(a.rows, row)
		} else {
			k.ended = true
		}
	}
	for _, a := range k.asked {
		k.noteDry(a)
	}
}

// learn brings what the picker knows of the queues up to date after a commit. A look that something was filed behind is
// worth nothing. The picker's lock is held.
func (k *pick) learn() {
	k.noteLooks()
	k.learnSizes()
	k.learnFull()
	k.moved = len(k.given) > 0
	for _, a := range k.asked {
		a.learnBad()
		a.learnRefused()
		if k.spent(a) {
			k.idle(a)
		}
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
		k.moved = k.moved || a.maybe != maybe || a.head != head
	}
}

// spent tells that the look saw the end of the queue.
func (k *pick) spent(a *askedQueue) bool {
	return a.passed == "" && len(a.rows) == 0 && a.got < a.limit && !k.beyond
}

// sawEnds tells that the look saw the ends of all queues.
func (k *pick) sawEnds() bool {
	return k.left == nil && !slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return a.passed == "" && !k.spent(a) })
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
	for _, class := range k.p.classesOf(empty.turn) {
		first := k.p.queue(class)
		if k.hasMore(first) || slices.ContainsFunc(first.behind, k.hasMore) {
			return
		}
	}
	k.p.turning.Lock()
	defer k.p.turning.Unlock()
	k.p.turns.Idle(empty.turn.lane, empty.turn.key)
}

// hasMore tells whether there may be rows in the queue that could be taken.
func (k *pick) hasMore(q *classQueue) bool {
	if a := k.index[q.id()]; a != nil {
		return a.passed == "" && !k.spent(a)
	}
	return q.takes()
}

// again tells whether another look at once may find more: queues were left out, and this look taught something, or rows turned
// out to be none, or fewer were asked for than were wanted, or there are new queues, or an instance waits to be brought back.
func (k *pick) again() bool {
	return k.left != nil && k.moved || k.ended || k.short || k.grown || k.found || len(k.lapsed) > 0
}

// answers tells whether the call is done: it has work, an error, a drain, or no time left. The picker's lock is held.
func (k *pick) answers(call *claim) bool {
	call.answer.Now = k.now
	call.answer.Drain = k.drain[call]
	if k.errs[call] != nil || len(call.answer.Tasks) > 0 || call.answer.Drain {
		return true
	}
	left := call.deadline.Sub(k.p.e.cfg.Clock.Now())
	return left <= 0 && (!k.again() || k.found && left <= call.req.Wait-longestPick)
}
