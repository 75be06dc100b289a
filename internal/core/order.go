package core

// priorityWeight is what one point of priority is worth in a lane without ageing: more than any wait, so that priority comes
// first and age second (S6).
const priorityWeight = 1_000_000_000_000

// RankKey is the place of x in its lane: lower is served first, ties by UUID (S6). ageing is the lane's, 0 when it is off.
func (x *Execution) RankKey(ageing Millis) int64 {
	weight := ageing
	if weight == 0 {
		weight = priorityWeight
	}
	return int64(x.QueuedAt) - int64(x.Priority)*weight
}
