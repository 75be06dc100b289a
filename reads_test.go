package flowfabric_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// claimed is one execution that the instance takes.
func (w *world) claimed(t *testing.T, instance string) *api.Claimed {
	t.Helper()
	answer := must[api.ClaimAnswer](t)(w.Work().Claim(inTime(t), api.ClaimRequest{
		WorkerID: "hand", InstanceID: instance, Lanes: []string{"default"}, Wait: 20 * time.Second,
	}))
	if len(answer.Tasks) != 1 {
		t.Fatalf("claimed %d", len(answer.Tasks))
	}
	return answer.Tasks[0]
}

func (w *world) submitted(t *testing.T, o flowfabric.SubmitOptions) flowfabric.ID {
	t.Helper()
	return must[flowfabric.SubmitResult](t)(w.Submit(inTime(t), echo.Submission(flowfabric.Text("x"), o))).ID
}

func TestU35_a_client_counts_by_value(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.submitted(t, flowfabric.SubmitOptions{Lane: "a", Tags: map[string]string{"tier": "gold"}})
		w.submitted(t, flowfabric.SubmitOptions{Lane: "b", Tags: map[string]string{"tier": "gold"}})
		w.submitted(t, flowfabric.SubmitOptions{Lane: "b"})
		count := func(by string) api.Count {
			t.Helper()
			return must[api.Count](t)(w.Executions().Count(ctx, ops.Filter{}, ops.CountOptions{By: by}))
		}
		for by, want := range map[string]map[string]int{
			"status": {"ready": 3}, "public_state": {"waiting": 3}, "lane": {"a": 1, "b": 2}, "tag.tier": {"gold": 2}, "": nil,
		} {
			if got := count(by); got.Total != 3 || got.AtLeast || got.AsOf.IsZero() || !cmp.Equal(want, got.Counts) {
				t.Errorf("by %q: %+v", by, got)
			}
		}
		if _, err := w.Executions().Count(ctx, ops.Filter{}, ops.CountOptions{By: "odd"}); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("by odd = %v", err)
		}
	})
}

func TestU58_a_client_reads_what_a_bulk_job_did(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		ended := w.submitted(t, flowfabric.SubmitOptions{Lane: "l"})
		must[*flowfabric.Execution](t)(w.Cancel(ctx, ended, "no"))
		waiting := w.submitted(t, flowfabric.SubmitOptions{Lane: "l"})
		job := must[*api.BulkJob](t)(w.Operate().Bulk(ctx, ops.BulkRequest{
			Action: api.BulkHold, Filter: ops.Filter{Lane: []string{"l"}}, RatePerSecond: 1000,
		}))
		job = must[*api.BulkJob](t)(w.Operate().WaitBulk(ctx, job.ID))
		if job.State != "done" || job.Done != 1 || job.RatePerSecond != 1000 {
			t.Errorf("job %+v", job)
		}
		var seen []flowfabric.ID
		for item, err := range w.Operate().BulkItems(ctx, job.ID, ops.BulkItemOptions{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, item.ID)
		}
		if !cmp.Equal(seen, []flowfabric.ID{ended, waiting}) {
			t.Errorf("items %q", seen)
		}
		no := false
		page := must[flowfabric.Page[api.BulkItem]](t)(w.Operate().BulkItemsPage(ctx, job.ID, ops.BulkItemOptions{OK: &no}))
		if len(page.Items) != 1 || page.Items[0].ID != ended || page.Items[0].OK || !errors.Is(page.Items[0].Err, flowfabric.ErrState) || page.NextCursor != "" {
			t.Errorf("refused ones %+v", page)
		}
		jobs := must[flowfabric.Page[*api.BulkJob]](t)(w.Operate().BulkJobsPage(ctx, flowfabric.PageOptions{Limit: 1}))
		if len(jobs.Items) != 1 || jobs.Items[0].ID != job.ID || jobs.NextCursor != "" {
			t.Errorf("jobs %+v", jobs)
		}
		if _, err := w.Operate().BulkItemsPage(ctx, "odd"); flowfabric.CodeOf(err) != "invalid_id" {
			t.Errorf("items of odd = %v", err)
		}
	})
}

func TestU100_a_client_sees_what_goes_on_in_a_lane_and_changes_what_it_saw(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.submitted(t, flowfabric.SubmitOptions{})
		w.claimed(t, "hand-1")
		w.submitted(t, flowfabric.SubmitOptions{})
		must[api.Count](t)(w.Executions().Count(ctx, ops.Filter{})) // waits for what lists show
		lane := must[*api.Lane](t)(w.Lanes().Get(ctx, "default"))
		if lane.Workers != 1 || lane.OldestReadyAt.IsZero() || lane.Rates.Submitted.OneMinute <= 0 || lane.Rates.Started.FiveMinutes <= 0 {
			t.Errorf("lane %+v", lane)
		}
		if lane.Counts[flowfabric.StatusReady] != 1 || lane.Counts[flowfabric.StatusRunning] != 1 {
			t.Errorf("counts %v", lane.Counts)
		}
		must[*api.Lane](t)(w.Lanes().Pause(ctx, "default", ops.LaneAction{Revision: &lane.Revision}))
		if _, err := w.Lanes().Resume(ctx, "default", ops.LaneAction{Revision: &lane.Revision}); flowfabric.CodeOf(err) != "precondition_failed" {
			t.Errorf("a stale revision = %v", err)
		}
		must[*api.Lane](t)(w.Lanes().Put(ctx, "another", api.LaneSettings{}))
		page := must[flowfabric.Page[*api.Lane]](t)(w.Lanes().Page(ctx, flowfabric.PageOptions{Limit: 1}))
		if len(page.Items) != 1 || page.Items[0].Name != "another" || page.NextCursor == "" {
			t.Errorf("page %+v", page)
		}
		workers := must[flowfabric.Page[*api.Worker]](t)(w.Workers().Page(ctx, ops.WorkerFilter{Lane: "default", Limit: 1}))
		if len(workers.Items) != 1 || workers.NextCursor != "" {
			t.Errorf("workers %+v", workers)
		}
	})
}

func TestU26_policy_attempts_leases_and_the_detail_of_a_failure_are_shown(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := w.submitted(t, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{AttemptTimeout: time.Hour}})
		if _, err := w.Executions().Attempt(ctx, id, 0); flowfabric.CodeOf(err) != "attempt_not_found" {
			t.Errorf("an attempt before the first = %v", err)
		}
		task := w.claimed(t, "hand-1")
		for _, text := range []json.RawMessage{task.Policy, must[*flowfabric.Execution](t)(w.Get(ctx, id)).Policy} {
			var policy struct {
				Timeouts struct {
					Attempt int `json:"attempt_timeout_ms"`
				} `json:"timeout_policy"`
				Reclaims int `json:"max_reclaim_count"`
			}
			if err := json.Unmarshal(text, &policy); err != nil || policy.Timeouts.Attempt != 3_600_000 || policy.Reclaims != 10 {
				t.Errorf("policy %s: %v", text, err)
			}
		}
		must[[]api.WorkAnswer](t)(w.Work().Do(ctx, api.WorkItem{Op: api.OpDelay, ID: id, Lease: task.Lease}))
		task = w.claimed(t, "hand-1")
		detail := flowfabric.Bytes([]byte{0, 0xff, '\n'}, "application/x-odd")
		answers := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, api.WorkItem{Op: api.OpFail, ID: id, Lease: task.Lease, Message: "no", Detail: detail}))
		if answers[0].Err != nil {
			t.Fatal(answers[0].Err)
		}
		attempt := must[*api.Attempt](t)(w.Executions().Attempt(ctx, id, ops.LatestAttempt))
		for _, got := range []flowfabric.Payload{attempt.Failure.Detail, must[*flowfabric.Execution](t)(w.Get(ctx, id)).Failure.Detail} {
			if string(got.Data) != string(detail.Data) || got.ContentType != detail.ContentType {
				t.Errorf("detail %q of %s", got.Data, got.ContentType)
			}
		}
		first := must[flowfabric.Page[api.LeaseRecord]](t)(w.Executions().LeasesPage(ctx, id, flowfabric.PageOptions{Limit: 1}))
		second := must[flowfabric.Page[api.LeaseRecord]](t)(w.Executions().LeasesPage(ctx, id, flowfabric.PageOptions{Limit: 1, Cursor: first.NextCursor}))
		if first.Items[0].Epoch != 1 || first.NextCursor == "" || second.Items[0].Epoch != 2 || second.NextCursor != "" {
			t.Errorf("leases %+v, then %+v", first, second)
		}
	})
}

func TestU66_a_renewal_tells_a_client_to_drain(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		w.submitted(t, flowfabric.SubmitOptions{})
		task := w.claimed(t, "hand-1")
		renew := api.WorkItem{Op: api.OpRenew, ID: task.ID, Lease: task.Lease}
		for _, drain := range []bool{false, true} {
			if drain {
				if err := w.Workers().Drain(ctx, ops.WorkerTarget{InstanceID: "hand-1"}); err != nil {
					t.Fatal(err)
				}
			}
			answer := must[[]api.WorkAnswer](t)(w.Work().Do(ctx, renew))[0]
			if answer.Err != nil || answer.Renewal.Drain != drain {
				t.Errorf("drain %v: %+v", drain, answer)
			}
		}
	})
}

func TestU33_a_batch_is_submitted_whole_or_not_at_all(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		good := echo.Submission(flowfabric.Text("x"))
		for _, bad := range []flowfabric.Submission{
			{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{Lane: "with space"}},
			{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{ID: "odd"}},
		} {
			_, err := w.SubmitMany(ctx, []flowfabric.Submission{good, bad}, flowfabric.SubmitManyOptions{Atomic: true})
			var refusal *flowfabric.Error
			if !errors.As(err, &refusal) || !isInvalid(err) || fmt.Sprint(refusal.Current["index"]) != "1" {
				t.Errorf("refused with %v, %v", err, refusal.Current)
			}
		}
		if n := must[api.Count](t)(w.Executions().Count(ctx, ops.Filter{})).Total; n != 0 {
			t.Errorf("%d were created", n)
		}
		results := must[[]flowfabric.SubmitResult](t)(w.SubmitMany(ctx, []flowfabric.Submission{good, good}, flowfabric.SubmitManyOptions{Atomic: true}))
		if len(results) != 2 || results[0].Err != nil || results[1].Err != nil {
			t.Errorf("results %+v", results)
		}
	})
}
