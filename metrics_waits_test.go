package flowfabric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// waitCauses are those of U206.
var waitCauses = []cause{
	{
		name: "work that waits for signals",
		do: func(t *testing.T, w *metered) {
			h := hand{w.world, t}
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			task := w.one(t, "default")
			early := h.does(api.WorkItem{Op: api.OpWaitpoint, ID: id, Lease: task.Lease, Waitpoint: &api.NewWaitpoint{Key: "early"}}).Waitpoints[0]
			w.signals(t, &early, "x", flowfabric.Payload{})
			until := flowfabric.CountOf(2, flowfabric.DistinctSources, "at")
			until.Name = "go"
			at := h.does(api.WorkItem{Op: api.OpSuspend, ID: id, Lease: task.Lease, Suspension: &flowfabric.Suspension{
				Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("at")}, Until: until, ReasonCode: flowfabric.WaitingForCallback,
			}}).Waitpoints[0]
			for _, s := range []flowfabric.Signal{
				{Name: "other"}, {Name: "go", SourceIdentity: "a"}, {Name: "go", SourceIdentity: "a"}, {Name: "go", SourceIdentity: "b", IdempotencyKey: "k"}, {Name: "go", IdempotencyKey: "k"},
			} {
				s.WaitpointID, s.Token = at.ID, at.Token
				must[api.SignalReceipt](t)(w.Signal(inTime(t), s))
			}
			for _, wrong := range []flowfabric.Signal{
				{WaitpointID: at.ID, Token: flowfabric.TokenOf("no token")},
				{WaitpointID: at.ID, Token: early.Token},
				{WaitpointID: at.ID, Token: flowfabric.TokenOf("unknown:" + strings.Repeat("0", 64))},
				{WaitpointID: task.Lease.ID, Token: at.Token},
			} {
				wrong.Name = "go"
				if _, err := w.Signal(inTime(t), wrong); flowfabric.CodeOf(err) != "invalid_token" {
					t.Errorf("a wrong token: %v", err)
				}
			}
			w.turn(2 * time.Second)
			w.one(t, "default")
		},
		moves: map[string]float64{
			`ff_suspensions_total{reason="waiting_for_callback"}`: 1, `ff_resumes_total{cause="signal"}`: 1,
			`ff_resume_latency_seconds_count`: 1, `ff_resume_latency_seconds_sum`: 2, `ff_waitpoints_open`: 1,
			`ff_signals_total{effect="buffered_for_pending_waitpoint"}`: 1, `ff_signals_total{effect="signal_ignored_matcher_failed"}`: 1,
			`ff_signals_total{effect="appended_to_waitpoint"}`: 1, `ff_signals_total{effect="appended_to_waitpoint_duplicate"}`: 1,
			`ff_signals_total{effect="resume_condition_satisfied"}`: 1, `ff_token_refused_total{cause="shape"}`: 1, `ff_token_refused_total{cause="mismatch"}`: 1,
			`ff_token_refused_total{cause="unknown_kid"}`: 1, `ff_token_refused_total{cause="unknown_target"}`: 1,
		},
	},
	{
		name: "work that waits for people",
		do: func(t *testing.T, w *metered) {
			h := hand{w.world, t}
			id := w.submit(t, 1, flowfabric.SubmitOptions{})[0]
			at := h.does(api.WorkItem{Op: api.OpSuspend, ID: id, Lease: w.one(t, "default").Lease, Suspension: &flowfabric.Suspension{
				Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("at")}, Until: flowfabric.CountOf(5, flowfabric.DistinctSources, "at"), ReasonCode: flowfabric.WaitingForApproval,
			}}).Waitpoints[0]
			for range 2 { // a second time it is a repeat
				must[api.SignalReceipt](t)(w.Operate().Approve(inTime(t), id, ops.Approve{Name: "rejected"}))
			}
			link := must[flowfabric.ApprovalLink](t)(w.Waitpoints().NewLink(inTime(t), at.ID, ops.LinkOptions{Approver: "ann"}))
			must[api.LinkOutcome](t)(w.Waitpoints().Decide(inTime(t), link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "approve"}))
			must[*flowfabric.Execution](t)(w.Operate().Resume(inTime(t), id))
		},
		moves: map[string]float64{
			`ff_suspensions_total{reason="waiting_for_approval"}`: 1, `ff_resumes_total{cause="operator"}`: 1, `ff_waitpoints_open`: 0,
			`ff_approvals_total{decision="rejected"}`: 1, `ff_approvals_total{decision="approved"}`: 1,
		},
	},
}
