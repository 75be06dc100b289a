package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// earlyCase is a condition over the adopted keys a and b and the fresh key c, and signals that do not and do meet it.
type earlyCase struct {
	name      string
	condition string
	keys      []string // adopted
	fresh     []string
	partial   []string // as evidenceOf reads them
	enough    []string // nil: no early signal can be enough
}

func earlyCases() []earlyCase {
	const ab = `"waitpoints":["a","b"]`
	singleC := strings.ReplaceAll(singleA, `"a"`, `"c"`)
	return []earlyCase{
		{"single", singleNamed, []string{"a"}, nil, []string{"a no"}, []string{"a go"}},
		{"all of", bothOf(singleA, singleB), []string{"a", "b"}, nil, []string{"a go", "a go"}, []string{"a go", "b no"}},
		{"any of", together(singleNamed, singleB), []string{"a", "b"}, nil, []string{"a no"}, []string{"b no"}},
		{"distinct signals", countOf(2, "distinct_signals", ab), []string{"a", "b"}, nil, []string{"a go"}, []string{"a go", "a go"}},
		{"distinct waitpoints", countOf(2, "distinct_waitpoints", ab), []string{"a", "b"}, nil, []string{"a go", "a no"}, []string{"a go", "b go"}},
		{"distinct sources", countOf(2, "distinct_sources", ab), []string{"a", "b"}, nil, []string{"a go ci x", "b go ci x"}, []string{"a go ci x", "b go ci y"}},
		{"any of, one fresh", together(singleNamed, singleC), []string{"a"}, []string{"c"}, []string{"a no"}, []string{"a go"}},
		{"all of, one fresh", bothOf(singleA, singleC), []string{"a"}, []string{"c"}, []string{"a go"}, nil},
		{"count, one fresh", countOf(2, "distinct_signals", `"waitpoints":["a","c"]`), []string{"a"}, []string{"c"}, []string{"a go"}, []string{"a go", "a no"}},
		{"operator only", operatorOnly, []string{"a"}, nil, []string{"a go"}, nil},
	}
}

// deliver sends signals written as evidenceOf reads them to waitpoints by key.
func (s *story) deliver(byKey map[string]base.UUID, signals []string) []SignalAnswer {
	s.t.Helper()
	var answers []SignalAnswer
	for _, one := range evidenceOf(signals...) {
		answers = append(answers, must[SignalAnswer](s.t)(s.signal(byKey[one.WaitpointKey], one.Name, from(one.SourceType, one.SourceIdentity))))
	}
	return answers
}

// suspendEarly makes waitpoints, sends signals to them, and then suspends; freshFirst puts the fresh ones before the adopted.
func suspendEarly(t tester, c earlyCase, signals []string, freshFirst bool) (*story, map[string]base.UUID, SuspendAnswer) {
	s := begin(t, `{}`)
	f := s.claim()
	byKey := map[string]base.UUID{}
	for i, id := range s.pendingAt(c.keys...) {
		byKey[c.keys[i]] = id
	}
	for _, a := range s.deliver(byKey, signals) {
		if a.Effect != condition.EffectBuffered {
			t.Fatalf("W61: a signal for a pending waitpoint has the effect %s", a.Effect)
		}
	}
	var bindings []Binding
	for _, key := range c.keys {
		bindings = append(bindings, pending(byKey[key])...)
	}
	if freshFirst {
		bindings = append(fresh(c.fresh...), bindings...)
	} else {
		bindings = append(bindings, fresh(c.fresh...)...)
	}
	a := must[SuspendAnswer](t)(s.suspendFor(f, c.condition, bound(bindings...)))
	for _, w := range a.Waitpoints {
		byKey[w.Key] = w.ID
	}
	return s, byKey, a
}

// progressOf is the progress of each node of the open suspension.
func (s *story) progressOf() []int {
	s.t.Helper()
	view, err := s.x.SuspendedView(&s.d)
	if err != nil || view == nil {
		s.t.Fatalf("shows %+v, %v", view, err)
	}
	progress := make([]int, len(view.Progress))
	for i, node := range view.Progress {
		progress[i] = node.Progress
	}
	return progress
}

func TestW48_W51_WI10_early_signals_count_as_if_they_had_come_after_the_suspend(t *testing.T) {
	t.Parallel()
	for _, c := range earlyCases() {
		for name, signals := range map[string][]string{"none": nil, "partial": c.partial} {
			early, _, a := suspendEarly(t, c, signals, false)
			late, byKey, _ := suspendEarly(t, c, nil, false)
			if a.Satisfied {
				t.Fatalf("%s, %s: satisfied by %q", c.name, name, signals)
			}
			late.deliver(byKey, signals)
			if diff := cmp.Diff(late.progressOf(), early.progressOf()); diff != "" {
				t.Errorf("%s, %s: %s", c.name, name, diff)
			}
		}
	}
}

func TestW49_enough_early_signals_pass_the_wait_and_leave_lease_and_attempt(t *testing.T) {
	t.Parallel()
	for _, c := range earlyCases() {
		if c.enough == nil {
			continue
		}
		for _, freshFirst := range []bool{false, true} {
			s, byKey, a := suspendEarly(t, c, c.enough, freshFirst)
			if !a.Satisfied || a.Cause != CauseEarlySignals || len(a.Signals) != len(c.enough) || len(a.Waitpoints) != len(c.keys) {
				t.Fatalf("%s: %+v", c.name, a)
			}
			s.want(Running, ReasonNone, NextNone)
			for _, key := range c.keys {
				s.wantClosed(byKey[key], ClosedResumed)
			}
			if len(s.d.Waitpoints) != len(c.keys) {
				t.Fatalf("%s: a fresh waitpoint was made", c.name)
			}
			s.wantCause(a.SuspensionID, CauseEarlySignals)
			data := s.last("execution.suspend_satisfied")
			if ids, _ := data["signals"].([]any); data["suspension_id"] != a.SuspensionID.String() || len(ids) != len(c.enough) {
				t.Fatalf("E29: %v", data)
			}
			shown := s.observed()
			if shown.Cause != CauseEarlySignals || len(shown.Signals) != len(c.enough) || shown.ID != a.SuspensionID {
				t.Fatalf("W82: %+v", shown)
			}
			must[CompleteAnswer](t)(s.complete(s.fence(), nil))
		}
	}
}

func TestW43_a_buffered_signal_is_matched_by_the_condition_that_adopts_it(t *testing.T) {
	t.Parallel()
	s, byKey, a := suspendEarly(t, earlyCase{condition: singleNamed, keys: []string{"a"}}, []string{"a no", "a go"}, false)
	var matched []string
	for _, one := range a.Signals {
		matched = append(matched, fmt.Sprint(one.Name, one.Matched))
	}
	if diff := cmp.Diff([]string{"nofalse", "gotrue"}, matched); diff != "" {
		t.Fatal(diff)
	}
	views, err := s.x.WaitpointViews(&s.d, true)
	if err != nil || views[0].ID != byKey["a"] || views[0].SignalCount != 2 || views[0].MatchedSignals != 1 || views[0].LastSignalAt != s.now {
		t.Fatalf("%+v, %v", views, err)
	}
}

func TestW50_only_the_adopted_waitpoints_become_active(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	f := s.claim()
	ids := s.pendingAt("other", "a", "third")
	a := must[SuspendAnswer](t)(s.suspendFor(f, singleA, bound(pending(ids[1])...)))
	if got := must[SignalAnswer](t)(s.signal(ids[0], "go")); got.Effect != condition.EffectBuffered {
		t.Fatalf("W63: %+v", got)
	}
	must[SignalAnswer](t)(s.signal(a.Waitpoints[0].ID, "go"))
	s.want(Ready, WaitingForWorker, NextResume)
	s.wantClosed(ids[1], ClosedResumed)
	s.wantClosed(ids[0], "") // W62: others are untouched
	s.wantClosed(ids[2], "")
}
