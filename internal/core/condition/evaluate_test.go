package condition

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestW40_each_condition_is_satisfied_by_what_its_row_says(t *testing.T) {
	t.Parallel()
	everything := []string{"a go external x", "b go external y", "a no operator ann"}
	for _, row := range []struct {
		condition string
		enough    []string
		tooLittle []string
	}{
		{singleA, []string{"a any external x"}, []string{"b any external x"}},
		{singleNamed, []string{"a no external x", "a go external x"}, []string{"a Go external x", "a go! external x", "a  external x", "b go external x"}},
		{operatorOnly, nil, everything},
		{timeoutOnly, nil, everything},
		{bothOf(singleA, singleB), []string{"b x", "a x"}, []string{"a x", "a y"}},
		{bothOf(singleA, operatorOnly), nil, everything},
		{bothOf(singleA, singleA), []string{"a x"}, []string{"b x"}},
		{together(singleNamed, singleB), []string{"b x"}, []string{"a x"}},
		{together(operatorOnly, timeoutOnly), nil, everything},
		{`{"type":"all_of"}`, nil, everything},
		{`{"type":"any_of"}`, nil, everything},
		{together(bothOf(singleA, timeoutOnly), bothOf(singleB, singleA)), []string{"b x", "a x"}, []string{"a x"}},
		{countOf(2, "distinct_signals", `"waitpoints":["a","b"]`), []string{"a x", "a x"}, []string{"a x", "c x"}},
		{countOf(2, "distinct_signals", `"name":"go","waitpoints":["a","b"]`), []string{"a go", "a no", "b go"}, []string{"a go", "b no"}},
		{countOf(2, "distinct_waitpoints", `"waitpoints":["a","b","c"]`), []string{"c x", "a x"}, []string{"a x", "a y", "d x"}},
		{countOf(2, "distinct_sources", `"waitpoints":["a","b"]`), []string{"a x ci 1", "b x ci 2"}, []string{"a x ci 1", "b y ci 1", "c x ci 2"}},
		{countOf(0, "distinct_signals", `"waitpoints":["a"]`), nil, everything},
	} {
		c := parsed(t, row.condition)
		if row.enough != nil && !c.Evaluate(evidenceOf(row.enough...)).Satisfied() {
			t.Errorf("%s is not satisfied by %q", row.condition, row.enough)
		}
		if c.Evaluate(evidenceOf(row.tooLittle...)).Satisfied() || c.Evaluate(nil).Satisfied() {
			t.Errorf("%s is satisfied by %q or by nothing", row.condition, row.tooLittle)
		}
	}
}

func TestW39_distinct_sources_are_types_and_identities(t *testing.T) {
	t.Parallel()
	sources := parsed(t, countOf(9, "distinct_sources", `"waitpoints":["a","b"]`))
	some := parsed(t, countOf(9, "distinct_sources", `"source_types":["operator","external"],"waitpoints":["a","b"]`))
	for _, row := range []struct {
		signals   []string
		all, kept int
	}{
		{[]string{"a x ci 1", "b y ci 1"}, 1, 0},
		{[]string{"a x ci 1", "a x external 1", "a x ci 2"}, 3, 1},
		{[]string{"a x operator ann", "a x approver ann"}, 1, 1},
		{[]string{"a x approver ann", "a x approver ann"}, 1, 0},
		{[]string{"a x operator ann", "a x approver bob"}, 2, 1},
		{[]string{"a x operator ann", "a x external ann", "a x engine ann"}, 3, 2},
		{[]string{"a x external", "b x external", "a x ci", "a x ci 1"}, 3, 1},
		{[]string{"a x operator", "a x approver"}, 1, 1},
		{[]string{"a x operator ann", "a x operator Ann"}, 1, 1}, // one person (W66)
	} {
		all := evidenceOf(row.signals...)
		if got := sources.Evaluate(all).Progress()[0]; got != row.all {
			t.Errorf("%q are %d sources, want %d", row.signals, got, row.all)
		}
		if got := some.Evaluate(all).Progress()[0]; got != row.kept {
			t.Errorf("%q are %d sources of the types wanted, want %d", row.signals, got, row.kept)
		}
	}
}

func TestW66_two_approvers_are_two_people_and_one_veto_is_enough(t *testing.T) {
	t.Parallel()
	approvals := countOf(2, "distinct_sources", `"name":"approved","source_types":["operator","approver"],"waitpoints":["a"]`)
	vetoed := together(approvals, `{"type":"single","waitpoint_key":"a","name":"rejected"}`)
	for _, row := range []struct {
		condition string
		signals   []string
		met       bool
	}{
		{approvals, []string{"a approved operator ann", "a approved operator ann"}, false},
		{approvals, []string{"a approved operator ann", "a approved approver ann"}, false},
		{approvals, []string{"a approved operator ann", "a approved approver bob"}, true},
		{approvals, []string{"a approved operator ann", "a rejected approver bob"}, false},
		{approvals, []string{"a approved operator ann", "a approved external bob"}, false},
		{vetoed, []string{"a rejected external bob"}, true},
	} {
		if got := parsed(t, row.condition).Evaluate(evidenceOf(row.signals...)).Satisfied(); got != row.met {
			t.Errorf("%s with %q is %v", row.condition, row.signals, got)
		}
	}
}

func TestW40_distinct_signals_are_told_apart_by_their_id(t *testing.T) {
	t.Parallel()
	c := parsed(t, countOf(2, "distinct_signals", `"waitpoints":["a","b"]`))
	same := Evidence{WaitpointKey: "a", SignalID: base.UUID{1}, Name: "x"}
	elsewhere := Evidence{WaitpointKey: "b", SignalID: base.UUID{1}, Name: "y"}
	if got := c.Evaluate([]Evidence{same, same, elsewhere}).Progress(); got[0] != 1 {
		t.Errorf("one signal_id counts %d times", got[0])
	}
}

func TestW40_count_nodes_do_not_share_what_they_count(t *testing.T) {
	t.Parallel()
	one, three := countOf(2, "distinct_signals", `"waitpoints":["a"]`), countOf(3, "distinct_signals", `"waitpoints":["a","b"]`)
	e := parsed(t, bothOf(one, bothOf(three, one))).Evaluate(evidenceOf("a x", "a x"))
	if got := e.Progress(); !slices.Equal(got, []int{2, 2, 2}) || e.Satisfied() {
		t.Errorf("progress %v, satisfied %v", got, e.Satisfied())
	}
	e = parsed(t, bothOf(one, bothOf(three, one))).Evaluate(evidenceOf("a x", "b x", "a x"))
	if got := e.Progress(); !slices.Equal(got, []int{2, 3, 2}) || !e.Satisfied() {
		t.Errorf("progress %v, satisfied %v", got, e.Satisfied())
	}
}

func TestW43_a_signal_is_matched_when_one_node_that_mentions_its_key_lets_it_pass(t *testing.T) {
	t.Parallel()
	c := parsed(t, together(singleNamed, countOf(2, "distinct_sources", `"name":"ok","source_types":["ci"],"waitpoints":["a","b"]`), operatorOnly))
	e := c.Evaluate(nil)
	for signal, want := range map[string]bool{
		"a go ci 1": true, "a go external 1": true, "a ok ci 1": true, "a ok external 1": false, "a no ci 1": false,
		"b go ci 1": false, "b ok ci 1": true, "c ok ci 1": false,
	} {
		one := evidenceOf(signal)[0]
		if got := e.Matches(one); got != want {
			t.Errorf("%q is matched: %v", signal, got)
		}
		if got := c.Evaluate(nil).Add(one).Matched(); got != want {
			t.Errorf("the effect of %q is that of a matched one: %v", signal, got)
		}
	}
	if slices.ContainsFunc(e.Progress(), func(n int) bool { return n > 0 }) {
		t.Error("asking counted")
	}
	if EffectBuffered.Matched() {
		t.Error("a buffered signal was looked at")
	}
}

func TestW61_each_row_of_the_effects_of_an_active_waitpoint(t *testing.T) {
	t.Parallel()
	two := countOf(2, "distinct_sources", `"name":"ok","waitpoints":["a","b"]`)
	for _, row := range []struct {
		condition string
		before    []string
		signal    string
		want      SignalEffect
	}{
		{singleA, nil, "a x", EffectSatisfied},
		{singleNamed, nil, "a no", EffectNotMatched},
		{singleNamed, nil, "b go", EffectNotMentioned},
		{operatorOnly, nil, "a x", EffectNotMentioned},
		{two, nil, "a ok ci 1", EffectAppended},
		{two, []string{"a ok ci 1"}, "b ok ci 1", EffectRepeated},
		{two, []string{"a ok ci 1"}, "b ok ci 2", EffectSatisfied},
		{two, []string{"a ok ci 1"}, "b no ci 2", EffectNotMatched},
		{two, []string{"a ok ci 1"}, "c ok ci 2", EffectNotMentioned},
		{bothOf(singleA, singleB), nil, "a x", EffectAppended},
		{bothOf(singleA, singleB), []string{"a x"}, "a y", EffectRepeated},
		{bothOf(singleA, singleB), []string{"a x"}, "b y", EffectSatisfied},
		{bothOf(singleA, operatorOnly), nil, "a x", EffectAppended},
		{bothOf(two, singleA), []string{"b ok ci 1"}, "a ok ci 1", EffectAppended}, // one node does not grow, another does
		{singleA, []string{"a x"}, "a x", EffectRepeated},
		{together(singleA, two), []string{"a x"}, "a ok ci 1", EffectAppended}, // met before: not by this one
	} {
		all := evidenceOf(append(slices.Clone(row.before), row.signal)...)
		last := len(all) - 1
		if got := parsed(t, row.condition).Evaluate(all[:last]).Add(all[last]); got != row.want {
			t.Errorf("%s after %q: %q has the effect %s, want %s", row.condition, row.before, row.signal, got, row.want)
		}
	}
}

// The words are stored and shown: they are written out once more.
func TestW61_the_effects_have_the_words_of_the_table(t *testing.T) {
	t.Parallel()
	got := []SignalEffect{EffectBuffered, EffectSatisfied, EffectAppended, EffectRepeated, EffectNotMatched, EffectNotMentioned}
	want := []SignalEffect{
		"buffered_for_pending_waitpoint", "resume_condition_satisfied", "appended_to_waitpoint",
		"appended_to_waitpoint_duplicate", "signal_ignored_matcher_failed", "signal_ignored_not_in_condition",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// largestCondition is close to what W41 allows: many Count nodes over the same keys.
func largestCondition() *Condition {
	root := Condition{Kind: AllOf}
	for i := range MaxConditionNodes - 1 {
		node := Condition{Kind: Count, N: 1000, CountKind: CountDistinctWaitpoints + CountKind(i%3), SourceTypes: []string{"operator", "ci"}}
		for key := range 20 {
			node.Waitpoints = append(node.Waitpoints, fmt.Sprint("k", key))
		}
		root.Members = append(root.Members, node)
	}
	return &root
}

func thousandSignals() []Evidence {
	all := make([]Evidence, 1000)
	for i := range all {
		all[i] = Evidence{WaitpointKey: fmt.Sprint("k", i%20), SignalID: base.UUID{byte(i >> 8), byte(i)}, Name: "ok", SourceType: "ci", SourceIdentity: fmt.Sprint(i)}
	}
	return all
}

func TestW40_the_largest_condition_counts_a_thousand_signals(t *testing.T) {
	t.Parallel()
	e := largestCondition().Evaluate(thousandSignals())
	for i, got := range e.Progress() {
		if want := []int{20, 1000, 1000}[i%3]; got != want {
			t.Fatalf("node %d counted %d, want %d", i, got, want)
		}
	}
}

func BenchmarkEvaluateLargestCondition(b *testing.B) {
	c, all := largestCondition(), thousandSignals()
	b.ReportAllocs()
	for b.Loop() {
		c.Evaluate(all[1:]).Add(all[0])
	}
}

func BenchmarkEvaluateTwoApprovers(b *testing.B) {
	c, _ := Parse([]byte(countOf(2, "distinct_sources", `"name":"approved","source_types":["operator","approver"],"waitpoints":["a"]`)))
	all := evidenceOf("a approved operator ann", "a approved approver bob")
	b.ReportAllocs()
	for b.Loop() {
		c.Evaluate(all[1:]).Add(all[0])
	}
}
