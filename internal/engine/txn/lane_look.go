package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// oldestOf is how many ready executions of a lane are read to find the one that waits longest: those created first. Search rows do not contain
	// since when an execution waits, but the one created first mostly waits longest.
	oldestOf = 100
	// oldestOfAll is how many executions are read at a time for all lanes of a page together, beyond one for each of them.
	oldestOfAll = 2000
	// LaneRows is how many search rows one look at the lanes of a page goes through.
	LaneRows = 50_000
	// LaneRounds is how often lanes are read again for which the last read returned too little, because others had so much.
	LaneRounds = 4
	// oldestRounds is how often lanes are looked at for their oldest. Each look but the first few leaves at least one lane out: it is enough for
	// all that have a label of their own.
	oldestRounds = LaneRounds + metrics.MaxValues
)

// LaneLook looks at the search rows of some lanes.
type LaneLook struct {
	E       *Engine
	Classes map[string][]int32 // by lane
	all     bool               // these are all classes that there are
}

// RowsOf asks for the search rows of some lanes. Classes are asked for instead of lanes and namespaces: stores find them faster.
func (l *LaneLook) RowsOf(lanes map[string]bool) store.Query {
	if l.all && len(lanes) == len(l.Classes) {
		return store.Query{}
	}
	q := store.Query{Classes: []int32{}}
	for lane := range lanes {
		q.Classes = append(q.Classes, l.Classes[lane]...)
	}
	slices.Sort(q.Classes)
	return q
}

// Used are the lanes that may have executions.
func (l *LaneLook) Used() map[string]bool {
	lanes := make(map[string]bool, len(l.Classes))
	for lane := range l.Classes {
		lanes[lane] = true
	}
	return lanes
}

// EachOldest iterates over those ready executions of some lanes that were created first. Lanes of which no row was among the first, because
// others have so many, are looked at again without these; so are, some times, those whose rows were out of date. The last look finds nothing:
// one for all lanes that have no work. It takes out of lanes those that it has found.
func (l *LaneLook) EachOldest(ctx context.Context, lanes map[string]bool, add func(*core.Execution)) error {
	for round := 0; len(lanes) > 0 && round < oldestRounds; round++ {
		q := l.RowsOf(lanes)
		q.Statuses, q.Limit = []core.Status{core.Ready}, LaneRows
		hits, err := l.E.Store.FirstOfLanes(ctx, q, min(max(oldestOfAll/len(lanes), 1), oldestOf))
		if err != nil || len(hits) == 0 {
			return err
		}
		ready, err := l.E.stillReady(ctx, hits)
		if err != nil {
			return err
		}
		for _, x := range ready {
			add(x)
			delete(lanes, x.Class.Lane)
		}
		if round < LaneRounds {
			continue
		}
		for _, hit := range hits {
			delete(lanes, hit.Lane)
		}
	}
	return nil
}

// stillReady reads those of the executions that are ready now.
func (e *Engine) stillReady(ctx context.Context, hits []store.LaneHit) (ready []*core.Execution, err error) {
	for some := range slices.Chunk(hits, oldestOfAll) {
		ids := make([]base.UUID, len(some))
		for i, hit := range some {
			ids[i] = hit.ID
		}
		loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
		if err != nil {
			return nil, err
		}
		for _, x := range loaded.Executions {
			if x.Status == core.Ready {
				ready = append(ready, x)
			}
		}
	}
	return ready, nil
}
