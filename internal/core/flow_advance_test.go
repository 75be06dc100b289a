package core

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// waiting is a member that edges lead to.
func waiting(t *testing.T, spec JoinSpec, n int, edits ...func(*Submission)) *story {
	t.Helper()
	m := &Membership{Name: "m", Join: Join{JoinSpec: spec}}
	for range n {
		m.AddInbound(&Edge{State: EdgePending})
	}
	return begin(t, `{}`, append(edits, func(s *Submission) { s.Member = m })...)
}

func (s *story) resolved(states ...EdgeState) {
	_ = s.do(func(*Effects) error {
		for _, state := range states {
			s.x.EdgeResolved(&Edge{State: state})
		}
		return nil
	})
}

func (s *story) holdJoin() {
	_ = s.do(func(fx *Effects) error { s.x.HoldJoin(fx, false); return nil })
}

func TestF10_F26_a_member_waits_for_its_join_and_then_passes_the_gate(t *testing.T) {
	t.Parallel()
	s := waiting(t, JoinSpec{}, 2)
	s.want(Blocked, WaitingForChildren, NextInitial)
	s.resolved(EdgeSatisfied)
	if due := s.x.DueJoin(true); due != JoinPending {
		t.Fatal(due)
	}
	s.resolved(EdgeSatisfied)
	if due := s.x.DueJoin(true); due != JoinHeld {
		t.Fatal(due)
	}
	s.now = s.now.Add(base.Second)
	s.holdJoin()
	s.want(Ready, WaitingForWorker, NextInitial)
	if j := s.x.Member.Join; j.State != JoinHeld || j.DecidedAt != s.now {
		t.Errorf("%+v", j)
	}
	if due := s.x.DueJoin(true); due != JoinNone {
		t.Errorf("decided twice: %s", due)
	}
}

func TestF26_delay_and_hold_of_a_member_stand_when_its_join_is_satisfied(t *testing.T) {
	t.Parallel()
	s := waiting(t, JoinSpec{}, 1, func(s *Submission) { hour := base.Hour; s.DelayMS = &hour })
	s.want(Blocked, WaitingForChildren, NextInitial)
	s.resolved(EdgeSatisfied)
	s.holdJoin()
	s.want(Delayed, WaitingForDelay, NextInitial)
	s.pass(base.Hour)
	s.want(Ready, WaitingForWorker, NextInitial)

	held := waiting(t, JoinSpec{}, 1)
	if _, err := held.hold(); err != nil {
		t.Fatal(err)
	}
	held.want(Blocked, WaitingForChildren, NextInitial)
	held.resolved(EdgeSatisfied)
	held.holdJoin()
	held.want(Blocked, PausedByOperator, NextInitial)
	if _, err := held.releaseHold(); err != nil {
		t.Fatal(err)
	}
	held.want(Ready, WaitingForWorker, NextInitial)
}

func TestF26_F24_a_member_whose_join_is_impossible_is_skipped_and_told_why(t *testing.T) {
	t.Parallel()
	s := waiting(t, JoinSpec{}, 2)
	s.resolved(EdgeImpossible)
	_ = s.do(func(fx *Effects) error { s.x.BreakJoin(fx, true, []string{"a"}); return nil })
	s.want(Skipped, DependencyImpossible, NextNone)
	if j := s.x.Member.Join; j.State != JoinBroken || j.Detail != "" || j.DecidedAt == 0 {
		t.Errorf("%+v", j)
	}
	if edges, _ := s.last("execution.completed")["edges"].([]any); len(edges) != 1 || edges[0] != "a" {
		t.Errorf("%v", s.last("execution.completed"))
	}
	short := waiting(t, JoinSpec{Policy: Quorum, K: 3}, 2)
	short.resolved(EdgeSatisfied, EdgeSatisfied)
	if open, sealed := short.x.DueJoin(false), short.x.DueJoin(true); open != JoinPending || sealed != JoinBroken {
		t.Fatalf("%s %s", open, sealed)
	}
	_ = short.do(func(fx *Effects) error { short.x.BreakJoin(fx, true, nil); return nil })
	if j := short.x.Member.Join; j.Detail != "quorum_unreachable" {
		t.Errorf("%+v", j)
	}
}

func TestF21_F25_edges_that_come_or_resolve_after_the_decision_change_nothing(t *testing.T) {
	t.Parallel()
	s := waiting(t, JoinSpec{Policy: AnyOf}, 3)
	s.resolved(EdgeSatisfied)
	s.holdJoin()
	s.resolved(EdgeImpossible, EdgeImpossible)
	s.want(Ready, WaitingForWorker, NextInitial)
	if j := s.x.Member.Join; j.State != JoinHeld || j.Satisfied != 1 || j.Impossible != 2 || s.x.DueJoin(true) != JoinNone {
		t.Errorf("%+v", j)
	}
	ended := waiting(t, JoinSpec{}, 1)
	if _, err := ended.cancel(nil); err != nil {
		t.Fatal(err)
	}
	ended.x.EdgeResolved(&Edge{State: EdgeSatisfied})
	if ended.x.DueJoin(true) != JoinNone {
		t.Error("one that has ended is let go")
	}
}

func TestF21_a_member_that_is_given_an_edge_waits_and_keeps_its_delay(t *testing.T) {
	t.Parallel()
	for _, delayed := range []bool{false, true} {
		s := begin(t, `{}`, func(s *Submission) {
			s.Member = &Membership{Name: "m"}
			if delayed {
				hour := base.Hour
				s.DelayMS = &hour
			}
		})
		_ = s.do(func(fx *Effects) error {
			s.x.EdgeAdded(&Edge{State: EdgePending, Pass: "x"})
			s.x.Gated(fx)
			return nil
		})
		s.want(Blocked, WaitingForChildren, NextInitial)
		if j := s.x.Member.Join; j.N != 1 || !j.Passes || j.State != JoinPending {
			t.Fatalf("%+v", j)
		}
		s.resolved(EdgeSatisfied)
		s.holdJoin()
		if delayed {
			s.want(Delayed, WaitingForDelay, NextInitial)
		} else {
			s.want(Ready, WaitingForWorker, NextInitial)
		}
	}
}

func TestF31_who_may_lose_and_who_needs_him(t *testing.T) {
	t.Parallel()
	for _, status := range slices.Concat([]Status{Ready, Delayed, Blocked, Granted, Running, Suspended}, outcomes) {
		x := &Execution{Status: status, Member: &Membership{}}
		if x.Loser() == status.Terminal() {
			t.Errorf("%s: %t", status, x.Loser())
		}
		x.Member.Output = true
		if x.Loser() {
			t.Errorf("the output, %s, loses", status)
		}
		for state := JoinNone; state <= JoinOverridden; state++ {
			down := &Execution{Status: status, Member: &Membership{Join: Join{State: state}}}
			if got, want := down.MayBeLost(), status.Terminal() || state > JoinPending; got != want {
				t.Errorf("%s with a join %s: %t", status, state, got)
			}
		}
	}
	if (&Execution{Status: Ready}).Loser() {
		t.Error("one outside of a flow loses nothing")
	}
}

func TestF2_snapshots_of_a_member_keep_their_membership(t *testing.T) {
	t.Parallel()
	s := waiting(t, JoinSpec{}, 2)
	before := s.x.Clone()
	s.x.EdgeResolved(&Edge{State: EdgeSatisfied})
	s.x.AddOutgoing(3)
	if before.Member.Join.Satisfied != 0 || before.Member.Out != 0 || s.x.Member.Join.Satisfied != 1 || s.x.Member.Out != 3 {
		t.Errorf("%+v and %+v", before.Member, s.x.Member)
	}
	late := begin(t, `{}`)
	f := &Flow{ID: base.IDOf(base.UUID{5}), Root: base.IDOf(base.UUID{4}), Output: "x"}
	late.x.JoinFlow(f, "x")
	if late.x.FlowID != f.ID || late.x.RootFlowID() != f.Root || !late.x.Member.Output || !late.x.Member.Late || late.x.Member.Name != "x" {
		t.Errorf("%+v", late.x.Member)
	}
}
