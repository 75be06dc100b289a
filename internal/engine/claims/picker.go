package claims

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// picker serves all claims of a process: one transaction (a pick) at a time, for as many calls as wait. It caches what it knows of every queue, so
// that a claim looks only where there may be work, and an idle process does not look at all.
//
// How a claim finds work. A claim waits in waiting. round selects the calls that may find something (runnable), plans which queues to ask (plan:
// the queues that their lanes serve first), and runs one transaction: it locks the best rows of these queues that are free, checks admission under
// locks, leases rows to the calls in order of arrival, and commits. Then it updates what is known of the queues (learn) and answers the calls. A
// call that got nothing waits until there is news: a commit of this process (News), a hint of another one, or the poll.
//
// What keeps the order (S6, S18, S24). The order key of a row is stored in its queue row, so all processes read the same order. A row is taken only
// if no better row can be in a queue that was not asked (bound, left), or behind the rows that were read of a queue that was asked (dry). Two
// processes may pick at the same time: row locks keep them from taking the same row, and each passes over the rows that the other holds. Those rows
// are then either leased or given back; floors.go explains how rows that were given back are found. Lanes are locked for sharing, so that a rule
// that changes is seen by all later picks (awaitClaims).
//
// What the cache may claim: that a queue is empty, that it has no row below its floor or head, or that a key has no room for it. Such an entry may
// be wrong in one direction without harm: a queue that is thought to have rows is asked in vain. The other direction, work that is not found, is
// limited to two polls (floors.go). Every change by this process corrects the cache in publish.
//
// mu protects everything behind it. turning protects the turns of fairness keys; it is taken after mu, or alone, and never before mu.
type picker struct {
	e    *Claims
	kick chan struct{}
	held int // picks in a row during which submits were kept back

	turning sync.Mutex // held while calls are served
	turns   core.Turns
	lastFor string // lane served last (S18)

	mu       sync.Mutex
	closed   bool
	waiting  []*claim // in order of arrival
	queues   map[queueID]*classQueue
	full     map[string]map[*classQueue]bool // queues that are passed over, by the admission key that has no room for them
	lapses   lapses                          // when such keys have room again by themselves
	skipped  map[string]map[*classQueue]bool // queues of which single rows were passed over, by the row that others hold (heldKey)
	freed    map[string]bool                 // keys that got room since the pick under way began; "*": all
	armed    sync.Map                        // rates for which a timer is armed, with its time
	apart    bool                            // some rows have no room, or others hold them: each queue is asked for all that is wanted, and not all together
	repeated bool                            // the last look was given up for what its survey found (overtakes)
	surveys  uint64                          // how often executions may have been blocked by other processes
	matched  map[string]*matchedQueues       // by claim.filter
	taking   map[*pick]bool                  // picks under way that have taken queues out of the order of matched
	news     queueNews                       // news that not all of matched have read
	polls    uint64                          // number of polls that have asked about queues
	keyed    map[string]*keyedClasses        // by lane
	era      int64                           // era of the dictionary that matched and keyed were built from
	looks    map[string]*workerLiveness      // by instance; an instance that is missing must be looked at
	pause    time.Time                       // after a failure of the store: no pick before this time
	run      lookRun                         // looks that follow each other without a pause
	aside    map[base.UUID]*aside            // rows that made picks panic
	alone    int                             // number of rounds that serve one call each, because one of the calls makes picks panic
}

// workerLiveness says when the record of an instance must be read again, so that its claims keep it alive (S50). Between the two times a waiting
// claim waits for others to become due, so that one transaction serves many.
type workerLiveness struct {
	from  time.Time  // before this a look has nothing to write
	until time.Time  // no waiting claim waits longer without a look
	doc   *store.Doc // the record as it was then; nil if no claim may be served

	worker *core.Worker // the same, decoded
}

// queueID identifies a queue: the executions of a class that are filed under one block number (core.Execution.Block).
type queueID struct{ class, block int32 }

// classQueue is what the picker knows of one queue. Where limits are per user there is one for each user, so each word of it costs megabytes.
type classQueue struct {
	class    *core.Class
	block    int32
	maybe    bool                // there may be rows
	surveyed bool                // only in the queue for ready executions: all other queues of the class that have rows are known
	filings  uint64              // how often something may have been filed; a look is out of date if it has changed
	floor    int64               // no row below it is worth looking at (floors.go)
	head     int64               // no row below it is known; math.MinInt64 if nothing is known
	largest  int32               // size of the largest input seen recently; 0: not known
	expected int32               // rows that the next look may take, according to the last one
	more     int32               // rows to ask for beyond those that are wanted: everything that the last look saw was refused
	held     int32               // looks in a row whose first row was at the floor and was not taken
	bad      map[base.UUID]int64 // rows whose executions cannot be read, with their order keys
	asked    uint64              // number of the last poll that asked about it, or before which nothing was known of it
	full     string              // the admission key that had no room for its first row; "": it has room as far as this process knows (S19)
	behind   []*classQueue       // only in the queue for ready executions: the other queues of the class that may have rows
}

// takes reports whether a look may find a row that can be taken.
func (q *classQueue) takes() bool { return q.maybe && q.full == "" }

func (q *classQueue) id() queueID { return queueID{q.class.ID, q.block} }

func (q *classQueue) compare(other *classQueue) int {
	return cmp.Or(cmp.Compare(q.class.ID, other.class.ID), cmp.Compare(q.block, other.block))
}

func newPicker(e *Claims) *picker {
	return &picker{
		e: e, kick: make(chan struct{}, 1),
		queues: map[queueID]*classQueue{}, full: map[string]map[*classQueue]bool{}, freed: map[string]bool{}, matched: map[string]*matchedQueues{}, keyed: map[string]*keyedClasses{}, looks: map[string]*workerLiveness{},
	}
}

// add adds a call to those that wait for work.
func (p *picker) add(call *claim) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return txn.ErrShuttingDown()
	case len(p.waiting) >= p.e.Cfg.MaxWaitingClaims:
		return base.Errorf(base.CodeOverloaded, "%d claims wait already", p.e.Cfg.MaxWaitingClaims).WithRetryAfter(1000)
	}
	p.use(call)
	p.waiting = append(p.waiting, call)
	p.wake()
	return nil
}

// abandon removes a call whose caller has given up. It reports whether the call was still waiting; a call that is being served is answered by its
// transaction.
func (p *picker) abandon(call *claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// serving is set and cleared under mu. Either the call is removed here and gets nothing, or the transaction that serves it answers it: its
	// caller waits for that answer, because it may have leases by now.
	call.gone = true
	if call.serving {
		return false
	}
	at := slices.Index(p.waiting, call)
	if at < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, at, at+1)
	return true
}

func (p *picker) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// queue returns the queue for ready executions of a class.
func (p *picker) queue(class *core.Class) *classQueue { return p.queueOf(class, 0) }

func (p *picker) queueOf(class *core.Class, block int32) *classQueue {
	id := queueID{class.ID, block}
	q := p.queues[id]
	if q == nil {
		q = &classQueue{class: class, block: block, maybe: true, floor: math.MinInt64, head: math.MinInt64, asked: p.polls}
		p.queues[id] = q
		p.announce(q)
		if block != 0 {
			first := p.queue(class)
			first.behind = append(first.behind, q)
		}
	}
	return q
}

// forgetQueue forgets an empty queue of executions that are blocked on a key: there may be as many as there are budgets. A commit or hint that
// blocks another execution there creates it again. The lock is held.
func (p *picker) forgetQueue(q *classQueue) {
	if !core.KeyBlock(q.block) {
		return
	}
	delete(p.queues, q.id())
	first := p.queue(q.class)
	if first.surveyed && p.e.Store.Info().Shared { // another process may have held its rows during the look
		first.surveyed = false
		p.announce(first)
	}
	first.behind = slices.DeleteFunc(first.behind, func(other *classQueue) bool { return other == q })
	p.notFull(q)
}

// each calls f for all queues that a call may take from. The lock is held.
func (p *picker) each(call *claim, f func(*classQueue)) {
	for _, q := range p.queuesOf(call) {
		f(q)
		for _, other := range q.behind {
			f(other)
		}
	}
}

// run serves claims until stop is closed.
func (p *picker) Run(stop <-chan struct{}) {
	for {
		timer := p.e.Cfg.Clock.NewTimerAt(p.idleUntil())
		select {
		case <-p.kick:
		case <-timer.C:
		case <-stop:
			timer.Stop()
			p.close()
			return
		}
		timer.Stop()
		p.beginRun()
		if p.e.Store.Info().Shared {
			for !p.e.Stopping() && p.round() {
			}
			p.releaseSubmits()
		} else {
			for !p.e.Stopping() && p.e.BetweenCommits(p.round) {
			}
		}
	}
}

// beginRun begins a run of looks (pick_again.go).
func (p *picker) beginRun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.begin()
}

func (p *picker) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeWaiting()
}

// closeWaiting answers the waiting calls. A call that a transaction under way serves gets its answer from that. The lock is held.
func (p *picker) closeWaiting() {
	for _, call := range slices.Clone(p.waiting) {
		if !call.serving {
			p.finish(call, txn.ErrShuttingDown())
		}
	}
}

// idleUntil returns until when the picker may sleep: until the deadline of the first call, until an instance must be kept alive, until a key has
// room again, until looks that learned nothing are repeated, or until the pause after a failure is over.
func (p *picker) idleUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.e.Cfg.Clock.Now()
	idle := now.Add(time.Hour)
	for _, call := range p.waiting {
		if call.serving {
			continue // the picker is woken when its transaction ends
		}
		idle = txn.Sooner(idle, call.deadline)
		switch look := p.lookOf(call); {
		case !call.looked: // it looks as soon as that keeps its instance alive
			idle = txn.Sooner(idle, look.from)
		case !call.bystander:
			idle = txn.Sooner(idle, look.until)
		}
	}
	if key, at := p.lapses.first(); key != "" && len(p.waiting) > 0 {
		idle = txn.Sooner(idle, at)
	}
	for _, s := range p.aside {
		if !s.tried && len(p.waiting) > 0 {
			idle = txn.Sooner(idle, s.until)
		}
	}
	if !p.run.rest.IsZero() && len(p.waiting) > 0 {
		idle = txn.Sooner(idle, p.run.rest)
	}
	if p.pause.After(now) {
		return p.pause
	}
	return idle
}

// round answers the calls whose deadline has passed and runs one transaction for those that may find work. It reports whether another round at once
// may help.
func (p *picker) round() (again bool) {
	var calls []*claim
	err := p.e.Guard(txn.InClaim, func() {
		if calls = p.runnable(); len(calls) > 0 {
			again = p.serve(calls)
		}
	})
	if err != nil {
		p.giveUp(calls)
		p.releaseSubmits()
	}
	return again
}

// serve runs one transaction for calls. It reports whether another at once may help.
func (p *picker) serve(calls []*claim) bool {
	// From the plan on, new work that these calls may take waits in the committer. Committed during the pick it would be queued behind it and need
	// the next one; committed after it, it is handed over to the calls that got nothing (handover.go). Submits wait for at most longestHold picks
	// in a row.
	pick := p.planFor(calls)
	if len(pick.asked) <= assumeAtMost && p.e.Store.Info().Shared {
		p.e.HoldSubmits(func(class *core.Class) bool { return wantedBy(calls, class) })
	}
	err := pick.run()
	if p.held++; err != nil || p.held == longestHold || !pick.sawEnds() {
		defer p.releaseSubmits()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		return p.failed(pick, err)
	}
	answered := false
	// The leases are committed. If a panic interrupts what follows, the calls that were not answered may have leases, so they must not be served as
	// new ones: they get the error that the outcome is unknown, and a repeat under their key gets the same leases. What the cache learned may be half of
	// it, so it is dropped.
	if lost := p.e.Guard(txn.InClaim, func() { answered = p.concludeAll(pick) }); lost != nil {
		for _, call := range calls {
			if call.serving = false; slices.Contains(p.waiting, call) {
				p.finish(call, txn.UnknownOutcome(lost))
			}
		}
		p.sortAnew()
		p.resetQueues()
	}
	return pick.looksAgain() || answered
}

// concludeAll learns from a committed pick and answers its calls. The lock is held.
func (p *picker) concludeAll(pick *pick) (answered bool) {
	pick.learn()
	pick.learnVain()
	for _, call := range pick.calls {
		call.lookedFor()
		answered = p.conclude(pick, call) || answered
	}
	return answered
}

// releaseSubmits lets the submits be committed that waited for picks.
func (p *picker) releaseSubmits() {
	p.held = 0
	p.e.ReleaseSubmits()
}

// conclude answers a call that a committed pick has served, unless it keeps waiting. The lock is held.
func (p *picker) conclude(pick *pick, call *claim) (answered bool) {
	switch {
	case pick.answers(call):
		p.finishWhen(pick.safe, call, pick.errs[call])
		return true
	case call.gone:
		p.finish(call, base.Errorf(base.CodeTimeout, "the caller gave up"))
	case p.closed:
		p.finish(call, txn.ErrShuttingDown())
	}
	return false
}

// finish removes a call from the waiting ones and answers it. The lock is held.
func (p *picker) finish(call *claim, err error) { p.finishWhen(nil, call, err) }

// finishWhen removes a call from the waiting ones and answers it when what it got is durable. The lock is held.
func (p *picker) finishWhen(safe *txn.Safety, call *claim, err error) {
	p.waiting = slices.DeleteFunc(p.waiting, func(other *claim) bool { return other == call })
	safe.Then(func(lost error) {
		if lost != nil {
			call.finish(txn.PublicFault(lost))
			return
		}
		call.finish(err)
	})
	if err == nil && len(call.answer.Tasks) == 0 && call.req.RequestKey != "" {
		p.finishRepeats(call)
	}
}

// finishRepeats answers the other waiting calls of the same request, after one of them was answered with nothing (L117): the client uses another
// key from now on, and would not learn of work given to an older call whose connection broke. The lock is held.
func (p *picker) finishRepeats(call *claim) {
	p.waiting = slices.DeleteFunc(p.waiting, func(other *claim) bool {
		if other.request() != call.request() {
			return false
		}
		if p.e.closes(other) { // its empty answer must be recorded first
			other.deadline = p.e.Cfg.Clock.Now()
			return false
		}
		if other.gone = true; other.serving {
			return false
		}
		other.answer = call.answer
		other.finish(nil)
		return true
	})
}

// failed handles a transaction that the store refused: calls that do not wait get the error, the others are tried again later.
func (p *picker) failed(pick *pick, err error) bool {
	kind := store.FaultOf(err)
	if p.apart = p.apart || errors.Is(err, errLookApart); !errors.Is(err, errLookApart) {
		p.forgetSlots(pick)
	}
	if p.repeated = errors.Is(err, errLookBlocked); p.repeated {
		pick.learnBlocks()
	}
	pick.putBack()
	for _, call := range pick.calls {
		call.serving, call.check = false, true
		if call.gone {
			p.finish(call, base.Errorf(base.CodeTimeout, "the caller gave up"))
		}
	}
	// The calls are free for the next pick. Nothing was written, so nothing that was learned in this one is kept.
	p.Held(store.Held(err)) // the next pick leaves out work that needs them
	if fault := txn.PanicOf(err); fault != nil && kind != store.Unknown {
		return p.blame(pick, fault)
	}
	if kind == store.Busy {
		p.endPatience(pick, err)
	}
	if kind == store.Retry || kind == store.Busy || kind == store.Stale || kind == store.Conflict {
		return true
	}
	pick.forgetSizes()
	now := p.e.Cfg.Clock.Now()
	p.pause = now.Add(500 * time.Millisecond)
	for _, call := range pick.calls {
		if call.gone {
			continue
		}
		if kind == store.Unknown || call.req.Wait == 0 || !call.deadline.After(now) {
			p.finish(call, txn.PublicFault(err))
		}
	}
	return false
}

// runnable returns the calls for which a look at the store may find something, marked as being served, and answers those whose time is over.
func (p *picker) runnable() []*claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.e.Cfg.Clock.Now()
	if p.pause.After(now) {
		return nil
	}
	var calls []*claim
	chosen := false
	defer func() {
		if !chosen { // also if it panics
			p.unserved(calls, nil)
		}
	}()
	p.lapseFull(now)
	p.tryAside(now)
	late, served := p.overdue(now), p.servedNow()
	for _, call := range slices.Clone(p.waiting) {
		switch {
		case call.gone: // answered in this loop, together with another call of its request
		case call.serving || served[call.request()]: // by a commit that hands it work
		case p.mayFind(call, now) || late[call] || p.looksOnceMore(call, now) || (call.mayRepeat() || p.e.closes(call)) && !call.deadline.After(now):
			if p.alone > 0 && len(calls) > 0 {
				continue
			}
			// serving keeps every other transaction from serving the call. check is cleared before the queues are read: news that come during the
			// pick set it again, so the call looks once more instead of missing them.
			call.serving, call.check = true, false // any change from now on sets check again
			calls = append(calls, call)
		case !call.deadline.After(now) && !p.outwaits(call, false):
			call.answer.Now = base.TimeOf(now)
			p.finish(call, nil)
		}
	}
	chosen, p.alone = true, max(p.alone-1, 0)
	return calls
}

// mayFind reports whether a look at the store for the call may find something. For a call that does not wait, the cache is not enough: other
// processes change lanes, classes and queues too (SI16). A call that waits is woken by them.
func (p *picker) mayFind(call *claim, now time.Time) bool {
	shared := p.e.Store.Info().Shared && !call.looked && call.req.Wait == 0
	look := p.lookOf(call)
	found := shared || call.check || !call.looked && (!now.Before(look.from) || look.strangeTo(call))
	if shared {
		p.each(call, func(q *classQueue) {
			if !q.maybe {
				p.reset(q)
			}
			if q.full != "" {
				p.roomy(q.full)
			}
			p.doubtReady(q)
		})
	}
	for name, lane := range p.matchedBy(call).lanes {
		found = found || p.openLane(name) && (lane.any() || lane.anyUnsurveyed())
	}
	return found
}

// open reports whether the queue's lane allows picks, as far as this process knows (S3).
func (p *picker) open(q *classQueue) bool { return p.openLane(q.class.Lane) }

func (p *picker) openLane(name string) bool {
	lane := p.e.Dict.Now().Lanes[name]
	return lane != nil && lane.Settings.State.Claimable() && !lane.Counting && !p.heldLane(lane)
}

// unknownRequests returns the calls that may repeat one that was answered before, and the records to read to find out (L117). The poll reads them,
// so that a call that waits for work needs no transaction for it.
func (p *picker) unknownRequests() (calls []*claim, refs []store.DocRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range p.waiting {
		if call.mayRepeat() {
			calls, refs = append(calls, call), append(refs, claimRef(&call.req))
		}
	}
	return calls, refs
}

// knownRequests takes the result of that poll: calls that were answered before are served at once.
func (p *picker) knownRequests(calls []*claim, answered []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, call := range calls {
		call.asked = true
		call.check = call.check || answered[i]
	}
	if slices.Contains(answered, true) {
		p.wake()
	}
}
