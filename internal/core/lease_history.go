package core

const (
	// MaxLeaseHistory is how many entries of the lease history an execution has: the newest (L40).
	MaxLeaseHistory = 1000
	// historyLot is how many entries leave the store at a time, so that most leases cost nothing more.
	historyLot = 100
)

// HistoryFloor is the newest epoch that is no longer in the lease history (L40). The store may still have older entries.
func (x *Execution) HistoryFloor() int64 { return max(0, x.LeaseEpoch-MaxLeaseHistory) }

// HistoryLot names the entries, those of (after, upTo], that are to be looked at when the lease of an epoch has ended, because
// they have left the history. For most epochs there are none.
func HistoryLot(epoch int64) (after, upTo int64, due bool) {
	upTo = epoch - MaxLeaseHistory
	if upTo <= 0 || upTo%historyLot != 0 {
		return 0, 0, false
	}
	return upTo - historyLot, upTo, true
}

// Superseded reports whether a later entry says all that this one says of its attempt. Such an entry may go when it has left the
// history; the last one of an attempt is what the attempt is known by, and attempts are kept (L27). Only the last entry of an
// attempt has a final state, and an attempt that another one followed has such an entry (L26).
func (r *LeaseRecord) Superseded() bool { return !r.Attempt.State.Final() }
