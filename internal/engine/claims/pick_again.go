package claims

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"time"
)

// Another look at once. A pick that could not see everything is followed by the next one without a pause, because what it learned takes that one
// further: floors rise, queues are found, more rows are asked for. Each such step is bounded by itself, but steps may undo each other while another
// process holds rows. For example, a queue whose only row is held looks empty and is forgotten, the survey of its class finds it again, and so on:
// looks in which nothing changes, thousands in a second, for as long as a frozen process holds the row.
//
// A run is the looks that follow each other without a pause. Each of them is reduced to a fingerprint of what was asked and seen. A look that gives
// nothing and whose fingerprint the run has seen before learned nothing (vain): the same cache met the same rows, so that the next one would learn
// nothing either. The picker then rests for heldStep, unless there is news: nothing announces that another process has released a row.

// mostRun bounds how many fingerprints of a run are kept. A longer run counts as one that learns nothing.
const mostRun = 4096

// lookRun is the run of looks under way, and when the picker looks again after one that learned nothing. It is used under the picker's lock.
type lookRun struct {
	seen map[uint64]bool // fingerprints since the last look that gave something
	seed maphash.Seed
	rest time.Time // the zero value: no pause
}

// begin begins a run: there is news, or the pause is over.
func (r *lookRun) begin() { r.seen, r.rest = nil, time.Time{} }

// again reports whether another look at once may find more: queues were left out and this look learned something, rows turned out to be gone, fewer
// rows were asked for than wanted, there are new queues, there may be rows below where this look began, or the record of an instance must be
// written first.
func (k *pick) again() bool { return k.mayLearn() && !k.vain }

func (k *pick) mayLearn() bool {
	return len(k.left) > 0 && k.moved || k.ended || k.short || k.grown || k.found || k.below || len(k.lapsed) > 0
}

// learnVain records whether the look learned nothing. The picker's lock is held.
func (k *pick) learnVain() {
	run := &k.p.run
	if len(k.given) > 0 {
		run.seen = nil
		return
	}
	if run.seen == nil {
		run.seen, run.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	seen := k.fingerprint(run.seed)
	k.vain = run.seen[seen] || len(run.seen) == mostRun
	run.seen[seen] = true
}

// looksAgain reports whether another look at once may find more. If one would be made in vain, the picker rests. The picker's lock is held.
func (k *pick) looksAgain() bool {
	if k.vain && k.mayLearn() {
		k.p.run.rest = k.p.e.Cfg.Clock.Now().Add(heldStep)
	}
	return k.again()
}

// fingerprint returns a hash of what the look asked and saw.
func (k *pick) fingerprint(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var buf []byte
	put := func(numbers ...int64) {
		for _, n := range numbers {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(n))
		}
	}
	put(int64(len(k.calls)), int64(len(k.lapsed)), int64(len(k.asked)))
	for i, a := range k.asked {
		put(int64(a.class.ID), int64(a.block), a.from, int64(a.limit), int64(a.got), int64(a.came), a.first, a.reach, int64(len(a.rows)))
		if i < len(k.saw) {
			put(k.saw[i].First, int64(k.saw[i].Held))
		}
		put(int64(len(a.passed)))
		buf = append(buf, a.passed...)
	}
	put(int64(len(k.survey)))
	for _, class := range k.survey {
		put(int64(class.ID), int64(len(k.blocks[class.ID])))
		for _, block := range k.blocks[class.ID] {
			put(int64(block))
		}
	}
	for _, left := range slices.SortedFunc(maps.Keys(k.left), leftFor.compare) {
		buf = append(append(append(buf, left.lane...), left.filter...), k.left[left]...)
	}
	_, _ = h.Write(buf) // it never fails
	return h.Sum64()
}
