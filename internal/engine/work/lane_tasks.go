package work

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// countLane gives every execution that runs in the lane its place, then opens the lane for picks (S5). Meanwhile nothing is picked there, so the
// number of running executions only falls.
func (e *Work) countLane(ctx context.Context, t TaskArgs) error {
	f := core.Filter{Lane: []string{t.Lane}, Status: []string{"running", "granted"}}
	err := e.eachMatching(ctx, f, countBatch, func(x *core.Execution) txn.Command {
		return &txn.OnOne{
			Op: "count_place", Caller: txn.EngineCaller, ID: x.ID.Given(),
			Act: func(u *txn.Tx, x *core.Execution, _ *core.Effects, _ *core.LeaseRecord) (bool, error) {
				if x.Status != core.Running && x.Status != core.Granted {
					return false, nil
				}
				txn.SetIn(&u.Counters, txn.LaneCounter(t.Lane), u.Counters[txn.LaneCounter(t.Lane)])
				u.TakePlace(u.LaneNamed(t.Lane), x)
				return true, nil
			},
		}
	})
	if err != nil {
		return err
	}
	lane := e.Dict.Now().Lanes[t.Lane]
	return e.Do(ctx, &openLane{id: lane.ID})
}

// openLane ends the count of a lane's places.
type openLane struct{ id int32 }

func (o *openLane) Name() string { return "open_lane" }

func (o *openLane) Want(w *store.Want, _ bool) { w.LockLanes = append(w.LockLanes, o.id) }

func (o *openLane) Decide(u *txn.Tx) error {
	lane := u.Lanes[o.id]
	lane.Counting = false
	u.Lanes[o.id] = lane
	u.Changes.Lanes = append(slices.DeleteFunc(u.Changes.Lanes, func(other core.Lane) bool { return other.ID == o.id }), lane)
	return nil
}

// refileLane gives the lane's queued executions the order keys of the current ageing (S8).
func (e *Work) refileLane(ctx context.Context, t TaskArgs) error {
	f := core.Filter{Lane: []string{t.Lane}, Status: []string{"ready", "blocked"}}
	return e.eachMatching(ctx, f, refileBatch, func(x *core.Execution) txn.Command {
		return &txn.OnOne{
			Op: "refile", Caller: txn.EngineCaller, ID: x.ID.Given(),
			Act: func(u *txn.Tx, x *core.Execution, _ *core.Effects, _ *core.LeaseRecord) (bool, error) {
				lane := u.LaneNamed(t.Lane)
				return x.Queued() && x.OrderKey != x.RankKey(lane.Settings.AgeingMS), nil
			},
		}
	})
}

// eachMatching runs a command on every execution that matches the filter, in batches.
func (e *Work) eachMatching(ctx context.Context, f core.Filter, batch int, cmd func(x *core.Execution) txn.Command) error {
	if err := e.Follower.ReachAll(ctx); err != nil {
		return err
	}
	r := txn.ListRequest{Filter: f, Order: store.IDAsc, Limit: &batch}
	for {
		page, err := e.List(ctx, txn.EngineCaller, r)
		if err != nil {
			return err
		}
		cmds := make([]txn.Command, len(page.Items))
		for i, item := range page.Items {
			cmds[i] = cmd(item.Execution)
		}
		for _, err := range e.DoAll(ctx, cmds) {
			if err != nil && base.CodeOf(err) != base.CodeExecutionNotFound {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		r.Cursor = page.Next
	}
}

const (
	countBatch  = 500
	refileBatch = 1000
)
