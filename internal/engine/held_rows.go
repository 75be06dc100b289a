package engine

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rows that other transactions hold (S73).
//
// A batch that meets a row which another transaction holds is given up after 50 ms, and the store names the row. The commands that need
// it leave the batch, the others are run again at once, and the row is remembered: a later batch that is about to wait for a remembered
// row does not ask the store, it leaves out the commands that need it.
//
// The commands that were left out stand in a line of their row, in the order in which they came to it. A waiter waits for the row of the
// line, in a transaction that has nothing else locked, so that nobody waits for this process meanwhile. Once the row is free it runs the
// line in batches of its own, beside the committers, until the line is empty; then the row is forgotten.
//
// What may happen at the same time, and why no command is lost, done twice or overtaken by another one that needs the same row:
//   - A request is in one place at any time: in the committer's queue, in a batch under way, or in a line. It leaves a batch only when the
//     transaction of that try was or will be rolled back, or when the transaction will be decided without it; it is answered once, by
//     whatever took it out of the last place. All moves between lines are made under mu.
//   - A line is removed only under mu while it is empty, and a command joins a line under mu only while the line is there. A command that
//     comes too late for it meets the row again, in its batch, and begins a new line.
//   - The row stays remembered while the waiter runs the commands of its line. Those that come meanwhile stand behind them; those that
//     meet the row again, because another process was faster, go back to the front. Commands of a batch in flight when the row became
//     known may commit before those of the line: neither caller had an answer yet, so either order is one that they could have seen.
//   - A command that needs two rows that are held stands in one line, then in the other. It has nothing locked in either, so that two such
//     commands do not wait for each other.
//
// All is bounded: the waiters, and with them the connections that wait, the commands in lines, and how long a command stands there. That
// bound counts turns, not the clock alone: where many rows are contended a line waits long for its turn, and a row that was found held at
// one short look is none that its holder keeps. The turns of a line get longer, so that it comes to wait in the database's own queue for
// the row, which is fair to all processes.

const (
	mostWaiters  = 4                     // that wait at a time, and no more than a quarter of the connections
	longestTurn  = time.Second           // of a waiter at a row that stays held
	shortestTurn = 20 * time.Millisecond // when many rows are held
	heldOnce     = time.Second           // how long a submit waits for its key (L82)
	heldLong     = 8 * time.Second       // how long other commands wait
	patientTries = 8                     // in vain, before a command that has waited that long is given up
)

// heldRows are the rows that this process has found to be held by others, with the commands that need them.
type heldRows struct {
	e     *Engine
	limit int // commands in lines
	most  int // waiters

	known atomic.Int32 // lines. Most of the time there are none, and no batch looks any further

	mu      sync.Mutex
	lines   map[store.Lock]*heldLine
	ready   []*heldLine // in order of their turns
	count   int         // commands in lines
	waiters int
}

// heldLine is the line of a row.
type heldLine struct {
	lock  store.Lock // zero: nobody knows which row it is
	queue []*request
	since time.Duration // by the meter's clock
	met   bool          // the row was free, and held again when its commands ran
	vain  int           // turns at which the row was held, one after the other
}

func newHeldRows(e *Engine) *heldRows {
	return &heldRows{
		e: e, limit: max(1, e.cfg.QueueLimit/4), most: max(1, min(mostWaiters, e.store.Info().Pool/4)), lines: map[store.Lock]*heldLine{},
	}
}

var (
	errRemembered = errors.New("another transaction holds a row")
	errSetApart   = errors.New("commands were set apart") // the rest of the batch can be tried at once
)

// among lists those of the rows that are remembered, but for the one of the line that is being run.
func (h *heldRows) among(locks []store.Lock, own *heldLine) (held []store.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lock := range locks {
		if line := h.lines[lock]; line != nil && line != own {
			held = append(held, lock)
		}
	}
	return held
}

// depth is how many commands stand in lines.
func (h *heldRows) depth() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// leaveOut takes commands out of a batch that name a remembered row themselves.
func (h *heldRows) leaveOut(batch []*request, own *heldLine) []*request {
	if h.known.Load() == 0 {
		return batch
	}
	var free []*request
	for _, r := range batch {
		var want store.Want
		r.want(&want, true)
		want.LockDocs = true
		if held := h.among(want.Locks(), own); len(held) > 0 {
			h.add(held[0], own, r)
		} else {
			free = append(free, r)
		}
	}
	return free
}

// part takes the commands out of a batch that need the rows which kept its transaction waiting. If it finds some the error is
// errSetApart; else it stays what it was.
func (h *heldRows) part(u *unit, batch []*request, err error, own *heldLine) ([]*request, error) {
	held := store.Held(err)
	if len(held) == 0 {
		return batch, err
	}
	var free []*request
	apart := map[store.Lock][]*request{}
	for _, r := range batch {
		if lock, found := h.e.needs(u, r, held); found {
			apart[lock] = append(apart[lock], r)
		} else {
			free = append(free, r)
		}
	}
	for lock, requests := range apart {
		h.add(lock, own, requests...)
	}
	if len(apart) > 0 {
		return free, errSetApart
	}
	h.watchRoom(held) // no command needs them: they are for work that is handed over
	return batch, err
}

// add puts commands into the line of a row, or refuses them when there are too many (S72). Those of the line that is being run go back to
// its front.
func (h *heldRows) add(lock store.Lock, own *heldLine, requests ...*request) {
	h.e.disbelieve(requests) // what is remembered of an execution may be what its holder is changing
	refused, late := h.join(lock, own, requests)
	h.refuse(refused)
	h.giveUp(late)
}

// join puts commands into the line of a row. It returns those for which there is no place, and those that have waited long enough.
func (h *heldRows) join(lock store.Lock, own *heldLine, requests []*request) (refused, late []*request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := h.line(lock)
	var added []*request
	for _, r := range requests {
		switch now := h.e.meter.now(); {
		case r.stays:
			late = append(late, r)
			continue
		case r.apartSince == 0 && h.count+len(added) >= h.limit:
			refused = append(refused, r)
			continue
		case r.apartSince == 0:
			r.apartSince = max(now, 1)
		case h.inVain(r, now):
			late = append(late, r)
			continue
		}
		added = append(added, r)
	}
	h.count += len(added)
	if line == own {
		line.met = true
		line.queue = append(added, line.queue...)
	} else {
		line.queue = append(line.queue, added...)
	}
	return refused, late
}

// watch remembers rows that no command needs.
func (h *heldRows) watch(locks []store.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lock := range locks {
		h.line(lock)
	}
}

// line finds the line of a row or begins it. mu is held.
func (h *heldRows) line(lock store.Lock) *heldLine {
	line := h.lines[lock]
	if line == nil {
		line = &heldLine{lock: lock, since: h.e.meter.now()}
		h.lines[lock] = line
		h.known.Add(1)
		h.turn(line)
	}
	return line
}

// unknown sets a batch apart of which the store cannot tell what it waited for.
func (h *heldRows) unknown(batch []*request) {
	h.e.disbelieve(batch)
	batch, staying := split(batch, func(r *request) bool { return r.stays })
	if h.giveUp(staying); len(batch) == 0 {
		return
	}
	h.refuse(h.joinUnknown(batch))
}

// joinUnknown lets a batch wait in a line of its own, and returns the commands for which there is no place.
func (h *heldRows) joinUnknown(batch []*request) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := len(batch)
	if batch[0].apartSince == 0 {
		room = max(0, min(room, h.limit-h.count))
	}
	taken := batch[:room:room]
	for _, r := range taken {
		if r.apartSince == 0 {
			r.apartSince = max(h.e.meter.now(), 1)
		}
	}
	if len(taken) > 0 {
		h.count += len(taken)
		h.turn(&heldLine{queue: taken, since: h.e.meter.now()})
	}
	return batch[room:]
}

// split separates the requests of which that is true from the others, each in their order.
func split(batch []*request, which func(*request) bool) (others, those []*request) {
	for _, r := range batch {
		if which(r) {
			those = append(those, r)
		} else {
			others = append(others, r)
		}
	}
	return others, those
}

// turn lets a line wait for a waiter, and starts one if there may be another. mu is held.
func (h *heldRows) turn(line *heldLine) {
	h.ready = append(h.ready, line)
	if h.waiters < h.most {
		h.waiters++
		h.e.wg.Go(func() { h.e.keepRunning(inCommand, h.wait) })
	}
}

// wait serves one line after the other until none is left.
func (h *heldRows) wait() {
	for line, turn := h.next(); line != nil; line, turn = h.next() {
		if err := h.e.contain(inCommand, func() { h.waitFor(line, turn) }); err != nil {
			h.abandon(line, err)
		}
	}
}

// next is the line whose turn it is, and how long to wait for its row; nil: none is left, and the waiter ends.
func (h *heldRows) next() (line *heldLine, turn time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ready) == 0 {
		h.waiters--
		return nil, 0
	}
	line, h.ready = h.ready[0], h.ready[1:]
	turn = longestTurn * time.Duration(h.most) / time.Duration(max(h.most, len(h.ready)+h.waiters))
	return line, max(turn, min(longestTurn, shortestTurn<<min(line.vain, patientTries)))
}

// waitFor waits for the row of a line and runs its commands.
func (h *heldRows) waitFor(line *heldLine, turn time.Duration) {
	if line.lock == (store.Lock{}) {
		h.serveUnknown(line)
		return
	}
	if err := h.e.store.Await(h.e.background(), line.lock, turn); err != nil && store.FaultOf(err) == store.Busy {
		h.late(line)
		return
	}
	h.serve(line) // whatever else the store has to say, it says to the commands
}

// abandon answers the commands that are left in a line whose waiter panicked: no other waiter knows of it.
func (h *heldRows) abandon(line *heldLine, err error) {
	h.e.answerAll(h.drop(line), publicFault(err))
}

// drop forgets a line and returns its commands.
func (h *heldRows) drop(line *heldLine) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := line.queue
	line.queue = nil
	h.count -= len(left)
	if h.lines[line.lock] == line {
		h.forget(line)
	}
	return left
}

// late answers the commands of a line that have waited long enough, and lets the others wait for the next turn.
func (h *heldRows) late(line *heldLine) {
	late, over := h.takeLate(line)
	h.giveUp(late)
	h.forgotten(line, over)
}

// takeLate takes the commands out of a line that have waited long enough. A line that is over is forgotten.
func (h *heldRows) takeLate(line *heldLine) (late []*request, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.e.meter.now()
	line.vain++
	line.queue = slices.DeleteFunc(line.queue, func(r *request) bool {
		if !h.inVain(r, now) {
			return false
		}
		late = append(late, r)
		return true
	})
	h.count -= len(late)
	if over = len(line.queue) == 0 && (len(late) > 0 || now-line.since >= heldLong); over {
		h.forget(line)
	} else {
		h.turn(line)
	}
	return late, over
}

// inVain counts a turn of a command that found its row held, and reports whether it was the last one.
func (h *heldRows) inVain(r *request, now time.Duration) bool {
	r.tries++
	waited := now - r.apartSince
	if waitsOnce(r.command) {
		return waited >= heldOnce
	}
	return waited >= heldLong && r.tries >= patientTries
}

// forget removes a line. mu is held.
func (h *heldRows) forget(line *heldLine) {
	delete(h.lines, line.lock)
	h.known.Add(-1)
}

// forgotten lets claims look again at what needs the row of a line.
func (h *heldRows) forgotten(line *heldLine, over bool) {
	if over {
		h.e.picker.free(line.lock)
	}
}

// serve runs the commands of a line whose row was free a moment ago, until there are none or the row is held again.
func (h *heldRows) serve(line *heldLine) {
	patient := line.met
	line.met, line.vain = false, 0
	for {
		batch := h.take(line)
		if len(batch) == 0 {
			return
		}
		h.e.answering(batch, func() { h.e.processAs(batch, batchMode{line: line, patient: patient}) })
		if h.metAgain(line) {
			return
		}
	}
}

// metAgain reports whether the row of a line was held again when its commands ran; they then wait for another turn.
func (h *heldRows) metAgain(line *heldLine) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line.met {
		h.turn(line)
	}
	return line.met
}

// take takes the next batch out of a line, and forgets a line that has none.
func (h *heldRows) take(line *heldLine) []*request {
	batch := h.takeBatch(line)
	h.forgotten(line, len(batch) == 0)
	return batch
}

func (h *heldRows) takeBatch(line *heldLine) []*request {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(line.queue), h.e.cfg.BatchLimit)
	batch := slices.Clone(line.queue[:n])
	line.queue = line.queue[n:]
	h.count -= n
	if n == 0 {
		h.forget(line)
	}
	return batch
}

// serveUnknown runs a batch of which nobody knows what it waited for: by halves, until the commands that wait are alone, and these with
// patience.
func (h *heldRows) serveUnknown(line *heldLine) {
	batch := h.drop(line)
	h.e.answering(batch, func() { h.e.processUnknown(batch) })
}

func (e *Engine) processUnknown(batch []*request) {
	e.disbelieve(batch)
	e.processAs(batch, batchMode{unknown: true, again: true, patient: len(batch) == 1})
}

// refuse answers commands for which there is no place in a line.
func (h *heldRows) refuse(requests []*request) {
	if len(requests) > 0 {
		h.e.answerAll(requests, core.Errorf(core.CodeOverloaded, "%d commands wait for rows that other transactions hold", h.limit).WithRetryAfter(1000))
	}
}

// giveUp answers commands that have waited long enough.
func (h *heldRows) giveUp(requests []*request) {
	for _, r := range requests {
		h.e.answerAll([]*request{r}, busyFault(r.command, &store.Fault{Kind: store.Busy, Err: errRemembered}))
	}
}

// stillBusy decides what becomes of a batch that met a lock of which nobody knows what it is, and returns what is to be tried again at
// once, if anything.
func (e *Engine) stillBusy(batch []*request, mode *batchMode, err error) (again []*request) {
	switch {
	case !mode.again: // often it is free by now
		mode.again = true
		return batch
	case !mode.unknown:
		e.held.unknown(batch)
	case len(batch) > 1:
		e.processUnknown(batch[:len(batch)/2])
		e.processUnknown(batch[len(batch)/2:])
	default:
		e.tryLater(batch[0], err)
	}
	return nil
}

// tryLater lets a command that is alone wait for its next turn, unless it has waited long enough.
func (e *Engine) tryLater(r *request, err error) {
	r.tries++
	if r.tries >= patientTries || waitsOnce(r.command) {
		e.answerAll([]*request{r}, busyFault(r.command, err))
		return
	}
	e.held.unknown([]*request{r})
}

// outwait is for a store on which transactions take turns: what is held is the store, and all wait for it alike. It returns what is to
// be tried again.
func (e *Engine) outwait(batch []*request, mode *batchMode, err error) (again []*request) {
	e.disbelieve(batch)
	first := !mode.patient
	mode.patient = true
	for _, r := range batch {
		if r.tries++; !first && (waitsOnce(r.command) || r.tries > patientTries) {
			e.answerAll([]*request{r}, busyFault(r.command, err))
			continue
		}
		again = append(again, r)
	}
	return again
}
