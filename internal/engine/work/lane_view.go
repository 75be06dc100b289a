package work

import (
	"context"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// laneCounts collects the counts of some lanes.
type laneCounts struct {
	txn.LaneLook
	views map[string]*txn.LaneView
}

// laneViews returns lanes with their counts. Counts and the oldest come from the search rows (S2). The number of store calls does not depend on the
// number of lanes.
func (e *Work) laneViews(ctx context.Context, c txn.Caller, lanes ...*core.Lane) ([]txn.LaneView, error) {
	if len(lanes) == 0 {
		return []txn.LaneView{}, nil
	}
	if err := e.Follower.Reach(ctx); err != nil { // a count is a second old at most
		return nil, err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := e.Instances(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]txn.LaneView, len(lanes))
	look := &laneCounts{txn.LaneLook{E: e.Engine, Classes: e.classesSeen(c, lanes)}, make(map[string]*txn.LaneView, len(lanes))}
	for i, lane := range lanes {
		views[i] = txn.LaneView{Lane: e.shownLane(c, *lane), Counts: map[core.Status]int{}, Workers: liveIn(c, lane.Name, workers, now), Rates: e.Rates.Of(c, lane.Name, now)}
		look.views[lane.Name] = &views[i]
	}
	if err := look.count(ctx); err != nil {
		return nil, txn.PublicFault(err)
	}
	if err := look.findOldest(ctx); err != nil {
		return nil, txn.PublicFault(err)
	}
	return views, nil
}

// liveIn counts the live instances that take from a lane: those that a list of workers shows.
func liveIn(c txn.Caller, lane string, workers []core.Worker, now base.Time) int {
	q := txn.WorkerQuery{Lane: lane}
	live := 0
	for i := range workers {
		if keeps(&q, c, &txn.WorkerView{Worker: workers[i], State: txn.WorkerState(&workers[i], now)}) {
			live++
		}
	}
	return live
}

// classesSeen are the numbers of the classes of lanes that the caller sees.
func (e *Work) classesSeen(c txn.Caller, lanes []*core.Lane) map[string][]int32 {
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

// count fills in the counts by status, each exact up to 10 000: all with one question if there are few rows, else with some for each status.
func (l *laneCounts) count(ctx context.Context) error {
	used := l.Used()
	if len(used) == 0 {
		return nil
	}
	most := min(len(used)*countLimit, 2*txn.LaneRows)
	groups, err := l.E.Store.CountBy(ctx, l.RowsOf(used), store.GroupBy{Field: store.ByLaneStatus}, most+1)
	if err != nil {
		return err
	}
	if rowsIn(groups) <= most {
		for _, group := range groups {
			counted(l.views[group.Text], group.Status, group.Rows)
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
func (l *laneCounts) countStatus(ctx context.Context, status core.Status) error {
	lanes := l.Used()
	for round := 0; len(lanes) > 0; round++ {
		q := l.RowsOf(lanes)
		q.Statuses = []core.Status{status}
		groups, err := l.E.Store.CountBy(ctx, q, store.GroupBy{Field: store.ByLane}, txn.LaneRows+1)
		if err != nil {
			return err
		}
		whole, before := rowsIn(groups) <= txn.LaneRows, len(lanes)
		for _, group := range groups {
			if counted(l.views[group.Text], status, group.Rows); group.Rows > countLimit {
				delete(lanes, group.Text)
			}
		}
		switch {
		case whole:
			return nil
		case len(lanes) == before || round == txn.LaneRounds:
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
func counted(v *txn.LaneView, status core.Status, n int) {
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
func (l *laneCounts) findOldest(ctx context.Context) error {
	lanes := l.Used()
	maps.DeleteFunc(lanes, func(lane string, _ bool) bool { return l.views[lane].Counts[core.Ready] == 0 })
	return l.EachOldest(ctx, lanes, func(x *core.Execution) {
		if view := l.views[x.Class.Lane]; view != nil {
			view.OldestReady = txn.Earlier(view.OldestReady, x.QueuedAt)
		}
	})
}
