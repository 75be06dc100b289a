package flowfabric_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// causes are the codes of an explanation.
func causes(e *api.Explanation) (codes []string) {
	for _, b := range e.Blockers {
		codes = append(codes, b.Code)
	}
	return codes
}

func TestU44_why_work_does_not_run_is_told_here_and_over_http_alike(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		sub := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "render", SubmitOptions: flowfabric.SubmitOptions{Delay: time.Hour}}))
		must[*flowfabric.Execution](t)(w.Operate().Hold(ctx, sub.ID))
		must[*api.Lane](t)(w.Lanes().Pause(ctx, "default"))
		e := must[*api.Explanation](t)(w.Executions().Explain(ctx, sub.ID))
		want := []string{"delay", "operator_hold", "lane_state", "no_live_worker"}
		if got := causes(e); len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
			t.Fatalf("causes %v", got)
		}
		if e.ExecutionID != sub.ID || e.Status != flowfabric.StatusDelayed || e.Summary == "" || !e.NextEligibleAt.IsZero() || len(e.History) == 0 {
			t.Errorf("%+v", e)
		}
		var d map[string]any
		if err := json.Unmarshal(e.Blockers[2].Data, &d); err != nil || d["state"] != "paused" {
			t.Errorf("%s: %v", e.Blockers[2].Data, err)
		}
		if _, err := w.Executions().Explain(ctx, "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50"); flowfabric.CodeOf(err) != "execution_not_found" {
			t.Error(err)
		}
		if _, err := w.Executions().Explain(ctx, sub.ID, ops.ExplainOptions{Wait: -time.Second}); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Error(err)
		}
	})
}

func TestU44_a_change_of_the_causes_ends_the_wait(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		sub := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "render"}))
		told := make(chan *api.Explanation, 1)
		go func() {
			e, err := w.Executions().Explain(ctx, sub.ID, ops.ExplainOptions{Wait: 30 * time.Second})
			if err != nil {
				t.Error(err)
			}
			told <- e
		}()
		for { // until the call has had its first look and a change after that
			must[*flowfabric.Execution](t)(w.Operate().Hold(ctx, sub.ID))
			select {
			case e := <-told:
				if e == nil || e.ExecutionID != sub.ID {
					t.Errorf("%+v", e)
				}
				return
			case <-time.After(50 * time.Millisecond):
			}
			must[*flowfabric.Execution](t)(w.Operate().ReleaseHold(ctx, sub.ID))
		}
	})
}
