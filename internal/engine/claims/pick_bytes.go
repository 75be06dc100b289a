package claims

import (
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A claim may ask for a thousand tasks, and each may have megabytes of input. maxClaimBytes bounds what one answer carries, and also what one
// transaction loads, as far as sizes can be estimated: each queue keeps the size of the largest input seen recently. In the usual case inputs are
// so small that everything that was asked for fits, and this changes nothing.

// foreseeable returns the input size to plan with. For a queue that was never read it is the largest size allowed.
func (q *classQueue) foreseeable(most int) int {
	if q.largest == 0 {
		return most
	}
	return int(q.largest)
}

// sawInput records an input of that size.
func (q *classQueue) sawInput(size int) { q.largest = max(q.largest, int32(size), 1) }

// cutToSize lowers the numbers of rows to ask for, so that their inputs fit.
func (k *pick) cutToSize() {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	most := k.p.e.Cfg.Limits.MaxPayload
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
		a.limit = min(a.limit+int(a.more), max(a.limit, maxClaimTasks)) + a.knownBad() // so that rows known to be bad take no place of others
	}
}

const (
	fewQueues  = 4 // up to this many queues are each asked for all that is wanted
	leastAsked = 3
	// leastOfEach is asked of each queue if there are as many queues as rows wanted: most give one, and a second one shows that there are more.
	leastOfEach = 2
)

// cutToShares lowers the numbers of rows that many queues are asked for: locking and reading all that is wanted in each of them would mostly be in
// vain. Each is asked for somewhat more than its share, since some give more than others. A queue that gave everything it was asked for is asked
// for twice as much the next time, so that a queue which alone has the best rows is soon asked for all.
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

// askTogether asks all queues together for no more rows than all calls want. It does so only if each call may take from each queue and all queues
// are of one turn, so that only the order of the rows decides: the best rows of all queues are then the best for every call (S6). If one of them
// has no room, the next row counts, which was left out: the look is repeated with each queue asked separately, and so are the next ones until all
// rows that they see have room (S19).
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
		if left != turn.key { // the turn may be that of a queue which was not asked
			return
		}
	}
	k.best = together
}

var errLookApart = errors.New("there is no room for some of the best rows")

// dry reports whether all rows are taken of a queue that was asked for fewer than it may have: its next row is not known.
func (a *askedQueue) dry() bool { return a.cut && len(a.rows) == 0 && a.got >= a.limit }

// noteDry records that the queue is dry, once its last row is taken.
func (k *pick) noteDry(a *askedQueue) {
	if a.dry() {
		k.dried = append(k.dried, a)
	}
}

// driedUp reports whether the next row for the call is unknown because one of its queues is dry.
func (k *pick) driedUp(call *claim) bool {
	return slices.ContainsFunc(k.dried, func(a *askedQueue) bool { return a.users[call.filter] })
}

// learnSizes records how large the inputs were, and how many rows were taken. Older values count less with each look. The picker's lock is held.
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

// forgetSizes makes the next plan assume the largest inputs: the transaction may have failed because it was too large. The picker's lock is held.
func (k *pick) forgetSizes() {
	for _, a := range k.asked {
		a.largest = 0
	}
}

// fits reports whether the call's answer has room for the input of the row. One task is always given.
func (k *pick) fits(u *txn.Tx, call *claim, row store.QueueRow, room int) bool {
	return len(k.given[call]) == 0 || u.Entries[row.ID].Exec.Input.Size <= room
}
