package flowfabric_test

import (
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU57_bulk_jobs_signal_and_resume_what_waits(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		h := hand{w, t}
		var waiting []flowfabric.ID
		for range 2 {
			h.submits()
			task := h.claims(time.Minute)
			suspended := h.suspends(task, "wait", "at")
			if at := suspended.Waitpoints[0]; suspended.Err != nil || at.ExecutionID != task.ID || at.SuspensionID != suspended.SuspensionID {
				t.Errorf("%+v", suspended) // U71
			}
			waiting = append(waiting, task.ID)
		}
		run := func(r ops.BulkRequest) *api.BulkJob {
			t.Helper()
			return awaitJob(t, w, must[*api.BulkJob](t)(w.Operate().Bulk(inTime(t), r)))
		}
		signalled := run(ops.BulkRequest{Action: api.BulkSignal, IDs: waiting[:1], Signal: &ops.Approve{Name: "go", Comment: "fine"}})
		if signalled.Done != 1 || len(signalled.Refused) != 0 {
			t.Errorf("%+v", signalled)
		}
		resumed := run(ops.BulkRequest{Action: api.BulkResume, IDs: waiting, Delay: time.Hour})
		if resumed.Done != 1 || resumed.Refused["execution_not_suspended"] != 1 {
			t.Errorf("%+v", resumed)
		}
		for i, want := range []flowfabric.Status{flowfabric.StatusReady, flowfabric.StatusDelayed} {
			if x := must[*flowfabric.Execution](t)(w.Get(inTime(t), waiting[i])); x.Status != want {
				t.Errorf("%d is %s, want %s", i, x.Status, want)
			}
		}
	})
}

func TestU26_an_execution_that_waits_shows_its_wait_in_short(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		h := hand{w, t}
		h.submits()
		task := h.claims(time.Minute)
		suspended := h.suspends(task, "wait", "at")
		x := must[*flowfabric.Execution](t)(w.Get(inTime(t), task.ID))
		s := x.Suspension
		if s == nil || s.ID != suspended.SuspensionID || s.ReasonCode != flowfabric.WaitingForSignal || !s.SuspendedAt.Equal(x.StatusSince) ||
			len(s.Waitpoints) != 1 || s.Waitpoints[0].Key != "at" || s.Waitpoints[0].WaitpointID != suspended.Waitpoints[0].ID {
			t.Errorf("%+v", s)
		}
		if x := must[*flowfabric.Execution](t)(w.Operate().Resume(inTime(t), task.ID)); x.Suspension != nil {
			t.Errorf("after its end: %+v", x.Suspension)
		}
	})
}
