package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// endedMember is a member that has ended.
func endedMember(name string, status Status, reason Reason, mayFail bool) *Execution {
	return &Execution{Status: status, Reason: reason, Policy: &Policy{}, Member: &Membership{Name: name, MayFail: mayFail}}
}

func flowKinds(fx *Effects) (kinds []string) {
	for _, ev := range fx.Events {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

func TestF5_which_ends_count_as_failures(t *testing.T) {
	t.Parallel()
	bad := map[string]bool{
		"failed": true, "expired": true, "cancelled cancelled": true, "cancelled flow_cancelled": true,
	}
	for _, status := range outcomes {
		for _, reason := range []Reason{CancelledByRequest, FlowCancelled, JoinSatisfied, JoinImpossible} {
			what := status.String()
			if status == Cancelled {
				what += " " + reason.String()
			}
			for _, mayFail := range []bool{false, true} {
				x := endedMember("m", status, reason, mayFail)
				if got, want := x.CountsBad(), bad[what] && !mayFail; got != want {
					t.Errorf("%s, may fail %t: %t", what, mayFail, got)
				}
			}
		}
	}
	if (&Execution{Status: Failed}).CountsBad() {
		t.Error("one outside of a flow is no failure of it")
	}
}

func TestF5_who_took_care_of_a_failure(t *testing.T) {
	t.Parallel()
	for state := JoinNone; state <= JoinOverridden; state++ {
		x := &Execution{Member: &Membership{Join: Join{State: state}}}
		if got, want := x.TookCare(), state == JoinHeld || state == JoinOverridden; got != want {
			t.Errorf("%s: %t", state, got)
		}
	}
	if (&Execution{}).TookCare() {
		t.Error("one outside of a flow takes care of nothing")
	}
}

func TestFI10_ends_are_counted_and_taken_back(t *testing.T) {
	t.Parallel()
	f := &Flow{State: FlowOpen}
	var members []*Execution
	for i, status := range outcomes {
		x := endedMember(fmt.Sprint("m", i), status, CancelledByRequest, false)
		members = append(members, x)
		f.AddMember(x)
	}
	f.AddMember(&Execution{Status: Ready, Policy: &Policy{}, Member: &Membership{Name: "open"}})
	one := FlowEnds{Completed: 1, Failed: 1, Expired: 1, Cancelled: 1, Skipped: 1}
	if f.Nodes != 6 || f.Open != 1 || f.Ends != one || f.Bad != 3 || !slices.Equal(f.BadNames, []string{"m1", "m2", "m3"}) {
		t.Fatalf("%+v", f)
	}
	before := f.BadNames
	f.MemberReopened(members[2])
	f.MemberReopened(members[0])
	if f.Open != 3 || f.Ends.Expired != 0 || f.Ends.Completed != 0 || f.Bad != 2 || !slices.Equal(f.BadNames, []string{"m1", "m3"}) {
		t.Fatalf("%+v", f)
	}
	f.MemberEnded(members[2])
	f.MemberEnded(members[0])
	if f.Open != 1 || f.Ends != one || f.Bad != 3 || len(f.BadNames) != 3 {
		t.Fatalf("%+v", f)
	}
	if !slices.Equal(before, []string{"m1", "m2", "m3"}) {
		t.Errorf("a snapshot was changed: %v", before)
	}
	for i := range 2 * MaxBadNames {
		f.AddMember(endedMember(fmt.Sprint("n", i), Failed, ReasonNone, false))
	}
	if f.Bad != 3+2*MaxBadNames || len(f.BadNames) != MaxBadNames {
		t.Errorf("%d of %d are remembered", len(f.BadNames), f.Bad)
	}
}

func TestF4_F51_when_and_how_a_flow_ends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state    FlowState
		sealed   bool
		open     int
		failures []string
		due      bool
		want     FlowState
	}{
		{FlowOpen, true, 0, nil, true, FlowCompleted},
		{FlowOpen, true, 0, []string{"a"}, true, FlowFailed},
		{FlowOpen, true, 1, nil, false, ""},
		{FlowOpen, false, 0, nil, false, ""},
		{FlowCancelling, true, 0, nil, true, FlowStopped},
		{FlowCancelling, false, 0, nil, true, FlowStopped},
		{FlowCancelling, true, 1, nil, false, ""},
		{FlowCompleted, true, 0, nil, false, ""},
		{FlowFailed, true, 0, nil, false, ""},
		{FlowStopped, true, 0, nil, false, ""},
	} {
		f := &Flow{State: c.state, Sealed: c.sealed, Open: c.open}
		if f.Due() != c.due {
			t.Errorf("%+v: due %t", c, f.Due())
		}
		if !c.due {
			continue
		}
		fx := &Effects{Now: 5}
		f.End(fx, c.failures)
		if f.State != c.want || f.EndedAt != 5 || !slices.Equal(f.Failures, c.failures) || f.Due() {
			t.Errorf("%+v: %+v", c, f)
		}
		if diff := cmp.Diff([]string{"flow." + string(c.want)}, flowKinds(fx)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestF3_F7_F15_F17_what_a_flow_refuses_and_counts(t *testing.T) {
	t.Parallel()
	fx := &Effects{Now: 3}
	s := &FlowSubmission{Namespace: "n", Kind: "k", Creator: "c"}
	f := NewFlow(fx, s, base.IDOf(base.UUID{1}), FlowParent{})
	if f.Root != f.ID || f.State != FlowOpen || f.Revision != 0 {
		t.Fatalf("%+v", f)
	}
	inner := NewFlow(fx, s, base.IDOf(base.UUID{2}), FlowParent{Execution: base.IDOf(base.UUID{3}), Run: 1, Root: f.ID, Depth: 1})
	if inner.Root != f.ID || inner.Parent != base.IDOf(base.UUID{3}) || inner.ParentRun != 1 || inner.Depth != 1 {
		t.Errorf("%+v", inner)
	}
	f.Extended(fx, 2, 1)
	if f.Revision != 1 || f.NotOpen() != nil {
		t.Errorf("%+v", f)
	}
	for expected, ok := range map[int64]bool{1: true, 0: false, 2: false} {
		if err := f.Stale(&expected); (err == nil) != ok {
			t.Errorf("%d: %v", expected, err)
		} else if !ok && wantCode(t, err, base.CodeStaleGraphRevision).Details["graph_revision"] != int64(1) {
			t.Errorf("%v", err)
		}
	}
	if f.Stale(nil) != nil {
		t.Error("who expects nothing is not stale")
	}
	if !f.Seal(fx) || f.Seal(fx) {
		t.Error("a flow is sealed once")
	}
	wantCode(t, f.NotOpen(), base.CodeFlowSealed)
	for _, state := range []FlowState{FlowCancelling, FlowCompleted, FlowFailed, FlowStopped} {
		for _, sealed := range []bool{false, true} {
			wantCode(t, (&Flow{State: state, Sealed: sealed}).NotOpen(), base.CodeFlowAlreadyTerminal)
		}
	}
	if diff := cmp.Diff([]string{"flow.extended", "flow.sealed"}, flowKinds(fx)); diff != "" {
		t.Error(diff)
	}
	a := "a"
	if err := f.SetTags(&Effects{Now: 8}, map[string]*string{"team": &a}, false); err != nil || f.Tags["team"] != "a" || f.LastMutationAt != 8 {
		t.Errorf("%v %+v", err, f)
	}
	wantCode(t, f.SetTags(fx, map[string]*string{"no tag": &a}, false), base.CodeInvalidTagKey)
}

func TestF6_the_phase_is_the_first_that_fits(t *testing.T) {
	t.Parallel()
	order := []struct {
		phase    string
		statuses []Status
	}{
		{"running", []Status{Running, Granted}},
		{"waiting", []Status{Ready, Delayed}},
		{"suspended", []Status{Suspended}},
		{"blocked", []Status{Blocked}},
		{"idle", outcomes},
	}
	for i, c := range order {
		for _, status := range c.statuses {
			there := map[Status]bool{status: true}
			for _, later := range order[i+1:] {
				for _, other := range later.statuses {
					there[other] = true
				}
			}
			if got := Phase(func(s Status) bool { return there[s] }); got != c.phase {
				t.Errorf("%s: %s, want %s", status, got, c.phase)
			}
		}
	}
	if got := Phase(func(Status) bool { return false }); got != "idle" {
		t.Error(got)
	}
}
