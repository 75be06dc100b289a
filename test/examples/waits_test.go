package examples

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	approval "github.com/flowfabric/flowfabric/examples/approval/story"
	callback "github.com/flowfabric/flowfabric/examples/callback/story"
)

// waits are the ended waits of an execution, and the signals it was sent.
func waits(t *testing.T, c *flowfabric.Client, id flowfabric.ID) (causes []string, signals []flowfabric.SignalRecord) {
	t.Helper()
	for wait, err := range c.Executions().Suspensions(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		causes = append(causes, wait.Cause)
	}
	for signal, err := range c.Executions().Signals(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		signals = append(signals, signal)
	}
	return causes, signals
}

func TestU236_a_release_goes_live_by_two_of_three_people_and_fails_without_a_decision(t *testing.T) {
	t.Parallel()
	everywhere(t, approval.Approval, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		both := executions(t, c, p.Name)
		if len(both) != 2 {
			t.Fatalf("%d releases, want two", len(both))
		}
		live, late := both[0], both[1]
		if live.Status != flowfabric.StatusSucceeded || live.TotalAttempts != 1 {
			t.Errorf("%+v", live)
		}
		if late.Status != flowfabric.StatusFailed || late.Reason != "suspension_timeout" {
			t.Errorf("%+v", late)
		}
		causes, signals := waits(t, c, live.ID)
		if !slices.Equal(causes, []string{"signal"}) || len(signals) != 2 {
			t.Fatalf("causes %q, signals %+v", causes, signals)
		}
		for i, source := range []string{"approver", "operator"} {
			if s := signals[i]; s.Name != "approved" || s.SourceType != source || !s.SourceVerified {
				t.Errorf("signal %d: %+v, want one of %s", i, s, source)
			}
		}
		wantLinks(t, c, live.ID, "decided", "closed", "closed")
		if causes, signals := waits(t, c, late.ID); !slices.Equal(causes, []string{"timeout"}) || len(signals) != 0 {
			t.Errorf("causes %q, signals %+v", causes, signals)
		}
	})
}

// wantLinks fails the test when the links of the only waitpoint of an execution are in other states.
func wantLinks(t *testing.T, c *flowfabric.Client, id flowfabric.ID, want ...string) {
	t.Helper()
	var states []string
	for waitpoint, err := range c.Waitpoints().List(t.Context(), ops.WaitpointQuery{ExecutionID: id, State: "all"}) {
		if err != nil {
			t.Fatal(err)
		}
		links, err := c.Waitpoints().Links(t.Context(), waitpoint.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			states = append(states, link.State)
		}
	}
	slices.Sort(states)
	slices.Sort(want)
	if !slices.Equal(states, want) {
		t.Errorf("links %q, want %q", states, want)
	}
}

func TestU237_an_answer_that_comes_before_the_wait_is_kept_and_a_repeated_one_counts_once(t *testing.T) {
	t.Parallel()
	everywhere(t, callback.Callback, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		both := executions(t, c, p.Name)
		if len(both) != 2 {
			t.Fatalf("%d orders, want two", len(both))
		}
		for i, want := range []struct{ cause, effect, reference string }{
			{"early_signals", "buffered_for_pending_waitpoint", "pay-17"},
			{"signal", "resume_condition_satisfied", "pay-18"},
		} {
			x := both[i]
			var paid callback.Payment
			if err := x.Result.Decode(&paid); err != nil || x.TotalAttempts != 1 || paid.Reference != want.reference {
				t.Errorf("%+v, %v", x, err)
			}
			causes, signals := waits(t, c, x.ID)
			if !slices.Equal(causes, []string{want.cause}) || len(signals) != 1 || signals[0].Effect != want.effect || signals[0].SourceVerified {
				t.Errorf("%s: causes %q, signals %+v", want.reference, causes, signals)
			}
		}
	})
}
