package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// priorityWeight is the value of one point of priority in a lane without ageing: more than any wait, so that priority comes first and age second
// (S6).
const priorityWeight = 1_000_000_000_000

// RankKey returns the place of x in its lane: lower is served first, ties by UUID (S6). ageing is the lane's setting, 0 when off.
func (x *Execution) RankKey(ageing base.Millis) int64 {
	weight := ageing
	if weight == 0 {
		weight = priorityWeight
	}
	return int64(x.QueuedAt) - int64(x.Priority)*weight
}
