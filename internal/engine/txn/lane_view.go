package txn

import (
	"context"
	"maps"
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
	// laneRows is how many search rows one look at the lanes of a page goes through.
	laneRows = 50_000
	// laneRounds is how often lanes are read again for which the last read returned too little, because others had so much.
	laneRounds = 4
	// oldestRounds is how often lanes are looked at for their oldest. Each look but the first few leaves at least one lane out: it is enough for
	// all that have a label of their own.
	oldestRounds = laneRounds + metrics.MaxValues
)

// laneViews returns lanes with their counts. Counts and the oldest come from the search rows (S2). The number of store calls does not depend on the
// number of lanes.
func (e *Engine) laneViews(ctx context.Context, c Caller, lanes ...*core.Lane) ([]LaneView, error) {
	if len(lanes) == 0 {
		return []LaneView{}, nil
	}
	if err := e.Follower.Reach(ctx); err != nil { // a count is a second old at most
		return nil, err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := e.instances(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]LaneView, len(lanes))
	look := &laneLook{e: e, views: make(map[string]*LaneView, len(lanes)), classes: e.classesSeen(c, lanes)}
	for i, lane := range lanes {
		views[i] = LaneView{Lane: e.shownLane(c, *lane), Counts: map[core.Status]int{}, Workers: liveIn(c, lane.Name, workers, now), Rates: e.rates.of(c, lane.Name, now)}
		look.views[lane.Name] = &views[i]
	}
	if err := look.count(ctx); err != nil {
		return nil, PublicFault(err)
	}
	if err := look.findOldest(ctx); err != nil {
		return nil, PublicFault(err)
	}
	return views, nil
}

// liveIn counts the live instances that take from a lane: those that a list of workers shows.
func liveIn(c Caller, lane string, workers []core.Worker, now base.Time) int {
	q := WorkerQuery{Lane: lane}
	live := 0
	for i := range workers {
		if q.keeps(c, &WorkerView{Worker: workers[i], State: workerState(&workers[i], now)}) {
			live++
		}
	}
	return live
}

// classesSeen are the numbers of the classes of lanes that the caller sees.
func (e *Engine) classesSeen(c Caller, lanes []*core.Lane) map[string][]int32 {
	dict, numbers := e.Dict.Now(), make(map[string][]int32, len(lanes))
	for _, lane := range lanes {
		for _, class := range dict.OfLane[lane.Name] {
			if c.Sees(class.Namespace) {
				numbers[lane.Name] = append(numbers[lane.Name], class.ID)
			}
		}
	}
	return numbers
}

// laneLook collects the counts of some lanes.
type laneLook struct {
	e       *Engine
	views   map[string]*LaneView
	classes map[string][]int32 // by lane
	all     bool               // these are all classes that there are
}

// rowsOf asks for the search rows of some lanes. Classes are asked for instead of lanes and namespaces: stores find them faster.
func (l *laneLook) rowsOf(lanes map[string]bool) store.Query {
	if l.all && len(lanes) == len(l.classes) {
		return store.Query{}
	}
	q := store.Query{Classes: []int32{}}
	for lane := range lanes {
		q.Classes = append(q.Classes, l.classes[lane]...)
	}
	slices.Sort(q.Classes)
	return q
}

// used are the lanes that may have executions.
func (l *laneLook) used() map[string]bool {
	lanes := make(map[string]bool, len(l.classes))
	for lane := range l.classes {
		lanes[lane] = true
	}
	return lanes
}

// count fills in the counts by status, each exact up to 10 000: all with one question if there are few rows, else with some for each status.
func (l *laneLook) count(ctx context.Context) error {
	used := l.used()
	if len(used) == 0 {
		return nil
	}
	most := min(len(used)*countLimit, 2*laneRows)
	groups, err := l.e.Store.CountBy(ctx, l.rowsOf(used), store.GroupBy{Field: store.ByLaneStatus}, most+1)
	if err != nil {
		return err
	}
	if rowsIn(groups) <= most {
		for _, group := range groups {
			l.views[group.Text].counted(group.Status, group.Rows)
		}
		return nil
	}
	for _, status := range core.Statuses() {
		if err := l.countStatus(ctx, status); err != nil {
			return err
		}
	}
	return nil
}

// countStatus counts the executions of one status. Lanes that have more of them than are counted may keep the rows of others from being
// seen: these are counted again without them. If that does not help the counts are lower bounds.
func (l *laneLook) countStatus(ctx context.Context, status core.Status) error {
	lanes := l.used()
	for round := 0; len(lanes) > 0; round++ {
		q := l.rowsOf(lanes)
		q.Statuses = []core.Status{status}
		groups, err := l.e.Store.CountBy(ctx, q, store.GroupBy{Field: store.ByLane}, laneRows+1)
		if err != nil {
			return err
		}
		whole, before := rowsIn(groups) <= laneRows, len(lanes)
		for _, group := range groups {
			if l.views[group.Text].counted(status, group.Rows); group.Rows > countLimit {
				delete(lanes, group.Text)
			}
		}
		switch {
		case whole:
			return nil
		case len(lanes) == before || round == laneRounds:
			for lane := range lanes {
				l.views[lane].AtLeast = true
			}
			return nil
		}
	}
	return nil
}

// counted notes how many executions have a status. Of a database that just came back numbers of classes may be those of other lanes, which
// are not shown.
func (v *LaneView) counted(status core.Status, n int) {
	if v == nil {
		return
	}
	v.Counts[status] = min(n, countLimit)
	v.AtLeast = v.AtLeast || n > countLimit
}

func rowsIn(groups []store.Group) (n int) {
	for _, group := range groups {
		n += group.Rows
	}
	return n
}

// findOldest fills in since when the oldest ready execution of each lane waits.
func (l *laneLook) findOldest(ctx context.Context) error {
	lanes := l.used()
	maps.DeleteFunc(lanes, func(lane string, _ bool) bool { return l.views[lane].Counts[core.Ready] == 0 })
	return l.eachOldest(ctx, lanes, func(x *core.Execution) {
		if view := l.views[x.Class.Lane]; view != nil {
			view.OldestReady = earlier(view.OldestReady, x.QueuedAt)
		}
	})
}

// eachOldest iterates over those ready executions of some lanes that were created first. Lanes of which no row was among the first, because
// others have so many, are looked at again without these; so are, some times, those whose rows were out of date. The last look finds nothing:
// one for all lanes that have no work. It takes out of lanes those that it has found.
func (l *laneLook) eachOldest(ctx context.Context, lanes map[string]bool, add func(*core.Execution)) error {
	for round := 0; len(lanes) > 0 && round < oldestRounds; round++ {
		q := l.rowsOf(lanes)
		q.Statuses, q.Limit = []core.Status{core.Ready}, laneRows
		hits, err := l.e.Store.FirstOfLanes(ctx, q, min(max(oldestOfAll/len(lanes), 1), oldestOf))
		if err != nil || len(hits) == 0 {
			return err
		}
		ready, err := l.e.stillReady(ctx, hits)
		if err != nil {
			return err
		}
		for _, x := range ready {
			add(x)
			delete(lanes, x.Class.Lane)
		}
		if round < laneRounds {
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
