package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestF49_the_arguments_of_a_cancel_have_defaults_and_bounds(t *testing.T) {
	t.Parallel()
	c := FlowCancelCommand{}
	if err := c.Check(); err != nil || c.Policy != CancelAll || c.Source != SourceFlow {
		t.Errorf("%+v %v", c, err)
	}
	c = FlowCancelCommand{Policy: CancelPending, Source: SourceParent}
	if err := c.Check(); err != nil || c.Policy != CancelPending || c.Source != SourceParent {
		t.Errorf("%+v %v", c, err)
	}
	c = FlowCancelCommand{Policy: "cancel_some"}
	if err := wantCode(t, c.Check(), base.CodeInvalidArgument); err.Field != "policy" {
		t.Errorf("%v", err)
	}
}

// asked tells the state of a flow and its cancel.
func asked(f *Flow) string {
	if f.Cancel == nil {
		return string(f.State)
	}
	return fmt.Sprintf("%s %s %d cancelled, %d before, %d owed", f.State, f.Cancel.Policy, f.Cancel.Cancelled, f.Cancel.Before, f.Owed())
}

// flowOf has members that have ended and others that have not.
func flowOf(ended, open int) *Flow {
	f := &Flow{State: FlowOpen, Sealed: true}
	for i := range ended {
		f.AddMember(endedMember(fmt.Sprint("e", i), Succeeded, Completed, false))
	}
	for i := range open {
		f.AddMember(&Execution{Status: Ready, Policy: &Policy{}, Member: &Membership{Name: fmt.Sprint("o", i)}})
	}
	return f
}

func TestF49_F52_what_a_cancel_makes_of_a_flow(t *testing.T) {
	t.Parallel()
	const only, pending, all = CancelFlowOnly, CancelPending, CancelAll
	for _, c := range []struct {
		ended, open int
		ask         []CancelPolicy
		want        string
		changed     bool // by the last of them
		events      []string
	}{
		{1, 2, []CancelPolicy{all}, "cancelling cancel_all 0 cancelled, 1 before, 2 owed", true, []string{"flow.cancel_requested"}},
		{1, 2, []CancelPolicy{pending}, "cancelling cancel_pending 0 cancelled, 1 before, 2 owed", true, []string{"flow.cancel_requested"}},
		{1, 2, []CancelPolicy{only}, "cancelled flow_only 0 cancelled, 1 before, 0 owed", true, []string{"flow.cancel_requested", "flow.cancelled"}},
		{0, 0, []CancelPolicy{all}, "cancelled cancel_all 0 cancelled, 0 before, 0 owed", true, []string{"flow.cancel_requested", "flow.cancelled"}},
		{1, 2, []CancelPolicy{all, all}, "cancelling cancel_all 0 cancelled, 1 before, 2 owed", false, []string{"flow.cancel_requested"}},
		{1, 2, []CancelPolicy{all, pending}, "cancelling cancel_all 0 cancelled, 1 before, 2 owed", false, []string{"flow.cancel_requested"}},
		{1, 2, []CancelPolicy{pending, all}, "cancelling cancel_all 0 cancelled, 1 before, 2 owed", true, []string{"flow.cancel_requested", "flow.cancel_requested"}},
		{
			1, 2,
			[]CancelPolicy{only, pending},
			"cancelled cancel_pending 0 cancelled, 1 before, 2 owed", true,
			[]string{"flow.cancel_requested", "flow.cancelled", "flow.cancel_requested"},
		},
		{2, 0, []CancelPolicy{only, all}, "cancelled flow_only 0 cancelled, 2 before, 0 owed", false, []string{"flow.cancel_requested", "flow.cancelled"}},
	} {
		f := flowOf(c.ended, c.open)
		var told []string
		changed := false
		for _, policy := range c.ask {
			fx := &Effects{Now: 10} // all in one millisecond
			changed = f.RequestCancel(fx, FlowCancelCommand{Policy: policy, Reason: string(policy), By: "me", Source: SourceFlow})
			told = append(told, flowKinds(fx)...)
		}
		if asked(f) != c.want || changed != c.changed {
			t.Errorf("%v: %s %t", c.ask, asked(f), changed)
		}
		if diff := cmp.Diff(c.events, told); diff != "" {
			t.Errorf("%v: %s", c.ask, diff)
		}
		if f.Cancel.Reason != string(f.Cancel.Policy) {
			t.Errorf("%v: the reason is %s", c.ask, f.Cancel.Reason)
		}
	}
}

func TestF52_a_flow_that_ended_by_itself_is_not_cancelled(t *testing.T) {
	t.Parallel()
	for _, state := range []FlowState{FlowCompleted, FlowFailed} {
		f := &Flow{State: state}
		if f.RequestCancel(&Effects{}, FlowCancelCommand{Policy: CancelAll}) || f.Cancel != nil || f.State != state {
			t.Errorf("%+v", f)
		}
	}
}

func TestF53_the_numbers_of_a_cancel_and_of_a_stronger_one(t *testing.T) {
	t.Parallel()
	f := flowOf(2, 4)
	f.RequestCancel(&Effects{Now: 1}, FlowCancelCommand{Policy: CancelPending})
	f.MemberEnded(endedMember("o0", Cancelled, FlowCancelled, false))
	f.MemberEnded(endedMember("o1", Succeeded, Completed, false))
	if got := asked(f); got != "cancelling cancel_pending 1 cancelled, 3 before, 2 owed" {
		t.Error(got)
	}
	f.RequestCancel(&Effects{Now: 2}, FlowCancelCommand{Policy: CancelAll})
	if got := asked(f); got != "cancelling cancel_all 1 cancelled, 3 before, 2 owed" {
		t.Error(got)
	}
	f.MemberEnded(endedMember("o2", Cancelled, FlowCancelled, false))
	f.MemberEnded(endedMember("o3", Cancelled, JoinSatisfied, false))
	if got := asked(f); got != "cancelling cancel_all 2 cancelled, 4 before, 0 owed" || !f.Due() {
		t.Error(got)
	}
}

func TestF49_whom_each_policy_reaches(t *testing.T) {
	t.Parallel()
	never := []Status{Ready, Delayed, Blocked, Granted}
	started := []Status{Running, Suspended, Ready, Delayed, Blocked} // the last three wait for a retry or for children
	for _, status := range slices.Concat(never, outcomes) {
		x := &Execution{Status: status}
		for policy, want := range map[CancelPolicy]bool{CancelAll: !status.Terminal(), CancelPending: !status.Terminal(), CancelFlowOnly: false} {
			if got := (&FlowCancel{Policy: policy}).Reaches(x); got != want {
				t.Errorf("%s, never claimed, by %s: %t", status, policy, got)
			}
		}
	}
	for _, status := range started {
		x := &Execution{Status: status, RunStartedAt: 5}
		for policy, want := range map[CancelPolicy]bool{CancelAll: true, CancelPending: false, CancelFlowOnly: false} {
			if got := (&FlowCancel{Policy: policy}).Reaches(x); got != want {
				t.Errorf("%s, claimed, by %s: %t", status, policy, got)
			}
		}
	}
}

func TestF48_F49_a_flow_node_has_started_with_its_sub_flow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		x        *Execution
		ends, in bool // by cancel_pending
	}{
		{"one whose sub-flow works", &Execution{Status: Blocked, Dependency: WaitingForSubflow, Children: &Children{}}, false, true},
		{"one whose sub-flow is yet to be made", &Execution{Status: Blocked, Dependency: WaitingForSubflow}, true, false},
		{"one that waits for its join", &Execution{Status: Blocked, Dependency: WaitingForChildren}, true, false},
		{"one that has ended", &Execution{Status: Succeeded, Children: &Children{}}, false, false},
		{"a parent that waits for its children", &Execution{Status: Blocked, Dependency: WaitingForChildren, Children: &Children{}, RunStartedAt: 5}, false, false},
	} {
		pending := &FlowCancel{Policy: CancelPending, Reason: "why", By: "me", Source: SourceFlow}
		if ends, in := pending.Reaches(c.x), pending.GoesInto(c.x); ends != c.ends || in != c.in {
			t.Errorf("%s: ends %t, goes into %t", c.name, ends, in)
		}
		if all := (&FlowCancel{Policy: CancelAll}); all.GoesInto(c.x) || all.Reaches(c.x) == c.x.Status.Terminal() {
			t.Errorf("%s: cancel_all ends what has not ended", c.name)
		}
		want := FlowCancelCommand{Policy: CancelPending, Reason: "why", By: "me", Source: SourceParent}
		if got := pending.Into(); got != want {
			t.Errorf("%+v", got)
		}
	}
}

func TestF31_F50_a_member_that_its_graph_cancels_ends_by_the_one_routine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		reason Reason
		cancel func(x *Execution, fx *Effects)
	}{
		{"flow", FlowCancelled, func(x *Execution, fx *Effects) {
			x.CancelByFlow(fx, &FlowCancel{Source: SourceFlow, By: "me", Reason: "why"})
		}},
		{"parent", FlowCancelled, func(x *Execution, fx *Effects) {
			x.CancelByFlow(fx, &FlowCancel{Source: SourceParent, By: "me", Reason: "why"})
		}},
		{"join", JoinSatisfied, func(x *Execution, fx *Effects) { x.CancelByJoin(fx, true) }},
		{"join", JoinImpossible, func(x *Execution, fx *Effects) { x.CancelByJoin(fx, false) }},
	} {
		s := begin(t, `{}`, func(s *Submission) { s.Member = &Membership{Name: "m"} })
		fence := s.claim()
		_ = s.do(func(fx *Effects) error { c.cancel(s.x, fx); return nil })
		s.want(Cancelled, c.reason, NextNone)
		if s.x.Cancellation.Source != c.source {
			t.Errorf("%+v", s.x.Cancellation)
		}
		_, err := s.complete(fence, nil)
		if err == nil {
			t.Errorf("%s: the fence lives", c.reason)
		}
	}
}
