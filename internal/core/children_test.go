package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// waitFor runs wait_for_children for one child that has not ended, changed as edits say.
func (s *story) waitFor(f Fence, edits ...func(*ChildrenWaitCommand)) (a ChildrenWaitAnswer, err error) {
	c := ChildrenWaitCommand{Fence: f, Children: childrenNamed("a"), Mint: s.mint}
	for _, edit := range edits {
		edit(&c)
	}
	err = s.do(func(fx *Effects) error {
		c.Recorded = s.recorded(f.Epoch)
		before := s.x.Children
		if before == nil { // else somebody has spawned before
			s.x.Children = &Children{FlowID: base.ID{UUID: base.UUID{15: 1}}}
		}
		if a, err = s.x.WaitForChildren(fx, c); !a.Waiting || a.Repeated {
			s.x.Children = before
		}
		return err
	})
	return a, err
}

func childrenNamed(names ...string) (all []AwaitedChild) {
	for i, name := range names {
		all = append(all, AwaitedChild{NodeRef: NodeRef{Name: name, ID: base.ID{UUID: base.UUID{14: 1, 15: byte(i)}}}})
	}
	return all
}

// ended are children that have ended so; StatusNone: not yet.
func endedAs(statuses ...Status) (all []AwaitedChild) {
	for i, status := range statuses {
		child := childrenNamed(fmt.Sprintf("c%d", i))[0]
		if status != StatusNone {
			child.End = &EndedRun{Status: status}
		}
		all = append(all, child)
	}
	return all
}

func TestL53_L96_a_wait_leaves_running_once_and_leaves_an_edge_for_each_child(t *testing.T) {
	t.Parallel()
	s := begin(t, tablePolicy)
	f := s.claim()
	s.now = s.now.Add(1500)
	a := must[ChildrenWaitAnswer](t)(s.waitFor(f, func(c *ChildrenWaitCommand) {
		c.Children, c.TimeoutMS, c.Spawned = endedAs(Succeeded, StatusNone, Failed), base.Hour, 2
	}))
	s.want(Blocked, WaitingForChildren, NextResume)
	if !a.Waiting || a.TimeoutAt != s.now.Add(base.Hour) || s.x.WakeAt != a.TimeoutAt {
		t.Errorf("answer %+v, wakes at %s", a, s.x.WakeAt)
	}
	var states []EdgeState
	for i := range a.Edges {
		states = append(states, a.Edges[i].State)
		if a.Edges[i].Wait != 1 || a.Edges[i].To.ID != s.x.ID || a.Edges[i].ID.IsZero() {
			t.Errorf("edge %+v", a.Edges[i])
		}
	}
	if want := []EdgeState{EdgeSatisfied, EdgePending, EdgeSatisfied}; !slices.Equal(states, want) {
		t.Errorf("edges are %v, want %v", states, want)
	}
	w := s.x.Children.Wait
	if w.Join.N != 3 || w.Join.Satisfied != 2 || w.Join.Pending() != 1 || w.Number != 1 {
		t.Errorf("the wait is %+v", w)
	}
	told := s.last("execution.waiting_children")
	if told["policy"] != "all_of" || told["k"] != 3.0 || told["lease_epoch"] != 1.0 || told["timeout_at"] == nil {
		t.Errorf("told %v", told)
	}
	again := must[ChildrenWaitAnswer](t)(s.waitFor(f))
	if !again.Repeated || !again.Waiting || again.Recorded != a.Recorded || again.Recorded.Spawned != 2 {
		t.Errorf("the repeat got %+v", again)
	}
}

func TestF40_F42_a_wait_that_is_decided_changes_nothing(t *testing.T) {
	t.Parallel()
	any1, two := JoinSpec{Policy: AnyOf}, JoinSpec{Policy: Quorum, K: 2}
	for name, c := range map[string]struct {
		children []AwaitedChild
		join     JoinSpec
		kind     EdgeKind
		before   base.Millis // when the same wait was to time out, from now
		want     string
	}{
		"of no children":                 {nil, JoinSpec{}, "", 0, WaitSatisfied},
		"of no children, two of them":    {nil, two, "", 0, WaitSatisfied},
		"all have ended":                 {endedAs(Succeeded, Cancelled), JoinSpec{}, "", 0, WaitSatisfied},
		"not all":                        {endedAs(Succeeded, StatusNone), JoinSpec{}, "", 0, ""},
		"one has":                        {endedAs(StatusNone, Skipped), any1, "", 0, WaitSatisfied},
		"a success among failures":       {endedAs(Failed, Succeeded), any1, SuccessOnly, 0, WaitSatisfied},
		"failures alone":                 {endedAs(Failed, Expired), any1, SuccessOnly, 0, WaitImpossible},
		"one of two that must succeed":   {endedAs(Failed, StatusNone), JoinSpec{}, SuccessOnly, 0, WaitImpossible},
		"a skip is no failure":           {endedAs(Skipped, StatusNone), JoinSpec{}, FailureOnly, 0, WaitImpossible},
		"more than there are":            {endedAs(StatusNone), two, "", 0, WaitImpossible},
		"timed out before":               {endedAs(StatusNone), JoinSpec{}, "", -1, WaitTimedOut},
		"timed out now":                  {endedAs(StatusNone), JoinSpec{}, "", 0, ""},
		"timed out, but they have ended": {endedAs(Failed), JoinSpec{}, "", -1, WaitSatisfied},
		"not timed out yet":              {endedAs(StatusNone), JoinSpec{}, "", 5, ""},
	} {
		s := begin(t, tablePolicy)
		f := s.claim()
		before := s.x.Clone()
		a := must[ChildrenWaitAnswer](t)(s.waitFor(f, func(w *ChildrenWaitCommand) {
			w.Children, w.Join, w.Kind = c.children, c.join, c.kind
			if c.before != 0 {
				w.Before, w.TimeoutMS = s.now.Add(c.before), base.Minute
			}
		}))
		if a.State != c.want || a.Waiting != (c.want == "") {
			t.Errorf("%s: %+v, want %q", name, a, c.want)
		}
		if c.want != "" {
			if diff := cmp.Diff(before, s.x); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		} else if c.before > 0 && s.x.Children.Wait.TimeoutAt != s.now.Add(c.before) {
			t.Errorf("%s: it times out at %s", name, s.x.Children.Wait.TimeoutAt)
		}
	}
}

func TestF40_the_arguments_of_a_wait_are_checked_before_the_fence(t *testing.T) {
	t.Parallel()
	s := begin(t, tablePolicy)
	f := s.claim()
	for code, edit := range map[base.Code]func(*ChildrenWaitCommand){
		base.CodeInvalidJoin:       func(c *ChildrenWaitCommand) { c.Join = JoinSpec{K: 1} },
		base.CodeInvalidArgument:   func(c *ChildrenWaitCommand) { c.TimeoutMS = MaxChildrenTimeout + 1 },
		base.CodeReservedDimension: func(c *ChildrenWaitCommand) { c.Usage = map[string]int64{WallMS: 1} },
	} {
		_, err := s.waitFor(f, edit)
		wantCode(t, err, code)
		_, err = s.waitFor(Fence{}, edit)
		wantCode(t, err, code)
	}
	_, err := s.waitFor(f, func(c *ChildrenWaitCommand) { c.Kind = "never" })
	wantCode(t, err, base.CodeInvalidArgument)
}

func TestF44_which_ends_of_a_parent_cancel_its_children(t *testing.T) {
	t.Parallel()
	for _, status := range Statuses() {
		for policy, want := range map[string]bool{
			CancelOnFailure: status != Succeeded, CancelAlways: true, Detach: false,
		} {
			f := Flow{OnParentEnd: policy}
			if got := f.ChildrenCancelled(status); got != want {
				t.Errorf("%s of one that is %s: %v", policy, status, got)
			}
		}
	}
	if (&Flow{Kind: KindChildren}).OfChildren() || !(&Flow{OnParentEnd: Detach}).OfChildren() {
		t.Error("a kind makes no children flow")
	}
}

// Whatever the policy, the kinds and the order in which the children end, a wait is over with the first end that decides it, and is what
// the multiset of outcomes makes of it (FI4, FI5 for waits).
func TestFI5_a_wait_for_children_equals_the_closed_form_over_outcomes(t *testing.T) {
	t.Parallel()
	terminal := []Status{Succeeded, Failed, Cancelled, Expired, Skipped}
	testseed.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "children")
		spec := JoinSpec{Policy: rapid.SampledFrom([]JoinPolicy{AllOf, AnyOf, Quorum}).Draw(t, "policy")}
		if spec.Policy == Quorum {
			spec.K = rapid.IntRange(1, n+1).Draw(t, "k")
		}
		kind := rapid.SampledFrom([]EdgeKind{SuccessOnly, FailureOnly, AnyTerminal}).Draw(t, "kind")
		ends := make([]Status, n)
		for i := range ends {
			ends[i] = rapid.SampledFrom(terminal).Draw(t, "end")
		}
		before := rapid.IntRange(0, n).Draw(t, "ended before")
		children := endedAs(append(append([]Status(nil), ends[:before]...), make([]Status, n-before)...)...)

		s := begin(t, tablePolicy)
		a := must[ChildrenWaitAnswer](t)(s.waitFor(s.claim(), func(c *ChildrenWaitCommand) {
			c.Children, c.Join, c.Kind = children, spec, kind
		}))
		decided := -1 // after how many ends
		for after := 0; after <= n && decided < 0; after++ {
			if closedForm(spec, kind, n, ends[:after]) != "" {
				decided = after
			}
		}
		if decided <= before {
			if a.State != closedForm(spec, kind, n, ends[:before]) {
				t.Fatalf("answered %+v", a)
			}
			return
		}
		for i := before; i < n; i++ {
			if waits := s.x.Status == Blocked; waits != (i < decided) {
				t.Fatalf("after %d ends it is %s, they are decided after %d", i, s.x.Status, decided)
			}
			e := a.Edges[i]
			e.Resolve(EndedRun{Status: ends[i]}, s.now)
			s.resolve(e)
		}
		want := map[string]string{WaitSatisfied: CauseChildren, WaitImpossible: CauseChildrenImpossible}[closedForm(spec, kind, n, ends[:decided])]
		if s.x.Status != Ready || s.x.Next != NextResume || s.x.Children.Wait.Cause != want {
			t.Fatalf("%s next=%s by %s, want %s", s.x.Status, s.x.Next, s.x.Children.Wait.Cause, want)
		}
	})
}

// closedForm is what the outcomes so far make of a wait; "": nothing yet.
func closedForm(spec JoinSpec, kind EdgeKind, n int, ends []Status) string {
	good := 0
	for _, status := range ends {
		failed := status == Failed || status == Cancelled || status == Expired
		if kind == AnyTerminal || kind == SuccessOnly && status == Succeeded || kind == FailureOnly && failed {
			good++
		}
	}
	needed := map[JoinPolicy]int{AllOf: n, AnyOf: 1, Quorum: spec.K}[spec.Policy]
	switch {
	case good >= needed:
		return WaitSatisfied
	case good+n-len(ends) < needed:
		return WaitImpossible
	default:
		return ""
	}
}

func TestL110_L140_the_flows_of_earlier_runs_are_remembered(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	first, second := base.IDOf(base.UUID{1}), base.IDOf(base.UUID{2})
	for i, flow := range []base.ID{first, second} {
		fence := s.claim()
		s.x.StartChildren(s.now, flow)
		if _, err := s.complete(fence, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]base.ID{first, second}[:i+1], s.x.FlowsBelow()); diff != "" {
			t.Error(diff)
		}
		before := s.x.Clone()
		if err := s.replay(ReplayCommand{}); err != nil {
			t.Fatal(err)
		}
		if s.x.Children != nil || len(before.FlowsBelow()) != i+1 {
			t.Errorf("%+v, %+v", s.x.Children, before.FlowsBelow())
		}
	}
	if diff := cmp.Diff([]base.ID{first, second}, s.x.FlowsBelow()); diff != "" {
		t.Error(diff)
	}
}
