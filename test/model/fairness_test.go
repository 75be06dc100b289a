package model

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// fairLane shares its turns between fairness keys once put_lane says so. Its claims match all of its work and come from a worker
// of their own, so that which keys have nothing left is known after each of them.
const (
	fairLane     = "c"
	fairInstance = "i3"
)

// inTurn leaves the candidates of the fairness key whose turn it is (S24); all of them while the lane is not fair.
func (m *reference) inTurn(lane string, candidates []*record) []*record {
	settings := m.lanes[lane].Settings
	if settings.Fairness != core.FairnessByKey {
		return candidates
	}
	byKey := map[string][]*record{}
	var keys []string
	for _, r := range candidates {
		key := core.FairnessKeyOf(settings.Fairness, r.x.Class)
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], r)
	}
	round := m.turns.Round(lane, keys, func(key string) int { return settings.FairnessWeights[key] })
	key, _ := round.Next()
	round.Took()
	return byKey[key]
}

// namespacesIn are those that have executions in a lane.
func (m *reference) namespacesIn(lane string) map[string]bool {
	found := map[string]bool{}
	for _, r := range m.records {
		if r.x.Class.Lane == lane {
			found[r.x.Class.Namespace] = true
		}
	}
	return found
}

// rest tells the turns which keys a claim saw the end of: it was shown fewer rows of theirs than it could have taken, and left
// none.
func (m *reference) rest(name string, looked []*record, most int) {
	lane := m.lanes[name]
	if lane == nil || lane.Settings.Fairness != core.FairnessByKey {
		return
	}
	shown, left := map[string]int{}, map[string]bool{}
	for _, r := range looked {
		if r.x.Class.Lane == name {
			shown[r.x.Class.FairnessKey]++
		}
	}
	for _, r := range looked {
		key := r.x.Class.FairnessKey
		if later, _ := m.settled(r); r.x.Class.Lane == name && later.x.Status == core.Ready {
			left[key] = true
		}
	}
	for _, key := range fairKeys {
		if shown[key] < most && !left[key] {
			m.turns.Idle(name, key)
		}
	}
}

var fairKeys = []string{"x", "y", "z"}

func (d *drawing) putFairLane() command {
	s := &core.LaneSettings{
		Fairness: core.FairnessByKey, FairnessWeights: pickOne(d, "weights", nil, map[string]int{"x": 3}, map[string]int{"x": 2, "z": 5}),
		AgeingMS: pickOne(d, "ageing", base.Millis(0), 0, 1000),
	}
	return laneCommand{C: operator, Name: fairLane, Settings: s}
}

func (d *drawing) fairSubmit() command {
	return submitCommand{C: client, S: core.Submission{
		Namespace: "n1", Lane: fairLane, Kind: "k1", Priority: pickOne(d, "priority", 0, 0, 1),
		PolicyJSON: fmt.Appendf(nil, `{"fairness_key":%q}`, pickOne(d, "fairness key", fairKeys...)),
	}}
}

func (d *drawing) fairClaim() command {
	return claimCommand{C: client, R: engine.ClaimRequest{
		WorkerID: workerOf(fairInstance), InstanceID: fairInstance, Lanes: []string{fairLane}, Max: pickOne(d, "max", 1, 2, 3), TTL: d.ttl(),
	}}
}
