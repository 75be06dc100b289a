package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func laneRoundTrip(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	ms := func(n base.Millis) *base.Millis { return &n }
	full := core.Lane{
		Name: "full~lane", Revision: 3, Since: w.now.Add(-5), Counting: true, RegisteredBy: "put_lane",
		Settings: core.LaneSettings{
			State: core.LaneDraining, MaxConcurrent: 7, AgeingMS: 60_000, Fairness: "key", FairnessWeights: map[string]int{"gold": 3, "ü": 1},
			RetentionMS: core.RetentionByStatus{Succeeded: ms(-1), Failed: ms(0), Cancelled: ms(1), Expired: ms(base.Day), Skipped: ms(10 * base.Year)},
		},
	}
	lanes, _ := w.register(ctx, []core.Lane{full}, nil)
	full.ID = lanes[0].ID
	check := func(want core.Lane) {
		t.Helper()
		for _, lane := range w.dictionary(ctx).Lanes {
			if lane.ID == want.ID {
				w.equal("in the dictionary", want, lane)
			}
		}
		w.equal("read", want, w.read(ctx, store.Want{ShareLanes: []int32{want.ID}}).Lanes[want.ID])
		tx, got := w.begin(ctx, store.Want{LockLanes: []int32{want.ID}})
		tx.Rollback(ctx)
		w.equal("locked", want, got.Lanes[want.ID])
	}
	check(full)
	changed := core.Lane{
		ID: full.ID, Name: full.Name, Revision: 4, Since: w.now, RegisteredBy: "put_lane",
		Settings: core.LaneSettings{State: core.LanePaused, Fairness: "namespace"},
	}
	w.put(ctx, store.Want{LockLanes: []int32{full.ID}}, &store.Changes{Lanes: []core.Lane{changed}})
	check(changed)
	check(w.lane)
}

func sharedLaneIsNotLocked(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	claim, _ := w.begin(ctx, store.Want{ShareLanes: []int32{w.lane.ID}})
	w.busy(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	claim.Rollback(ctx)
	tx, _ := w.begin(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	tx.Rollback(ctx)
}

func lockedLaneIsNotShared(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	pause, _ := w.begin(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	w.busy(ctx, store.Want{ShareLanes: []int32{w.lane.ID}})
	lane := w.lane
	lane.Settings.State = core.LanePaused
	w.commit(ctx, pause, &store.Changes{Lanes: []core.Lane{lane}})
	tx, got := w.begin(ctx, store.Want{ShareLanes: []int32{w.lane.ID}})
	tx.Rollback(ctx)
	w.equal("lane", lane, got.Lanes[w.lane.ID])
}

func lanesAreShared(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	first, _ := w.begin(ctx, store.Want{ShareLanes: []int32{w.lane.ID}})
	second, _ := w.begin(ctx, store.Want{ShareLanes: []int32{w.lane.ID}})
	w.busy(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	first.Rollback(ctx)
	w.busy(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
	second.Rollback(ctx)
}

// pauseIsABarrier races claims that honour the lane's state against a pause, and checks the queue once the pause is acknowledged: from then on it
// must not change. Each claim files the next execution in its own commit, so that there is work for as long as the pause takes to get its lock.
func pauseIsABarrier(t *testing.T, f Factory) {
	const waiting = 20
	ctx, w := start(t, f)
	w.file(ctx, w.executions(waiting)...)
	var claims atomic.Int64
	started := make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		finished <- together(2, func(int) error { return claimUntilPaused(ctx, w, &claims, started) })
	}()
	select {
	case <-started:
	case err := <-finished:
		t.Fatalf("claims ended before the pause: %v", err)
	}
	lane := w.lane
	lane.Settings.State = core.LanePaused
	w.put(ctx, store.Want{LockLanes: []int32{w.lane.ID}}, &store.Changes{Lanes: []core.Lane{lane}})
	queue := store.Want{Pick: []store.Pick{whole(w.class.ID, 2*waiting)}}
	atPause := w.read(ctx, queue).Picked
	acknowledged := claims.Load()
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	w.equal("length of the queue", waiting, len(atPause))
	w.equal("queue after the pause was acknowledged", atPause, w.read(ctx, queue).Picked)
	// A claim counts after its commit, so that one by each goroutine may have been committed before the pause and counted since.
	if late := claims.Load() - acknowledged; late > 2 {
		t.Fatalf("%d claims were counted after the pause was acknowledged", late)
	}
}

func claimUntilPaused(ctx context.Context, w *world, claims *atomic.Int64, started chan<- struct{}) error {
	want := store.Want{ShareLanes: []int32{w.lane.ID}, Pick: []store.Pick{whole(w.class.ID, 1)}}
	for {
		next := w.execution()
		paused, taken := false, 0
		err := insist(ctx, w.s, want, func(got *store.Loaded) *store.Changes {
			paused, taken = got.Lanes[w.lane.ID].Settings.State == core.LanePaused, len(got.Picked)
			if paused || taken == 0 {
				return nil
			}
			x := claimed(got.Executions[got.Picked[0].ID], w.now)
			return &store.Changes{
				Update: []*core.Execution{x}, Dequeue: got.Picked,
				Insert: []*core.Execution{next}, Enqueue: []store.QueueRow{queueRow(next)},
			}
		})
		switch {
		case err != nil:
			return fmt.Errorf("claim: %w", err)
		case paused:
			return nil
		case taken == 0:
			return errNothingPicked
		}
		if claims.Add(1) == 3 {
			close(started)
		}
		if _, err := w.s.Now(ctx); err != nil { // the lane is not locked meanwhile
			return err
		}
	}
}

var errNothingPicked = errors.New("a claim picked nothing although each files another execution")
