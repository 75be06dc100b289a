package core

import (
	"cmp"
	"slices"
)

const (
	// MaxLeaseHistory is the maximum number of entries in the lease history of an execution: the newest are kept (L40).
	MaxLeaseHistory = 1000
	// historyLot is how many entries leave the store at a time, so that most leases cause no extra work.
	historyLot = 100
)

// HistoryFloor returns the newest epoch that is no longer in the lease history (L40). The store may still have older entries.
func (x *Execution) HistoryFloor() int64 { return max(0, x.LeaseEpoch-MaxLeaseHistory) }

// HistoryLot returns the entries (after, upTo] that have left the history and are to be examined when the lease of an epoch has ended. due is false
// for most epochs.
func HistoryLot(epoch int64) (after, upTo int64, due bool) {
	upTo = epoch - MaxLeaseHistory
	if upTo <= 0 || upTo%historyLot != 0 {
		return 0, 0, false
	}
	return upTo - historyLot, upTo, true
}

// Superseded reports whether a later entry contains everything that this one records of its attempt. Such an entry may be dropped once it has left
// the history. The last entry of an attempt is the record of the attempt, and attempts are kept (L27). Only the last entry of an attempt has a
// final state, and an attempt that was followed by another has such an entry (L26).
func (r *LeaseRecord) Superseded() bool { return !r.Attempt.State.Final() }

// AttemptsOf lists the attempts of x by index (L25). Each lease that ended has recorded the state of its attempt in the history, so the newest
// entry of an attempt is complete. The last attempt is in the execution record itself.
func AttemptsOf(x *Execution, history []LeaseRecord) []Attempt {
	newest := make(map[int]*LeaseRecord, len(history))
	for i := range history {
		record := &history[i]
		if known := newest[record.Attempt.Index]; known == nil || known.Epoch <= record.Epoch {
			newest[record.Attempt.Index] = record
		}
	}
	attempts := make([]Attempt, 0, len(newest)+1)
	for index, record := range newest {
		if x.Attempt == nil || index != x.Attempt.Index {
			attempts = append(attempts, record.Attempt)
		}
	}
	if x.Attempt != nil {
		attempts = append(attempts, *x.Attempt)
	}
	slices.SortFunc(attempts, func(a, b Attempt) int { return cmp.Compare(a.Index, b.Index) })
	return attempts
}
