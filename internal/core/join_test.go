package core

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// edgesOf makes edges of which so many are satisfied, impossible and pending.
func edgesOf(satisfied, impossible, pending int) (all []Edge) {
	for range satisfied {
		all = append(all, Edge{State: EdgeSatisfied})
	}
	for range impossible {
		all = append(all, Edge{State: EdgeImpossible})
	}
	for range pending {
		all = append(all, Edge{State: EdgePending})
	}
	return all
}

// tableSays is the table of joins in section 5 of the flows, with F24 before it.
func tableSays(spec JoinSpec, satisfied, impossible, n int, sealed bool) JoinState {
	holds, breaks := false, false
	switch spec.Policy {
	case AllOf:
		holds, breaks = satisfied == n, impossible >= 1
	case AnyOf:
		holds, breaks = satisfied >= 1, impossible == n
	case Quorum:
		if spec.K > n {
			breaks = sealed
		} else {
			holds, breaks = satisfied >= spec.K, impossible > n-spec.K
		}
	}
	switch {
	case n == 0:
		return JoinNone
	case holds:
		return JoinHeld
	case breaks:
		return JoinBroken
	default:
		return JoinPending
	}
}

func TestF22_F23_F24_the_verdict_of_a_join_is_the_table(t *testing.T) {
	t.Parallel()
	const most = 5
	specs := []JoinSpec{{}, {Policy: AnyOf}}
	for k := 1; k <= most+1; k++ {
		specs = append(specs, JoinSpec{Policy: Quorum, K: k})
	}
	for _, spec := range specs {
		for n := range most + 1 {
			for satisfied := range n + 1 {
				for impossible := range n - satisfied + 1 {
					j := Join{JoinSpec: spec}
					for _, e := range edgesOf(satisfied, impossible, n-satisfied-impossible) {
						j.add(&e)
					}
					if j.Satisfied != satisfied || j.Impossible != impossible || j.Pending() != n-satisfied-impossible || j.N != n {
						t.Fatalf("%+v of %d, %d, %d", j, satisfied, impossible, n)
					}
					for _, sealed := range []bool{false, true} {
						if got, want := j.verdict(sealed), tableSays(spec, satisfied, impossible, n, sealed); got != want {
							t.Errorf("%s k=%d: %d satisfied, %d impossible of %d, sealed %t: %s, want %s", spec.Policy, spec.K, satisfied, impossible, n, sealed, got, want)
						}
					}
				}
			}
		}
	}
}

func TestF22_the_words_of_joins_are_read_back(t *testing.T) {
	t.Parallel()
	for _, p := range []JoinPolicy{AllOf, AnyOf, Quorum} {
		if back, ok := ParseJoinPolicy(p.String()); !ok || back != p {
			t.Errorf("%s: %v %t", p, back, ok)
		}
	}
	if _, ok := ParseJoinPolicy("most_of"); ok {
		t.Error("most_of is no policy")
	}
	words := ""
	for s := JoinNone; s <= JoinOverridden; s++ {
		words += fmt.Sprintf("%s %t %t; ", s, s.Decided(), s.Holds())
	}
	if words != " false true; pending false false; satisfied true true; impossible true false; overridden true true; " {
		t.Error(words)
	}
}

func TestF18_a_join_is_set_while_no_edge_leads_to_its_member(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`, func(s *Submission) { s.Member = &Membership{Name: "m"} })
	f := &Flow{State: FlowOpen}
	set := func(spec JoinSpec) (changed bool, err error) {
		_ = s.do(func(fx *Effects) error {
			changed, err = s.x.SetJoin(fx, f, spec)
			return err
		})
		return changed, err
	}
	any2 := JoinSpec{Policy: Quorum, K: 2}
	for i, want := range []bool{true, false} {
		if changed, err := set(any2); err != nil || changed != want {
			t.Fatalf("%d: %t %v", i, changed, err)
		}
	}
	if f.Revision != 1 || !f.Quorums {
		t.Errorf("%+v", f)
	}
	s.x.EdgeAdded(&Edge{State: EdgePending})
	if changed, err := set(any2); err != nil || changed {
		t.Errorf("the same: %t %v", changed, err)
	}
	for _, other := range []JoinSpec{{}, {Policy: Quorum, K: 3}, {Policy: Quorum, K: 2, OnSatisfied: CancelRemaining}} {
		_, err := set(other)
		wantCode(t, err, base.CodeJoinAlreadyFixed)
	}
	late := begin(t, `{}`, func(s *Submission) { s.Member = &Membership{Name: "m"} })
	for state, code := range map[*Flow]base.Code{{State: FlowOpen, Sealed: true}: base.CodeFlowSealed, {State: FlowCompleted}: base.CodeFlowAlreadyTerminal, {State: FlowCancelling}: base.CodeFlowAlreadyTerminal} {
		_, err := late.x.SetJoin(late.effects(), state, any2)
		wantCode(t, err, code)
	}
}
