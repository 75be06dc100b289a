package flowfabric_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// failedFlow is a flow that has failed: a failed, so that b was skipped, and c after it; d succeeded.
func (w *world) failedFlow(t *testing.T) map[string]flowfabric.ID {
	t.Helper()
	ctx := inTime(t)
	run := must[*flowfabric.FlowRun](t)(w.Flows().Submit(ctx, flowfabric.Flow{Kind: "graph", Nodes: []flowfabric.Node{
		part.Node("a", "fail"), part.Node("b", "B").After("a"), part.Node("c", "C").After("b"), part.Node("d", "D"), part.Node("e", "E").AfterFailure("a"),
	}}))
	must[*flowfabric.FlowView](t)(w.Flows().Wait(ctx, run.ID))
	return run.Members
}

// shapes tells the states of members, with what is left of their deadlines.
func (w *world) shapes(t *testing.T, members map[string]flowfabric.ID) map[string]string {
	t.Helper()
	shapes := map[string]string{}
	for name, id := range members {
		x := must[*flowfabric.Execution](t)(w.Get(inTime(t), id))
		shapes[name] = string(x.Status) + " " + x.Reason
		if !x.DeadlineAt.IsZero() {
			shapes[name] += " until " + x.DeadlineAt.Format(time.RFC3339)
		}
	}
	return shapes
}

func TestU57_a_bulk_replay_does_with_each_argument_what_a_replay_does(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Hour).Truncate(time.Second)
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		stop := w.parts(t)
		type pair struct{ single, many map[string]flowfabric.ID }
		cases := []struct {
			name, member, code string
			how                ops.ReplayOptions
			pair
		}{
			{name: "nothing", member: "a"},
			{name: "cascade", member: "a", how: ops.ReplayOptions{Cascade: ops.CascadeSkipped}},
			{name: "cascade to all", member: "a", how: ops.ReplayOptions{Cascade: ops.CascadeAll}},
			{name: "deadline", member: "a", how: ops.ReplayOptions{Deadline: deadline}},
			{name: "deadline of one that waits for nothing", member: "d", how: ops.ReplayOptions{Deadline: deadline}},
			{name: "impossible", member: "b", code: "dependencies_impossible"},
			{name: "ignore dependencies", member: "b", how: ops.ReplayOptions{IgnoreDependencies: true}},
			{name: "keep steps", member: "a", how: ops.ReplayOptions{KeepSteps: true, Cascade: ops.CascadeSkipped, Deadline: deadline}},
		}
		for i := range cases {
			cases[i].pair = pair{w.failedFlow(t), w.failedFlow(t)}
		}
		stop()
		for _, c := range cases {
			_, err := w.Operate().Replay(ctx, c.single[c.member], c.how)
			if flowfabric.CodeOf(err) != c.code {
				t.Errorf("%s: %v", c.name, err)
			}
			job := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, ops.BulkRequest{
				Action: api.BulkReplay, IDs: []flowfabric.ID{c.many[c.member]}, Deadline: c.how.Deadline, KeepSteps: c.how.KeepSteps,
				Cascade: c.how.Cascade, IgnoreDependencies: c.how.IgnoreDependencies,
			}))
			job = must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
			if refused := job.Refused[c.code]; (c.code == "") != (job.Done == 1) || (c.code != "") != (refused == 1) {
				t.Errorf("%s: %+v", c.name, job)
			}
			if single, many := w.shapes(t, c.single), w.shapes(t, c.many); !maps.Equal(single, many) {
				t.Errorf("%s: a replay makes %v, a bulk replay %v", c.name, single, many)
			}
		}
	})
}

func TestU57_a_bulk_replay_of_executions_outside_flows_takes_a_deadline_and_refuses_what_a_replay_refuses(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID
		must[*flowfabric.Execution](t)(w.Cancel(ctx, id, "not now"))
		bulk := func(change func(*ops.BulkRequest)) (*api.BulkJob, error) {
			r := ops.BulkRequest{Action: api.BulkReplay, IDs: []flowfabric.ID{id}}
			change(&r)
			return w.Operate().Bulk(ctx, r)
		}
		if _, err := bulk(func(r *ops.BulkRequest) { r.Deadline = time.Now().Add(-time.Hour) }); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("a deadline that has passed: %v", err)
		}
		if _, err := bulk(func(r *ops.BulkRequest) { r.Cascade = "some" }); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("an unknown cascade: %v", err)
		}
		deadline := time.Now().Add(time.Hour).Truncate(time.Second)
		job := must[*api.BulkJob](t)(bulk(func(r *ops.BulkRequest) { r.Deadline = deadline }))
		must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, id)); x.Status != flowfabric.StatusReady || !x.DeadlineAt.Equal(deadline) {
			t.Errorf("%s until %s, want ready until %s", x.Status, x.DeadlineAt, deadline)
		}
	})
}

func TestU57_a_bulk_signal_refuses_executions_of_another_lane_as_an_approval_does(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			said, err := flowfabric.AwaitSignal[string](ctx, task, "word")
			return []string{said}, err
		})
		w.awaits(t, run.ID(), "word")
		for _, c := range []struct {
			lane string
			done int
		}{{"elsewhere", 0}, {"default", 1}} {
			job := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, ops.BulkRequest{
				Action: api.BulkSignal, IDs: []flowfabric.ID{run.ID()}, Signal: &ops.Approve{Lane: c.lane, Payload: flowfabric.Text("yes")},
			}))
			job = must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
			if job.Done != c.done || job.Refused["lane_mismatch"] != 1-c.done {
				t.Errorf("%s: %+v", c.lane, job)
			}
		}
	})
}

func TestU57_a_bulk_job_refuses_arguments_of_other_actions(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		for field, r := range map[string]ops.BulkRequest{
			"args.priority":    {Action: api.BulkCancel, Priority: 5},
			"args.tags":        {Action: api.BulkHold, Tags: map[string]*string{"a": nil}},
			"args.until":       {Action: api.BulkDelete, Until: time.Now().Add(time.Hour)},
			"args.delay_ms":    {Action: api.BulkReplay, KeepSteps: true, Delay: time.Hour},
			"args.name":        {Action: api.BulkResume, Signal: &ops.Approve{}},
			"args.deadline_at": {Action: api.BulkSignal, Signal: &ops.Approve{}, Deadline: time.Now().Add(time.Hour)},
		} {
			r.All = true
			for _, r.DryRun = range []bool{true, false} {
				_, err := w.Operate().Bulk(ctx, r)
				var refusal *flowfabric.Error
				if !errors.As(err, &refusal) || refusal.Code != "unknown_field" || strings.ReplaceAll(strings.TrimPrefix(refusal.Field, "/"), "/", ".") != field {
					t.Errorf("%s: %v", field, err)
				}
			}
		}
	})
}
