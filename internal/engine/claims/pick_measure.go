package claims

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// noteCaps counts the lanes that kept ready work from the calls because they are full (S5).
func (k *pick) noteCaps(u *txn.Tx) {
	if len(u.Counters) == 0 {
		return
	}
	var full []string
	for _, a := range k.asked {
		lane := u.LaneNamed(a.class.Lane)
		if lane != nil && k.wanted(a) && lane.Settings.State.Claimable() && !u.HasPlace(lane) && !txn.Contains(full, lane.Name) {
			full = append(full, lane.Name)
			k.p.e.CountFull()
		}
	}
}

// wanted reports whether rows of the queue are left that a call would have taken.
func (k *pick) wanted(a *askedQueue) bool {
	return len(a.rows) > 0 && slices.ContainsFunc(k.calls, func(call *claim) bool {
		return a.users[call.filter] && k.errs[call] == nil && len(k.given[call]) < call.req.Max
	})
}
