package txn

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rows that other transactions hold (S73).
//
// A batch that meets a row which another transaction holds is given up after 50 ms, and the store names the row. The commands that need the row
// leave the batch, and the others are run again at once. The row is recorded: a later batch that is about to wait for a recorded row does not ask
// the store, but leaves out the commands that need it.
//
// The commands that were left out form a line for their row, in the order in which they met it. A waiter waits for the row of the line in a
// transaction that has nothing else locked, so that no other transaction waits for this process meanwhile. Once the row is free, the waiter runs
// the line in batches of its own, beside the committers, until the line is empty. Then the row is forgotten.
//
// What can happen at the same time, and why no command is lost, done twice, or overtaken by another command that needs the same row:
//   - A request is in one place at any time: in the committer's queue, in a batch under way, or in a line. It leaves a batch only if the
//     transaction of that try was or will be rolled back, or will be decided without it. It is answered once, by the code that took it out of the
//     last place. All moves between lines are made under mu.
//   - A line is removed only under mu while it is empty, and a command joins a line only under mu while the line exists. A command that comes too
//     late for a line meets the row again, in its batch, and starts a new line.
//   - The row stays recorded while the waiter runs the commands of its line. Commands that come meanwhile are appended to the line; those that meet
//     the row again, because another process was faster, go back to the front. Commands of a batch in flight when the row was recorded may commit
//     before those of the line: neither caller had an answer yet, so both orders are valid.
//   - A command that needs two held rows is in one line, then in the other. It has nothing locked in either, so two such commands do not wait for
//     each other.
//
// Everything is bounded: the number of waiters, and with it the connections that wait, the number of commands in lines, and how long a command
// waits. The last bound counts turns and not only time: where many rows are contended a line waits long for its turn, and a row that one short
// attempt found held is not necessarily held all the time. The turns of a line get longer, so that its waiter comes to wait in the lock queue of
// the database, which is fair to all processes.

// How many wait for rows that are held, and for how long.
const (
	mostWaiters  = 4                     // at a time, and at most a quarter of the connections
	longestTurn  = time.Second           // a waiter waits for a row that stays held
	shortestTurn = 20 * time.Millisecond // if many rows are held
	HeldOnce     = time.Second           // how long a submit waits for its key (L82)
	heldLong     = 8 * time.Second       // how long other commands wait
	patientTries = 8                     // turns in vain before a command that has waited for heldLong is given up
)

// heldRows are the rows that this process has found held by other transactions, with the commands that need them.
type heldRows struct {
	e     *Engine
	limit int // commands in lines
	most  int // waiters

	Known atomic.Int32 // number of lines. It is usually 0, and then no batch takes mu

	mu      sync.Mutex
	lines   map[store.Lock]*heldLine
	ready   []*heldLine // lines that wait for a waiter, in order of their turns
	count   int         // commands in lines
	waiters int
}

// heldLine is the line of commands that wait for a row.
type heldLine struct {
	lock  store.Lock // zero: the store could not name the row
	queue []*Request
	since time.Duration // by the meter's clock
	met   bool          // the row was free, but held again when the commands ran
	vain  int           // turns in a row at which the row was held
}

func newHeldRows(e *Engine) *heldRows {
	return &heldRows{
		e: e, limit: max(1, e.Cfg.QueueLimit/4), most: max(1, min(mostWaiters, e.Store.Info().Pool/4)), lines: map[store.Lock]*heldLine{},
	}
}

var (
	errRemembered = errors.New("another transaction holds a row")
	errSetApart   = errors.New("commands were set apart") // the rest of the batch can be tried at once
)

// Among returns those of the rows that are recorded, except the row of the line that is being run.
func (h *heldRows) Among(locks []store.Lock, own *heldLine) (held []store.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lock := range locks {
		if line := h.lines[lock]; line != nil && line != own {
			held = append(held, lock)
		}
	}
	return held
}

// Depth returns how many commands are in lines.
func (h *heldRows) Depth() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// leaveOut removes the commands from a batch that name a recorded row themselves, and puts them into its line.
func (h *heldRows) leaveOut(batch []*Request, own *heldLine) []*Request {
	if h.Known.Load() == 0 {
		return batch
	}
	var free []*Request
	for _, r := range batch {
		var want store.Want
		r.Want(&want, true)
		want.LockDocs = true
		if held := h.Among(want.Locks(), own); len(held) > 0 {
			h.add(held[0], own, r)
		} else {
			free = append(free, r)
		}
	}
	return free
}

// part removes the commands from a batch that need the rows which made its transaction wait. If it finds such commands, the error is errSetApart;
// otherwise it is returned unchanged.
func (h *heldRows) part(u *Tx, batch []*Request, err error, own *heldLine) ([]*Request, error) {
	held := store.Held(err)
	if len(held) == 0 {
		return batch, err
	}
	var free []*Request
	apart := map[store.Lock][]*Request{}
	var order []store.Lock
	for _, r := range batch {
		if lock, found := h.e.needs(u, r, held); found {
			if apart[lock] == nil {
				order = append(order, lock)
			}
			apart[lock] = append(apart[lock], r)
		} else {
			free = append(free, r)
		}
	}
	if len(apart) > 0 {
		for _, lock := range order {
			h.add(lock, own, apart[lock]...)
		}
		return free, errSetApart
	}
	h.e.Dispatcher.Held(held) // no command needs them: they were locked for work that is handed over
	return batch, err
}

// add puts commands into the line of a row, or refuses them if there are too many (S72). Commands of the line that is being run go back to its
// front.
func (h *heldRows) add(lock store.Lock, own *heldLine, requests ...*Request) {
	h.e.invalidate(requests) // the holder may be changing what is cached of an execution
	refused, late := h.join(lock, own, requests)
	h.refuse(refused)
	h.giveUp(late)
}

// join puts commands into the line of a row. It returns those for which there is no room, and those that have waited long enough.
func (h *heldRows) join(lock store.Lock, own *heldLine, requests []*Request) (refused, late []*Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := h.line(lock)
	var added []*Request
	for _, r := range requests {
		switch now := h.e.Meter.now(); {
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

// Watch records rows that no command needs.
func (h *heldRows) Watch(locks []store.Lock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, lock := range locks {
		h.line(lock)
	}
}

// line returns the line of a row, and creates it if there is none. mu is held.
func (h *heldRows) line(lock store.Lock) *heldLine {
	line := h.lines[lock]
	if line == nil {
		line = &heldLine{lock: lock, since: h.e.Meter.now()}
		h.lines[lock] = line
		h.Known.Add(1)
		h.turn(line)
	}
	return line
}

// unknown sets a batch apart if the store cannot name the row that it waited for.
func (h *heldRows) unknown(batch []*Request) {
	h.e.invalidate(batch)
	batch, staying := split(batch, func(r *Request) bool { return r.stays })
	if h.giveUp(staying); len(batch) == 0 {
		return
	}
	h.refuse(h.joinUnknown(batch))
}

// joinUnknown puts a batch into a line of its own, and returns the commands for which there is no room.
func (h *heldRows) joinUnknown(batch []*Request) []*Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := len(batch)
	if batch[0].apartSince == 0 {
		room = max(0, min(room, h.limit-h.count))
	}
	taken := batch[:room:room]
	for _, r := range taken {
		if r.apartSince == 0 {
			r.apartSince = max(h.e.Meter.now(), 1)
		}
	}
	if len(taken) > 0 {
		h.count += len(taken)
		h.turn(&heldLine{queue: taken, since: h.e.Meter.now()})
	}
	return batch[room:]
}

// split separates the requests for which which returns true from the others. Both keep their order.
func split(batch []*Request, which func(*Request) bool) (others, those []*Request) {
	for _, r := range batch {
		if which(r) {
			those = append(those, r)
		} else {
			others = append(others, r)
		}
	}
	return others, those
}

// turn lets a line wait for a waiter, and starts a waiter if the bound allows another. mu is held.
func (h *heldRows) turn(line *heldLine) {
	h.ready = append(h.ready, line)
	if h.waiters < h.most {
		h.waiters++
		h.e.wg.Go(func() { h.e.KeepRunning(InCommand, h.wait) })
	}
}

// wait serves one line after the other until none is left.
func (h *heldRows) wait() {
	for line, turn := h.next(); line != nil; line, turn = h.next() {
		if err := h.e.Guard(InCommand, func() { h.waitFor(line, turn) }); err != nil {
			h.abandon(line, err)
		}
	}
}

// next returns the line whose turn it is and how long to wait for its row, or nil if none is left, and then the waiter ends.
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
	if err := h.e.Store.Await(h.e.Background(), line.lock, turn); err != nil && store.FaultOf(err) == store.Busy {
		h.late(line)
		return
	}
	h.serve(line) // any other error of the store is met again by the commands, and is their answer
}

// abandon answers the commands that are left in a line whose waiter panicked: no other waiter would serve it.
func (h *heldRows) abandon(line *heldLine, err error) {
	h.e.answerAll(h.drop(line), PublicFault(err))
}

// drop forgets a line and returns its commands.
func (h *heldRows) drop(line *heldLine) []*Request {
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

// late answers the commands of a line that have waited long enough. The others wait for the next turn.
func (h *heldRows) late(line *heldLine) {
	late, over := h.takeLate(line)
	h.giveUp(late)
	h.forgotten(line, over)
}

// takeLate removes the commands from a line that have waited long enough. An empty line may be forgotten, which over reports.
func (h *heldRows) takeLate(line *heldLine) (late []*Request, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.e.Meter.now()
	line.vain++
	line.queue = slices.DeleteFunc(line.queue, func(r *Request) bool {
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

// inVain counts a turn at which a command found its row held, and reports whether it was the last one.
func (h *heldRows) inVain(r *Request, now time.Duration) bool {
	r.tries++
	waited := now - r.apartSince
	if waitsOnce(r.Command) {
		return waited >= HeldOnce
	}
	return waited >= heldLong && r.tries >= patientTries
}

// forget removes a line. mu is held.
func (h *heldRows) forget(line *heldLine) {
	delete(h.lines, line.lock)
	h.Known.Add(-1)
}

// forgotten makes claims look again at work that needs the row of a line, if the line is over.
func (h *heldRows) forgotten(line *heldLine, over bool) {
	if over {
		h.e.Dispatcher.Freed(line.lock)
	}
}

// serve runs the commands of a line whose row was just free, until there are none left or the row is held again.
func (h *heldRows) serve(line *heldLine) {
	patient := line.met
	line.met, line.vain = false, 0
	for {
		batch := h.take(line)
		if len(batch) == 0 {
			return
		}
		h.e.answering(batch, func() { h.e.processAs(batch, BatchMode{line: line, patient: patient}) })
		if h.metAgain(line) {
			return
		}
	}
}

// metAgain reports whether the row of a line was held again when its commands ran. The line then waits for another turn.
func (h *heldRows) metAgain(line *heldLine) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line.met {
		h.turn(line)
	}
	return line.met
}

// take removes the next batch from a line, and forgets a line that is empty.
func (h *heldRows) take(line *heldLine) []*Request {
	batch := h.takeBatch(line)
	h.forgotten(line, len(batch) == 0)
	return batch
}

func (h *heldRows) takeBatch(line *heldLine) []*Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(line.queue), h.e.Cfg.BatchLimit)
	batch := slices.Clone(line.queue[:n])
	line.queue = line.queue[n:]
	h.count -= n
	if n == 0 {
		h.forget(line)
	}
	return batch
}

// serveUnknown runs a batch for which the store could not name the row: in halves, until the commands that wait are alone. A single command waits
// longer for locks.
func (h *heldRows) serveUnknown(line *heldLine) {
	batch := h.drop(line)
	h.e.answering(batch, func() { h.e.processUnknown(batch) })
}

func (e *Engine) processUnknown(batch []*Request) {
	e.invalidate(batch)
	e.processAs(batch, BatchMode{unknown: true, again: true, patient: len(batch) == 1})
}

// refuse answers commands for which there is no room in a line.
func (h *heldRows) refuse(requests []*Request) {
	if len(requests) > 0 {
		h.e.answerAll(requests, base.Errorf(base.CodeOverloaded, "%d commands wait for rows that other transactions hold", h.limit).WithRetryAfter(1000))
	}
}

// giveUp answers commands that have waited long enough.
func (h *heldRows) giveUp(requests []*Request) {
	for _, r := range requests {
		h.e.answerAll([]*Request{r}, busyFault(r.Command, &store.Fault{Kind: store.Busy, Err: errRemembered}))
	}
}

// stillBusy handles a batch that met a lock which the store could not name. It returns the commands to be tried again at once, if any.
func (e *Engine) stillBusy(batch []*Request, mode *BatchMode, err error) (again []*Request) {
	switch {
	case !mode.again: // often the lock is free by now
		mode.again = true
		return batch
	case !mode.unknown:
		e.Held.unknown(batch)
	case len(batch) > 1:
		e.processUnknown(batch[:len(batch)/2])
		e.processUnknown(batch[len(batch)/2:])
	default:
		e.tryLater(batch[0], err)
	}
	return nil
}

// tryLater lets a single command wait for its next turn, unless it has waited long enough.
func (e *Engine) tryLater(r *Request, err error) {
	r.tries++
	if r.tries >= patientTries || waitsOnce(r.Command) {
		e.answerAll([]*Request{r}, busyFault(r.Command, err))
		return
	}
	e.Held.unknown([]*Request{r})
}

// outwait is for a store on which transactions take turns: the lock is on the whole store, and all commands wait for it alike. It returns the
// commands to be tried again.
func (e *Engine) outwait(batch []*Request, mode *BatchMode, err error) (again []*Request) {
	e.invalidate(batch)
	first := !mode.patient
	mode.patient = true
	for _, r := range batch {
		if r.tries++; !first && (waitsOnce(r.Command) || r.tries > patientTries) {
			e.answerAll([]*Request{r}, busyFault(r.Command, err))
			continue
		}
		again = append(again, r)
	}
	return again
}

// HoldsAny reports whether one of the rows is held.
func (h *heldRows) HoldsAny(locks ...store.Lock) bool {
	return h.Known.Load() > 0 && len(h.Among(locks, nil)) > 0
}

// HoldsRoom reports whether a row is held that a hand-over might need.
func (h *heldRows) HoldsRoom() bool {
	if h.Known.Load() == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for lock := range h.lines {
		if lock.Shared || lock.Counter != "" {
			return true
		}
	}
	return false
}
