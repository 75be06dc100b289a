package flowfabric_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU132_operators_replay_hold_revoke_retain_and_delete(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		op := w.Operate()
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID

		x := must[*flowfabric.Execution](t)(op.SetPriority(ctx, id, 10_000))
		if x.Priority != 9000 {
			t.Errorf("priority %d, want 9000", x.Priority)
		}
		x = must[*flowfabric.Execution](t)(op.Hold(ctx, id, ops.Action{Reason: "look first"}))
		if x.Status != flowfabric.StatusBlocked || x.Held == nil || x.Held.By != w.who || x.Held.Reason != "look first" {
			t.Errorf("held: %s %+v", x.Status, x.Held)
		}
		if x = must[*flowfabric.Execution](t)(op.ReleaseHold(ctx, id)); x.Status != flowfabric.StatusReady || x.Held != nil {
			t.Errorf("released: %s %+v", x.Status, x.Held)
		}

		claimed := must[*api.Claimed](t)(op.Claim(ctx, id))
		if claimed.Lease.WorkerID != "operator" || claimed.How != "fresh" || string(claimed.Input.Data) != "x" {
			t.Errorf("claimed: %+v", claimed)
		}
		_, err := op.Revoke(ctx, id, ops.RevokeOptions{Action: ops.Action{Expect: ops.Expect{LeaseEpoch: 7}}})
		if flowfabric.CodeOf(err) != "precondition_failed" {
			t.Errorf("Revoke of another epoch = %v, want precondition_failed", err)
		}
		revoked := must[api.Revocation](t)(op.Revoke(ctx, id))
		if revoked.Outcome != "revoked" || revoked.Epoch != 1 || revoked.LeaseID != claimed.Lease.ID {
			t.Errorf("revoked: %+v", revoked)
		}
		if again := must[api.Revocation](t)(op.Revoke(ctx, id)); again.Outcome != "already_satisfied" || again.Cause != "already_revoked" {
			t.Errorf("revoked again: %+v", again)
		}

		if err := op.Delete(ctx, id); flowfabric.CodeOf(err) != "execution_not_terminal" {
			t.Errorf("Delete of what waits = %v", err)
		}
		must[*flowfabric.Execution](t)(w.Cancel(ctx, id, "enough"))
		x = must[*flowfabric.Execution](t)(w.Cancel(ctx, id, "again"))
		if x.Cancellation == nil || x.Cancellation.Source != "operator" || x.Cancellation.Reason != "enough" {
			t.Errorf("cancelled: %+v", x.Cancellation)
		}
		if _, err := op.Retain(ctx, id, ops.RetainOptions{}); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("Retain without a reason = %v", err)
		}
		x = must[*flowfabric.Execution](t)(op.Retain(ctx, id, ops.RetainOptions{Action: ops.Action{Reason: "audit"}}))
		if x.Retained == nil || x.Retained.Reason != "audit" {
			t.Errorf("retained: %+v", x.Retained)
		}
		if err := op.Delete(ctx, id); flowfabric.CodeOf(err) != "retained" {
			t.Errorf("Delete of what is retained = %v", err)
		}
		must[*flowfabric.Execution](t)(op.Unretain(ctx, id))
		if err := op.Delete(ctx, id); err != nil {
			t.Errorf("Delete = %v", err)
		}
		if _, err := w.Get(ctx, id); flowfabric.CodeOf(err) != "execution_not_found" {
			t.Errorf("Get of what was deleted = %v", err)
		}
	})
}

func TestU132_tags_change_all_or_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{
			Tags: map[string]string{"keep": "1", "drop": "2"},
		}))).ID
		three := "3"
		tags := must[map[string]string](t)(w.Executions().SetTags(ctx, id, map[string]*string{"drop": nil, "new": &three}))
		if len(tags) != 2 || tags["keep"] != "1" || tags["new"] != "3" {
			t.Errorf("tags %v", tags)
		}
		if _, err := w.Executions().SetTags(ctx, id, map[string]*string{"keep": nil, "Bad Key": &three}); flowfabric.CodeOf(err) != "invalid_tag_key" {
			t.Errorf("a bad key = %v", err)
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, id)); x.Tags["keep"] != "1" {
			t.Errorf("a refused change left tags %v", x.Tags)
		}
	})
}

func TestU132_bulk_counts_first_and_acts_on_what_matches(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		for range 7 {
			must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Lane: "bulk"})))
		}
		other := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"))))
		request := ops.BulkRequest{Action: api.BulkCancel, Filter: ops.Filter{Lane: []string{"bulk"}}, DryRun: true, Reason: "clean up"}
		dry := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, request))
		if dry.Matched != 7 || len(dry.Sample) != 7 || !dry.DryRun {
			t.Errorf("dry run: %+v", dry)
		}
		request.DryRun = false
		if _, err := w.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkCancel}); !isInvalid(err) {
			t.Errorf("a job without a selection = %v", err)
		}
		few := 3
		request.MaxAffected = &few
		if _, err := w.Operate().Bulk(ctx, request); flowfabric.CodeOf(err) != "bulk_limit_exceeded" {
			t.Errorf("more than allowed = %v", err)
		}
		request.MaxAffected = nil
		job := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, request))
		job = awaitJob(t, w, job)
		if job.Done != 7 || job.Failed != 0 {
			t.Errorf("the job did %d, failed %d, refused %v", job.Done, job.Failed, job.Refused)
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, other.ID)); x.Status != flowfabric.StatusReady {
			t.Errorf("one that was not selected is %s", x.Status)
		}
		var ids []string
		for j, err := range w.Operate().BulkJobs(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, j.ID)
		}
		if !slices.Contains(ids, job.ID) {
			t.Errorf("jobs %q lack %s", ids, job.ID)
		}
		if _, err := w.Operate().StopBulk(ctx, "0190f0c2-1111-7aaa-8bbb-0123456789ab"); flowfabric.CodeOf(err) != "job_not_found" {
			t.Errorf("StopBulk of no job = %v", err)
		}
	})
}

func isInvalid(err error) bool { return strings.HasPrefix(flowfabric.CodeOf(err), "invalid_") }

// awaitJob waits for the event that says that a job has ended.
func awaitJob(t *testing.T, w *world, job *api.BulkJob) *api.BulkJob {
	t.Helper()
	ctx := inTime(t)
	for _, err := range w.Events().Follow(ctx, ops.ReadOptions{
		After: api.FromStart, EventFilter: ops.EventFilter{Kinds: []string{"bulk.finished"}},
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen := must[*api.BulkJob](t)(w.Operate().BulkStatus(ctx, job.ID)); seen.State == "done" {
			return seen
		}
	}
	t.Fatal("the job did not end")
	return nil
}

func TestU132_lanes_open_and_close(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		lanes := w.Lanes()
		if _, err := lanes.Get(ctx, "none"); flowfabric.CodeOf(err) != "lane_not_found" {
			t.Errorf("Get of no lane = %v", err)
		}
		settings := api.LaneSettings{
			MaxConcurrent: 3, Ageing: time.Second, Fairness: "key", FairnessWeights: map[string]int{"a": 2},
			Retention: flowfabric.Retention{Failed: time.Hour, Succeeded: flowfabric.KeepForever, Skipped: -1},
		}
		lane := must[*api.Lane](t)(lanes.Put(ctx, "slow", settings))
		if s := lane.LaneSettings; s.State != api.LaneActive || s.MaxConcurrent != 3 || s.Ageing != time.Second || s.Fairness != "key" ||
			s.FairnessWeights["a"] != 2 || s.Retention != settings.Retention.Normalized() || s.Retention.Skipped != flowfabric.KeepForever {
			t.Errorf("settings %+v", lane.LaneSettings)
		}
		in := flowfabric.SubmitOptions{Lane: "slow"}
		must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"), in)))
		for state, change := range map[api.LaneState]func(context.Context, string, ...ops.LaneAction) (*api.Lane, error){
			api.LanePaused: lanes.Pause, api.LaneDraining: lanes.Drain, api.LaneDisabled: lanes.Disable,
		} {
			if lane := must[*api.Lane](t)(change(ctx, "slow", ops.LaneAction{Reason: "test"})); lane.State != state || lane.MaxConcurrent != 3 {
				t.Errorf("%s: %+v", state, lane.LaneSettings)
			}
			_, err := w.Submit(ctx, echo.Submission(flowfabric.Text("x"), in))
			if accepted := state == api.LanePaused; accepted != (err == nil) || err != nil && flowfabric.CodeOf(err) != "lane_not_accepting" {
				t.Errorf("submit to a %s lane = %v", state, err)
			}
		}
		if lane := must[*api.Lane](t)(lanes.Resume(ctx, "slow")); lane.State != api.LaneActive {
			t.Errorf("resumed: %s", lane.State)
		}
		var names []string
		for lane, err := range lanes.List(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, lane.Name)
		}
		if !slices.Equal(names, []string{"slow"}) {
			t.Errorf("lanes %q", names)
		}
	})
}

func TestU77_the_commands_of_an_execution_are_done_in_order_however_its_id_is_spelled(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x"))))
		claim := api.ClaimRequest{WorkerID: "hand", InstanceID: "hand-1", Lanes: []string{"default"}, Wait: patience}
		task := must[api.ClaimAnswer](t)(w.Work().Claim(ctx, claim)).Tasks[0]
		full := flowfabric.ID(fmt.Sprintf("{fp:%d}:%s", task.Partition, task.ID))
		var items []api.WorkItem
		for n := range 20 { // at once, some of them would come after the end
			item := api.WorkItem{Op: api.OpStep, ID: task.ID, Lease: task.Lease, Step: strconv.Itoa(n), Result: flowfabric.Text("done")}
			if n%2 == 0 {
				item.ID = full
			}
			items = append(items, item)
		}
		items = append(items, api.WorkItem{Op: api.OpComplete, ID: full, Lease: task.Lease})
		for i, answer := range must[[]api.WorkAnswer](t)(w.Work().Do(ctx, items...)) {
			if answer.Err != nil {
				t.Errorf("item %d: %v", i, answer.Err)
			}
		}
	})
}

func TestU132_the_worker_protocol_by_hand(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		work := w.Work()
		must[api.RegisterResult](t)(work.Register(ctx, api.Registration{WorkerID: "hand", InstanceID: "hand-1", Lanes: []string{"default"}}))
		ids := []flowfabric.ID{}
		for range 2 {
			ids = append(ids, must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID)
		}
		request := api.ClaimRequest{WorkerID: "hand", InstanceID: "hand-1", Lanes: []string{"default"}, Max: 2, RequestKey: "k"}
		answer := must[api.ClaimAnswer](t)(work.Claim(ctx, request))
		if len(answer.Tasks) != 2 || answer.ServerTime.IsZero() {
			t.Fatalf("claimed %d tasks at %s", len(answer.Tasks), answer.ServerTime)
		}
		again := must[api.ClaimAnswer](t)(work.Claim(ctx, request))
		if len(again.Tasks) != 2 || again.Tasks[0].Lease.Epoch != 1 {
			t.Errorf("the same claim again gave %d tasks", len(again.Tasks))
		}
		first, second := answer.Tasks[0], answer.Tasks[1]
		beat := must[api.Heartbeat](t)(work.Heartbeat(ctx, "hand-1", []api.Lease{first.Lease, second.Lease}))
		if !beat.Registered || len(beat.Leases) != 2 || beat.Leases[0].Err != nil || beat.Leases[1].Err != nil {
			t.Errorf("heartbeat %+v", beat)
		}
		stale := second.Lease
		stale.Epoch = 9
		half := 50
		answers := must[[]api.WorkAnswer](t)(work.Do(ctx,
			api.WorkItem{Op: api.OpProgress, ID: first.ID, Lease: first.Lease, Percent: &half},
			api.WorkItem{Op: api.OpStep, ID: first.ID, Lease: first.Lease, Step: "s", Result: flowfabric.Text("one")},
			api.WorkItem{Op: api.OpRenew, ID: first.ID, Lease: first.Lease, TTL: time.Minute},
			api.WorkItem{Op: api.OpComplete, ID: first.ID, Lease: first.Lease, Result: flowfabric.Text("y")},
			api.WorkItem{Op: api.OpComplete, ID: second.ID, Lease: stale},
			api.WorkItem{Op: api.OpComplete, ID: second.ID},
			api.WorkItem{Op: "odd", ID: second.ID, Lease: second.Lease},
		))
		for i, want := range []string{"", "", "", "", "stale_lease", "fence_required", "invalid_argument"} {
			if code := flowfabric.CodeOf(answers[i].Err); code != want {
				t.Errorf("item %d: %v, want %q", i, answers[i].Err, want)
			}
		}
		if answers[1].Outcome != "stored" || answers[3].Status != flowfabric.StatusSucceeded {
			t.Errorf("answers %+v", answers)
		}
		override := must[[]api.WorkAnswer](t)(work.Do(ctx, api.WorkItem{Op: api.OpFail, ID: second.ID, Override: true, Class: api.ClassPermanent, Message: "no"}))
		if override[0].Err != nil || override[0].Outcome != "failed" {
			t.Errorf("override: %+v", override[0])
		}
		attempts := must[[]api.Attempt](t)(w.Executions().Attempts(ctx, second.ID))
		if len(attempts) != 1 || attempts[0].State != "ended_failure" || attempts[0].Failure.Message != "no" {
			t.Errorf("attempts %+v", attempts)
		}
		if !slices.Contains(ids, first.ID) {
			t.Errorf("claimed %s, which was not submitted", first.ID)
		}
	})
}
