package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// bulk starts a job and waits for its end.
func (w *world) bulk(r engine.BulkRequest) engine.BulkView {
	w.t.Helper()
	return w.ended(must(w.e.Bulk(w.ctx(), operator, r))(w.t).JobID)
}

func (w *world) ended(job base.UUID) engine.BulkView {
	w.t.Helper()
	var view engine.BulkView
	eventually(w.t, "end of the job", func() bool {
		view = must(w.e.BulkStatus(w.ctx(), operator, job))(w.t)
		return view.State != "running"
	})
	return view
}

func kindFilter(kind string) core.Filter { return core.Filter{Kind: []string{kind}} }

func TestLC20_bulk_cancel_with_dry_run_and_limit(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(25, core.Submission{Kind: "a"})
		spared := w.submit(core.Submission{Kind: "b"})
		dry := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "cancel", Filter: kindFilter("a"), DryRun: true}))(t)
		same(t, "dry run", [3]any{dry.Total, len(dry.Sample), dry.DryRun}, [3]any{25, 20, true})
		_, err := w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "cancel", Filter: kindFilter("a"), MaxAffected: ptr(24)})
		refused(t, err, base.CodeBulkLimitExceeded)
		same(t, "nothing changed", must(w.e.Count(w.ctx(), client, core.Filter{Status: []string{"ready"}}))(t).Total, 26)
		view := w.bulk(engine.BulkRequest{Action: "cancel", Filter: kindFilter("a"), MaxAffected: ptr(25), Reason: "all of them"})
		same(t, "job", [5]any{view.State, view.Total, view.Done, view.Failed, len(view.Refused)}, [5]any{"done", 25, 25, 0, 0})
		w.is(spared, core.Ready, core.WaitingForWorker)
		same(t, "cancelled", must(w.e.Count(w.ctx(), client, core.Filter{Status: []string{"cancelled"}}))(t).Total, 25)
		kinds := []string{}
		for _, ev := range w.events(engine.EventFilter{Kinds: []string{"bulk."}}) {
			kinds = append(kinds, ev.Kind)
		}
		same(t, "events", kinds, []string{"bulk.started", "bulk.finished"})
	})
}

func TestLC20_refused_rows_are_counted_and_stop_nothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for range 3 {
			w.complete(w.started(core.Submission{}))
		}
		capped := w.started(policy(`{"max_replay_count":0}`))
		w.complete(capped)
		w.submit(core.Submission{})
		view := w.bulk(engine.BulkRequest{Action: "replay", Filter: kindFilter("k"), Args: engine.BulkArgs{ReplayRequest: engine.ReplayRequest{KeepSteps: true}}})
		same(t, "done", view.Done, 3)
		same(t, "refused", view.Refused, map[base.Code]int{base.CodeMaxReplaysExhausted: 1, base.CodeExecutionNotTerminal: 1})
		ids := []base.GivenID{given(capped), {UUID: base.UUID{1}}}
		view = w.bulk(engine.BulkRequest{Action: "tag", IDs: ids, Args: engine.BulkArgs{Tags: map[string]*string{"x": ptr("1")}}})
		same(t, "by ids", [2]any{view.Done, view.Refused}, [2]any{1, map[base.Code]int{base.CodeExecutionNotFound: 1}})
	})
}

func TestLC20_every_action(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		do := func(action string, args engine.BulkArgs) {
			t.Helper()
			same(t, action, w.bulk(engine.BulkRequest{Action: action, Filter: kindFilter("k"), Args: args, Reason: "r"}).Done, 1)
		}
		do("priority", engine.BulkArgs{Priority: 77})
		same(t, "priority", w.get(id).Priority, 77)
		do("hold", engine.BulkArgs{})
		w.is(id, core.Blocked, core.PausedByOperator)
		do("release_hold", engine.BulkArgs{})
		w.is(id, core.Ready, core.WaitingForWorker)
		do("tag", engine.BulkArgs{Tags: map[string]*string{"a": ptr("b")}})
		same(t, "tags", w.get(id).Tags, base.Tags{"a": "b"})
		do("cancel", engine.BulkArgs{})
		w.is(id, core.Cancelled, core.CancelledByRequest)
		do("retain", engine.BulkArgs{Until: w.now() + 1000})
		same(t, "retained", w.get(id).Retain.Until, w.now()+1000)
		view := w.bulk(engine.BulkRequest{Action: "delete", Filter: kindFilter("k")})
		same(t, "retained rows stay", view.Refused, map[base.Code]int{base.CodeRetained: 1})
		w.turn(1000)
		do("delete", engine.BulkArgs{})
		_, err := w.e.Describe(w.ctx(), client, id)
		refused(t, err, base.CodeExecutionNotFound)
	})
}

func TestL137_a_bulk_request_says_what_it_means(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id := w.submit(core.Submission{})
		for name, r := range map[string]engine.BulkRequest{
			"no filter":      {Action: "cancel"},
			"both":           {Action: "cancel", Filter: kindFilter("k"), All: true},
			"ids and filter": {Action: "cancel", Filter: kindFilter("k"), IDs: []base.GivenID{id}},
			"action":         {Action: "explode", All: true},
			"limit":          {Action: "cancel", All: true, MaxAffected: ptr(-1)},
		} {
			if _, err := w.e.Bulk(w.ctx(), operator, r); base.CodeOf(err) != base.CodeInvalidArgument {
				t.Errorf("%s: %v", name, err)
			}
		}
		for key, value := range map[string]*string{"no tag": ptr("1"), "ff.x": nil} { // no execution would take them
			_, err := w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "tag", All: true, Args: engine.BulkArgs{Tags: map[string]*string{key: value}}})
			refused(t, err, base.CodeInvalidTagKey)
		}
		_, err := w.e.BulkStatus(w.ctx(), operator, base.UUID{1})
		refused(t, err, base.CodeJobNotFound)
		_, err = w.e.StopBulk(w.ctx(), operator, base.UUID{1}, "")
		refused(t, err, base.CodeJobNotFound)
		same(t, "all", w.bulk(engine.BulkRequest{Action: "hold", All: true}).Done, 1)
	})
}

func TestLC15_a_bulk_job_repeats_by_request_key(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(3, core.Submission{})
		r := engine.BulkRequest{Action: "priority", Args: engine.BulkArgs{Priority: 3}, Filter: kindFilter("k"), RequestKey: "once"}
		first := w.bulk(r)
		again := must(w.e.Bulk(w.ctx(), operator, r))(t)
		same(t, "the same job", again.JobID, first.JobID)
		r.Args.Priority = 4
		_, err := w.e.Bulk(w.ctx(), operator, r)
		refused(t, err, base.CodeIdempotencyConflict)
		same(t, "jobs", len(must(w.e.BulkJobs(w.ctx(), operator))(t)), 1)
	})
}

func TestL138_a_job_survives_a_restart_in_the_middle_and_does_each_row_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		stop := &stopAfter{name: "bulk_batch", left: 2}
		w.cfg.Probe = stop
		w.restart()
		w.submitMany(1800, core.Submission{})
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "priority", Args: engine.BulkArgs{Priority: 5}, Filter: kindFilter("k")}))(t)
		eventually(t, "the middle of the job", func() bool { return stop.refused.Load() > 0 })
		view := must(w.e.BulkStatus(w.ctx(), operator, job.JobID))(t)
		same(t, "in the middle", [2]any{view.State, view.Done}, [2]any{"running", 1000})
		w.cfg.Probe = nil
		w.restart()
		w.turn(10_000) // what a dead process had taken shows up again
		view = w.ended(job.JobID)
		same(t, "job", [3]any{view.State, view.Total, view.Done}, [3]any{"done", 1800, 1800})
		same(t, "each row once", len(w.events(engine.EventFilter{Kinds: []string{"execution.priority_changed"}})), 1800)
	})
}

func TestL138_a_job_can_be_stopped(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		stop := &stopAfter{name: "bulk_batch", left: 1}
		w.cfg.Probe = stop
		w.restart()
		w.submitMany(600, core.Submission{})
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "hold", Filter: kindFilter("k")}))(t)
		eventually(t, "the middle of the job", func() bool { return stop.refused.Load() > 0 })
		view := must(w.e.StopBulk(w.ctx(), operator, job.JobID, ""))(t)
		same(t, "stopped", [2]any{view.State, view.Done}, [2]any{"stopped", 500})
		stop.open.Store(true)
		w.turn(10_000)
		w.hold(w.submit(core.Submission{Kind: "other"}))
		view = must(w.e.BulkStatus(w.ctx(), operator, job.JobID))(t)
		same(t, "what is done stays done, nothing more", [2]any{view.State, view.Done}, [2]any{"stopped", 500})
		same(t, "stop again", must(w.e.StopBulk(w.ctx(), operator, job.JobID, ""))(t).State, "stopped")
	})
}

func TestL137_rows_created_after_the_start_are_left_alone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(3, core.Submission{})
		view := w.bulk(engine.BulkRequest{Action: "cancel", Filter: kindFilter("k")})
		same(t, "done", view.Done, 3)
		w.turn(1)
		late := w.submit(core.Submission{})
		w.turn(10_000)
		w.is(late, core.Ready, core.WaitingForWorker)
	})
}

func TestL138_an_id_given_twice_is_done_and_counted_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		ids := w.submitMany(2, core.Submission{})
		bare := base.GivenID{UUID: ids[0].UUID}
		twice := engine.BulkRequest{Action: "cancel", IDs: []base.GivenID{ids[0], ids[1], bare, ids[1]}, MaxAffected: ptr(2)}
		dry := twice
		dry.DryRun = true
		same(t, "dry run", must(w.e.Bulk(w.ctx(), operator, dry))(t).Total, 2)
		view := w.bulk(twice)
		same(t, "job", [3]int{view.Total, view.Done, len(view.Refused)}, [3]int{2, 2, 0})
		same(t, "what it did", len(w.items(view.JobID, nil)), 2)
	})
}

// behind is a store that shows a bulk job as it was before its first batch until the second batch begins, as if another process had done the first
// one meanwhile.
type behind struct {
	store.Store
	mu      sync.Mutex
	job     base.UUID
	first   *store.Loaded
	batches int
}

func (b *behind) about(want store.Want) bool {
	return len(want.Docs) > 0 && want.Docs[0].Key == b.job.String()
}

func (b *behind) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	loaded, err := b.Store.Read(ctx, want)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil || !b.about(want):
	case b.batches == 0:
		b.first = loaded
	case b.batches == 1:
		return b.first, nil
	}
	return loaded, err
}

func (b *behind) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	b.mu.Lock()
	if b.about(want) {
		b.batches++
	}
	b.mu.Unlock()
	return b.Store.Begin(ctx, want)
}

func TestU57_a_batch_that_another_process_has_done_is_not_done_again(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		const n = 501 // more than one batch
		ids := w.submitMany(n, core.Submission{})
		closeEngine(t, w.e)
		late := &behind{Store: w.store}
		w.cfg.NoTimers = true
		w.e = w.openEngine(late)
		job := must(w.e.Bulk(w.ctx(), operator, engine.BulkRequest{Action: "priority", IDs: ids, Args: engine.BulkArgs{Priority: 9}}))(t).JobID
		closeEngine(t, w.e)
		late.job, w.cfg.NoTimers = job, false
		w.e = w.openEngine(late)
		view := w.ended(job)
		same(t, "each is done once", [3]any{view.Done, view.Failed, len(view.Refused)}, [3]any{n, 0, 0})
		late.mu.Lock()
		defer late.mu.Unlock()
		same(t, "batches, one of them again", late.batches, 3)
	})
}
