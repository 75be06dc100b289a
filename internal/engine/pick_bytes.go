package engine

import (
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// A claim may ask for a thousand tasks, and each may have megabytes of input. What one answer carries is bounded by maxClaimBytes, and
// what one transaction loads by the same, as far as the sizes in its queues can be foreseen: each queue remembers the largest input
// seen of late. Inputs so small that all that was asked for fits, which is the usual case, change nothing.

// foreseeable is the size of input to reckon with: of a queue that nobody has looked into, the largest that is allowed.
func (q *classQueue) foreseeable(most int) int {
	if q.largest == 0 {
		return most
	}
	return int(q.largest)
}

// sawInput remembers an input of that size.
func (q *classQueue) sawInput(size int) { q.largest = max(q.largest, int32(size), 1) }

// cutToSize lowers the numbers of rows that are asked for, so that their inputs have room.
func (k *pick) cutToSize() {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	most := k.p.e.cfg.Limits.MaxPayload
	total := 0
	for _, a := range k.asked {
		total += a.limit * a.foreseeable(most)
	}
	if total > maxClaimBytes {
		share := maxClaimBytes / len(k.asked)
		for _, a := range k.asked {
			if room := max(share/a.foreseeable(most), 1); room < a.limit {
				a.limit, a.cut = room, true
			}
		}
	}
	for _, a := range k.asked {
		a.limit = min(a.limit+int(a.more), max(a.limit, maxClaimTasks)) + a.knownBad() // so that they keep no other row out
	}
}

const (
	fewQueues  = 4 // so few are asked for all that is wanted
	leastAsked = 3
	// leastOfEach is asked of each where there are as many queues as rows that are wanted: most give one, and another tells that there is
	// more.
	leastOfEach = 2
)

// cutToShares lowers the numbers of rows that many queues are asked for: to lock and read all that is wanted in each of them would be
// to read most of it in vain. Each is asked for somewhat more than its share, since some give more than others; one that gave all
// that it was asked for is asked for twice that, so that one which alone has the best rows is soon asked for all.
func (k *pick) cutToShares() {
	if len(k.asked) <= fewQueues {
		return
	}
	wanted := 0
	for _, call := range k.calls {
		wanted += call.req.Max
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	for _, a := range k.asked {
		share := max(wanted*3/2/len(k.asked), int(a.expected)) + leastAsked
		if k.taken != nil {
			share = max(wanted/len(k.asked)+1, int(a.expected)+1, leastOfEach)
		}
		share += a.knownBad()
		if share < a.limit {
			a.limit, a.cut = share, true
		}
	}
}

// askTogether asks for no more rows of all queues than all calls want, where each call takes from each queue and nothing but the order of
// the rows decides, since all are of one turn: the best of all are then the best for everyone (S6). If one of them has no room after all, the next row counts, which
// was left out: the look begins anew, and so do the next ones until all that they see has room (S19).
func (k *pick) askTogether() {
	if len(k.asked) < 2 || k.p.apart {
		return
	}
	together := 0
	for _, call := range k.calls {
		together += call.req.Max
	}
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	turn := k.asked[0].turn
	for _, a := range k.asked {
		if a.turn != turn || len(a.users) < len(k.groups) || a.knownBad() > 0 {
			return
		}
	}
	for _, left := range k.left {
		if left != turn.key { // it may be the turn of what was not asked
			return
		}
	}
	k.best = together
}

var errLookApart = errors.New("there is no room for some of the best rows")

// dry tells that all rows are taken of a queue that was asked for fewer than it might have had to give: which row comes next is not
// known.
func (a *askedQueue) dry() bool { return a.cut && len(a.rows) == 0 && a.got >= a.limit }

// noteDry remembers that the queue is dry, once its last row is taken.
func (k *pick) noteDry(a *askedQueue) {
	if a.dry() {
		k.dried = append(k.dried, a)
	}
}

// driedUp reports whether nothing is known of what comes next for the call.
func (k *pick) driedUp(call *claim) bool {
	return slices.ContainsFunc(k.dried, func(a *askedQueue) bool { return a.users[call.filter] })
}

// learnSizes remembers how large the inputs were, and how many were taken. What was seen before counts less with each look. The
// picker's lock is held.
func (k *pick) learnSizes() {
	for _, a := range k.asked {
		if a.got > 0 {
			a.largest /= 2
			a.sawInput(a.size)
		}
		a.expected = int32(a.got - len(a.rows) - len(a.bad))
		if a.dry() {
			a.expected *= 2
		}
		k.short = k.short || a.dry()
	}
	k.short = k.short || k.beyond && !slices.ContainsFunc(k.asked, func(a *askedQueue) bool { return len(a.rows) > 0 && a.passed == "" })
}

// forgetSizes reckons with the worst: the transaction may have failed because it was too large. The picker's lock is held.
func (k *pick) forgetSizes() {
	for _, a := range k.asked {
		a.largest = 0
	}
}

// fits reports whether the call's answer has room for the input of the queue's first row. One task is always given.
func (k *pick) fits(u *unit, call *claim, row store.QueueRow, room int) bool {
	return len(k.given[call]) == 0 || u.entries[row.ID].x.Input.Size <= room
}
