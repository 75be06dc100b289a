package core

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// subflowNode is a flow node.
func subflowNode(t *testing.T, edges int) *story {
	t.Helper()
	m := &Membership{Name: "n", Subflow: true}
	for range edges {
		m.AddInbound(&Edge{State: EdgePending})
	}
	return begin(t, `{}`, func(s *Submission) { s.Kind, s.Member = KindFlowNode, m })
}

func TestF46_a_flow_node_waits_for_its_join_then_for_its_subflow(t *testing.T) {
	t.Parallel()
	s := subflowNode(t, 1)
	s.want(Blocked, WaitingForChildren, NextInitial)
	if s.x.AwaitsSubflow() {
		t.Error("its join is pending")
	}
	s.resolved(EdgeSatisfied)
	s.holdJoin()
	s.want(Blocked, WaitingForSubflow, NextInitial)
	if !s.x.AwaitsSubflow() {
		t.Error("its sub-flow is to be made")
	}
	_ = s.do(func(*Effects) error { s.x.BeginSubflow(s.now, base.IDOf(base.UUID{7})); return nil })
	if s.x.AwaitsSubflow() || s.x.Children.FlowID != base.IDOf(base.UUID{7}) {
		t.Errorf("%+v", s.x.Children)
	}
	subflowNode(t, 0).want(Blocked, WaitingForSubflow, NextInitial)
}

func TestF26_F46_a_flow_node_begins_when_its_delay_is_over_and_no_hold_stands(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`, func(sub *Submission) {
		sub.Kind, sub.Member, sub.DelayUntil = KindFlowNode, &Membership{Name: "n", Subflow: true}, storyStart+1000
	})
	must[bool](t)(s.hold())
	s.want(Delayed, WaitingForDelay, NextInitial)
	s.pass(1000)
	s.want(Blocked, PausedByOperator, NextInitial)
	if s.x.AwaitsSubflow() || s.x.FailSubflow(&Effects{}, "no") {
		t.Error("it is held")
	}
	must[bool](t)(s.releaseHold())
	s.want(Blocked, WaitingForSubflow, NextInitial)
	if !s.x.AwaitsSubflow() || s.x.DelayUntil != 0 {
		t.Errorf("%+v", s.x)
	}
	_ = s.do(func(*Effects) error { s.x.BeginSubflow(s.now, base.IDOf(base.UUID{7})); return nil })
	must[bool](t)(s.hold())
	s.want(Blocked, WaitingForSubflow, NextInitial) // what has begun goes on (L115)
}

func TestF47_a_node_ends_as_its_subflow_has_ended(t *testing.T) {
	t.Parallel()
	inner := base.IDOf(base.UUID{7})
	result := &ResultRef{Of: base.IDOf(base.UUID{8}), Epoch: 2, ContentType: "text/plain", Size: 5}
	begun := func() *story {
		s := subflowNode(t, 0)
		_ = s.do(func(*Effects) error { s.x.BeginSubflow(s.now, inner); return nil })
		return s
	}
	end := func(s *story, f *Flow, result *ResultRef) (ended bool) {
		_ = s.do(func(fx *Effects) error { ended = s.x.EndSubflow(fx, f, result); return nil })
		return ended
	}
	s := begun()
	for _, other := range []*Flow{{ID: inner, State: FlowOpen}, {ID: inner, State: FlowCancelling}, {ID: base.IDOf(base.UUID{9}), State: FlowCompleted}} {
		if end(s, other, nil) {
			t.Fatalf("ended by %+v", other)
		}
	}
	if !end(s, &Flow{ID: inner, State: FlowCompleted}, result) || end(s, &Flow{ID: inner, State: FlowCompleted}, result) {
		t.Error("it ends once")
	}
	s.want(Succeeded, Completed, NextNone)
	if got := s.x.EndedRun().Result; got == nil || *got != *result {
		t.Errorf("%+v", got)
	}

	s = begun()
	end(s, &Flow{ID: inner, State: FlowCompleted}, nil)
	if s.want(Succeeded, Completed, NextNone); s.x.EndedRun().Result != nil {
		t.Error("there is no output")
	}

	s = begun()
	end(s, &Flow{ID: inner, State: FlowFailed, Failures: []string{"a", "b"}}, nil)
	if s.want(Failed, SubflowFailed, NextNone); !strings.Contains(s.x.Failure.Message, "a, b") {
		t.Errorf("%+v", s.x.Failure)
	}

	s = begun()
	end(s, &Flow{ID: inner, State: FlowStopped, Cancel: &FlowCancel{By: "me", Reason: "why"}}, nil)
	if s.want(Cancelled, FlowCancelled, NextNone); s.x.Cancellation.By != "me" || s.x.Cancellation.Reason != "why" {
		t.Errorf("%+v", s.x.Cancellation)
	}
}

func TestF46_a_node_whose_subflow_cannot_be_made_fails(t *testing.T) {
	t.Parallel()
	s := subflowNode(t, 0)
	_ = s.do(func(fx *Effects) error {
		if !s.x.FailSubflow(fx, "the lane is closed") {
			t.Error("it waited")
		}
		return nil
	})
	s.want(Failed, SubflowFailed, NextNone)
	if s.x.FailSubflow(s.effects(), "again") || s.x.Failure.Message != "the lane is closed" {
		t.Errorf("%+v", s.x.Failure)
	}
	if waits := subflowNode(t, 1); waits.x.FailSubflow(waits.effects(), "early") {
		t.Error("its join is pending")
	}
}
