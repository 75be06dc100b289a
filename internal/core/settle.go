package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Settle applies the due timers in order of their due times until none is due (L18). It precedes every command, and it is all that the sweep does.
// It reports whether the record changed, even if only its WakeAt did. It first raises fx.Now so that the times of x never run backwards (L5).
//
// Each timer acts as of its due time, so that no answer and no record depends on how late it was noticed (LI13): a backoff counts from the timeout,
// not from the sweep. Events carry the time of the transaction that writes them.
func (x *Execution) Settle(fx *Effects) (changed bool) {
	fx.Now = base.Later(fx.Now, x.Latest())
	if !x.WakeAt.Reached(fx.Now) {
		return false
	}
	now, actor, request, told := fx.Now, fx.Actor, fx.RequestID, len(fx.Events)
	fx.Actor, fx.RequestID, fx.settling = EngineActor(), "", now
	for x.wakeOnce(fx, now) {
	}
	fx.Now, fx.Actor, fx.RequestID = now, actor, request
	for i := range fx.Events[told:] {
		fx.Events[told+i].At = now
	}
	x.arm()
	return true
}

// wakeOnce fires the earliest timer if it is due at now; ties are decided by the order of the table.
func (x *Execution) wakeOnce(fx *Effects, now base.Time) bool {
	var first timer
	var due base.Time
	for _, t := range timers() {
		if at := t.due(x); at != 0 && (due == 0 || at < due) {
			first, due = t, at
		}
	}
	if !due.Reached(now) {
		return false
	}
	fx.Now = base.Later(due, x.Latest())
	first.fire(x, fx)
	return true
}

// Latest returns the newest moment in the record: no command on it acts earlier (L5). A renewal is not a mutation (L9), but its time is included.
func (x *Execution) Latest() base.Time {
	if x.Lease != nil {
		return base.Later(x.LastMutationAt, x.Lease.RenewedAt)
	}
	return x.LastMutationAt
}
