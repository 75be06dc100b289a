package txn

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
)

// A lane with a cap counts the executions in it that are running, or promised to a worker (S5). The count is the number of executions that hold the lane's key.
// It is kept in a counter that changes with the holds.

const laneCounterPrefix = "lane:"

// LaneCounter names the counter of the places of a lane.
func LaneCounter(lane string) string { return laneCounterPrefix + lane }

// LaneOfCounter returns the lane whose places a counter counts, or "" for other counters.
func LaneOfCounter(key string) string {
	lane, ok := strings.CutPrefix(key, laneCounterPrefix)
	if !ok {
		return ""
	}
	return lane
}

// LaneNamed returns a lane as locked in this transaction, else as in the dictionary.
func (u *Tx) LaneNamed(name string) *core.Lane {
	lane := u.Dict.Lanes[name]
	if lane == nil {
		return nil
	}
	if locked, ok := u.Lanes[lane.ID]; ok {
		return &locked
	}
	return lane
}

// HasPlace reports whether the lane may take one more execution (S5). The lane's counter must be loaded.
func (u *Tx) HasPlace(lane *core.Lane) bool {
	if lane.Settings.MaxConcurrent == 0 {
		return true
	}
	used, loaded := u.Counters[LaneCounter(lane.Name)]
	return loaded && used < int64(lane.Settings.MaxConcurrent)
}

// TakePlace occupies a place in a lane with a cap.
func (u *Tx) TakePlace(lane *core.Lane, x *core.Execution) {
	if lane == nil || lane.Settings.MaxConcurrent == 0 {
		return
	}
	key := LaneCounter(lane.Name)
	if Contains(x.Holds, key) {
		return
	}
	if used, loaded := u.Counters[key]; loaded { // it is not loaded if the cap was set after a forced claim, which asks for no place
		u.Counters[key] = used + 1
	}
	x.Holds = slices.Sorted(slices.Values(append(slices.Clone(x.Holds), key)))
}

// Freed updates the loaded counters with slots that came free in this transaction, so that commands decided later can take them.
func (u *Tx) Freed(before, now []string) {
	for _, key := range before {
		if _, loaded := u.Counters[key]; loaded && !Contains(now, key) {
			u.Counters[key]--
		}
	}
}
