package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// oldestOf is how many ready executions of a lane are looked at to find the one that waits longest: those created first. Search
// rows do not tell since when one waits, but what was created first mostly does so longest.
const oldestOf = 100

// laneViews shows lanes with what goes on in them. Counts and the oldest come from the search rows (S2).
func (e *Engine) laneViews(ctx context.Context, c Caller, lanes ...*core.Lane) ([]LaneView, error) {
	if len(lanes) == 0 {
		return []LaneView{}, nil
	}
	if err := e.follower.reach(ctx); err != nil { // a count is a second old at most
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
	for i, lane := range lanes {
		views[i] = LaneView{Lane: *lane, Counts: map[core.Status]int{}, Workers: liveIn(c, lane.Name, workers, now), Rates: e.rates.of(c, lane.Name, now)}
		if err := e.countLaneRows(ctx, c, &views[i]); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// liveIn counts the live instances that take from a lane: those that a list of workers shows.
func liveIn(c Caller, lane string, workers []core.Worker, now core.Time) int {
	q := WorkerQuery{Lane: lane}
	live := 0
	for i := range workers {
		if q.keeps(c, &WorkerView{Worker: workers[i], State: workerState(&workers[i], now)}) {
			live++
		}
	}
	return live
}

// countLaneRows fills in the counts by status, and since when the oldest ready execution waits.
func (e *Engine) countLaneRows(ctx context.Context, c Caller, view *LaneView) error {
	w, err := e.newWalk(c, core.Filter{Lane: []string{view.Lane.Name}}, store.CreatedDesc, "")
	if err != nil || w.empty {
		return err
	}
	counts, more, err := w.countBy(ctx, core.CountBy{Field: core.CountByStatus})
	if err != nil {
		return err
	}
	view.AtLeast = more
	for _, status := range core.Statuses() {
		if n := counts[status.String()]; n > 0 {
			view.Counts[status] = n
		}
	}
	if view.Counts[core.Ready] == 0 {
		return nil
	}
	ready, err := e.newWalk(c, core.Filter{Lane: []string{view.Lane.Name}, Status: []string{core.Ready.String()}}, store.CreatedAsc, "")
	if err != nil {
		return err
	}
	page, err := ready.page(ctx, oldestOf)
	for _, item := range page.Items {
		view.OldestReady = earlier(view.OldestReady, item.Execution.QueuedAt)
	}
	return err
}
