package flowfabric_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
)

func TestU17_a_cancel_compares_what_is_expected_before_it_acts(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID
		cancel := func(o ...flowfabric.CancelOptions) (*flowfabric.Execution, error) {
			return w.Cancel(ctx, id, "enough", o...)
		}
		for _, wrong := range []ops.Expect{
			{Status: flowfabric.StatusRunning}, {LeaseEpoch: 3}, {LeaseID: "0198f0a0-0000-7000-8000-000000000000"},
		} {
			if _, err := cancel(flowfabric.CancelOptions{Expect: wrong}); flowfabric.CodeOf(err) != "precondition_failed" {
				t.Errorf("cancel of %+v = %v, want precondition_failed", wrong, err)
			}
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, id)); x.Status != flowfabric.StatusReady {
			t.Fatalf("a refused cancel left %s", x.Status)
		}
		if _, err := cancel(flowfabric.CancelOptions{}, flowfabric.CancelOptions{}); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("two structs of options = %v", err)
		}
		if _, err := cancel(flowfabric.CancelOptions{Expect: ops.Expect{Status: "asleep"}}); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("a status that is none = %v", err)
		}
		right := flowfabric.CancelOptions{RequestKey: "once", Expect: ops.Expect{Status: flowfabric.StatusReady}}
		for range 2 { // the repeat of a request is recognised before anything is compared
			if x := must[*flowfabric.Execution](t)(cancel(right)); x.Status != flowfabric.StatusCancelled {
				t.Errorf("cancelled: %s", x.Status)
			}
		}
	})
}

func TestU17_an_operators_claim_compares_what_is_expected(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, echo.Submission(flowfabric.Text("x")))).ID
		claim := func(status flowfabric.Status) error {
			_, err := w.Operate().Claim(ctx, id, ops.OperatorClaim{Action: ops.Action{Expect: ops.Expect{Status: status}}})
			return err
		}
		if err := claim(flowfabric.StatusDelayed); flowfabric.CodeOf(err) != "precondition_failed" {
			t.Errorf("claim of what is not as expected = %v", err)
		}
		if err := claim(flowfabric.StatusReady); err != nil {
			t.Errorf("claim of what is as expected = %v", err)
		}
	})
}
