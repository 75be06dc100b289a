package condition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// conditionFaults has for every reason of W46 about conditions, in the order of the table, a condition that has just this
// fault, and the member at fault.
var conditionFaults = []struct{ reason, node, member string }{
	{"allof_empty_members", `{"type":"all_of","members":[]}`, "members"},
	{"anyof_empty_members", `{"type":"any_of"}`, "members"},
	{"count_n_zero", `{"type":"count","n":0,"count_kind":"distinct_signals","waitpoints":["a"]}`, "n"},
	{"count_waitpoints_empty", `{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":[]}`, "waitpoints"},
	{"count_waitpoints_duplicate", `{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a","b","a"]}`, "waitpoints"},
	{"count_exceeds_waitpoint_set", `{"type":"count","n":3,"count_kind":"distinct_waitpoints","waitpoints":["a","b"]}`, "n"},
	{"matcher_name_empty", `{"type":"single","waitpoint_key":"a","name":""}`, "name"},
	{"condition_malformed", `{"type":"single","waitpoint_key":"a","name":"a\u0007"}`, "name"},
}

// nested puts a node into so many all_of.
func nested(node string, depth int) string {
	return strings.Repeat(`{"type":"all_of","members":[`, depth) + node + strings.Repeat(`]}`, depth)
}

func TestW46_each_fault_of_a_condition_is_found_alone(t *testing.T) {
	t.Parallel()
	for _, fault := range conditionFaults {
		wantReason(t, parsed(t, fault.node).Check(), fault.reason, "resume_condition."+fault.member)
		inside := together(`{"type":"single"}`, nested(fault.node, 2))
		wantReason(t, parsed(t, inside).Check(), fault.reason, "resume_condition.members[1].members[0].members[0]."+fault.member)
	}
}

// The later faults stand before the earlier one in the tree, so that a walk that reports what it meets first fails here.
func TestW46_the_first_fault_of_the_table_is_told_wherever_it_stands_in_the_tree(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(`{"type":"single"},`, MaxConditionNodes) + `{"type":"single"}`
	for i, fault := range conditionFaults {
		later := []string{`{"type":"single","name":"__x"}`}
		for _, other := range conditionFaults[i+1:] {
			later = append(later, other.node, nested(other.node, 1))
		}
		field := fmt.Sprintf("resume_condition.members[%d].%s", len(later), fault.member)
		all := slices.Concat(later, []string{fault.node})
		wantReason(t, parsed(t, together(all...)).Check(), fault.reason, field)
		wantReason(t, parsed(t, together(append(all, large)...)).Check(), "condition_too_large", "resume_condition")
		deep := nested(`{"type":"single"}`, MaxConditionDepth)
		wantReason(t, parsed(t, together(append(all, large, deep)...)).Check(), "condition_too_deep", "resume_condition")
	}
}

// In one node the order of the table holds too.
func TestW46_several_faults_of_one_node_are_told_in_the_order_of_the_table(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, node, member string }{
		{"count_n_zero", `{"type":"count","count_kind":"distinct_waitpoints","name":""}`, "n"},
		{"count_n_zero", `{"type":"count","n":-1,"count_kind":"distinct_waitpoints","waitpoints":["a","a"],"name":""}`, "n"},
		{"count_waitpoints_empty", `{"type":"count","n":1,"count_kind":"distinct_waitpoints","name":""}`, "waitpoints"},
		{"count_waitpoints_duplicate", `{"type":"count","n":3,"count_kind":"distinct_waitpoints","waitpoints":["a","a"],"name":""}`, "waitpoints"},
		{"count_exceeds_waitpoint_set", `{"type":"count","n":2,"count_kind":"distinct_waitpoints","waitpoints":["a"],"name":""}`, "n"},
		{"matcher_name_empty", `{"type":"count","n":2,"count_kind":"distinct_sources","waitpoints":["a"],"name":""}`, "name"},
	} {
		wantReason(t, parsed(t, row.node).Check(), row.reason, "resume_condition."+row.member)
	}
}

func TestW46_sound_conditions_pass(t *testing.T) {
	t.Parallel()
	for _, text := range append(sampleConditions(), `{"type":"count","n":2,"count_kind":"distinct_waitpoints","waitpoints":["a","b"]}`,
		`{"type":"count","n":200,"count_kind":"distinct_sources","waitpoints":["a"]}`, `{"type":"single","waitpoint_key":"_a","name":"a__b"}`) {
		c := parsed(t, text)
		must[int](t)(0, c.CheckKeys())
		must[int](t)(0, c.Check())
	}
}

func TestW46_keys_have_reasons_of_their_own_before_the_rest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", MaxWaitpointKey+1)
	single := func(key string) string { return `{"type":"single","waitpoint_key":"` + key + `"}` }
	count := func(key string) string {
		return `{"type":"count","n":0,"count_kind":"distinct_signals","waitpoints":["a","` + key + `"]}`
	}
	for text, want := range map[string][2]string{
		single(""):                        {"waitpoint_key_empty", ".waitpoint_key"},
		single(long):                      {"waitpoint_key_too_long", ".waitpoint_key"},
		count(""):                         {"waitpoint_key_empty", ".waitpoints[1]"},
		count(long):                       {"waitpoint_key_too_long", ".waitpoints[1]"},
		together(single(long), count("")): {"waitpoint_key_empty", ".members[1].waitpoints[1]"},
		nested(single(""), 9):             {"waitpoint_key_empty", strings.Repeat(".members[0]", 9) + ".waitpoint_key"},
	} {
		wantReason(t, parsed(t, text).CheckKeys(), want[0], "resume_condition"+want[1])
	}
	must[int](t)(0, parsed(t, together(`{"type":"single"}`, single(long[1:]))).CheckKeys())
}

func TestW41_depth_counts_composite_nodes_on_a_path(t *testing.T) {
	t.Parallel()
	count := `{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a"]}`
	for _, row := range []struct {
		node  string
		depth int // of all_of around it that is just allowed
	}{{`{"type":"single"}`, 4}, {`{"type":"timeout_only"}`, 4}, {count, 3}, {together(count), 2}} {
		must[int](t)(0, parsed(t, nested(row.node, row.depth)).Check())
		wantReason(t, parsed(t, nested(row.node, row.depth+1)).Check(), "condition_too_deep", "resume_condition")
		beside := strings.TrimSuffix(strings.Repeat(nested(row.node, row.depth-1)+",", 3), ",")
		must[int](t)(0, parsed(t, together(beside)).Check())
	}
	wantReason(t, parsed(t, nested(`{"type":"single"}`, 4000)).Check(), "condition_too_deep", "resume_condition")
}

func TestW41_a_condition_has_at_most_256_nodes_and_64_KiB(t *testing.T) {
	t.Parallel()
	members := slices.Repeat([]string{`{"type":"single"}`}, MaxConditionNodes-1)
	must[int](t)(0, parsed(t, together(members...)).Check())
	wantReason(t, parsed(t, together(append(members, `{"type":"operator_only"}`)...)).Check(), "condition_too_large", "resume_condition")

	keys := make([]string, 630)
	for i := range keys {
		keys[i] = fmt.Sprintf("%0100d", i)
	}
	c := Condition{Kind: Count, N: 1, CountKind: CountDistinctSignals, Waitpoints: keys}
	for i, rest := 0, MaxConditionSize-len(c.Canonical()); rest > 0; i++ {
		more := min(rest, MaxWaitpointKey-len(keys[i]))
		keys[i] += strings.Repeat("k", more)
		rest -= more
	}
	must[int](t)(0, c.Check())
	if size := len(c.Canonical()); size != MaxConditionSize {
		t.Fatalf("%d bytes", size)
	}
	// What counts is the condition and not how it was spaced.
	must[int](t)(0, parsed(t, strings.Replace(string(c.Canonical()), "{", "{\n   ", 1)).Check())
	keys[len(keys)-1] += "k"
	wantReason(t, c.Check(), "condition_too_large", "resume_condition")
}

func TestW11_texts_in_a_condition_are_plain_and_not_the_engines(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	count := func(sourceType string) string {
		return `{"type":"count","n":1,"count_kind":"distinct_sources","waitpoints":["a"],"source_types":["operator","` + sourceType + `"]}`
	}
	for text, field := range map[string]string{
		`{"type":"single","name":"` + long(MaxSignalName+1) + `"}`:                            "name",
		`{"type":"single","waitpoint_key":"a\u0000"}`:                                         "waitpoint_key",
		`{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a","b\u007f"]}`: "waitpoints[1]",
		count(""):                      "source_types[1]",
		count(`a\n`):                   "source_types[1]",
		count(long(MaxSourceType + 1)): "source_types[1]",
	} {
		wantReason(t, parsed(t, text).Check(), "condition_malformed", "resume_condition."+field)
	}
	must[int](t)(0, parsed(t, `{"type":"single","name":"`+long(MaxSignalName)+`"}`).Check())
	must[int](t)(0, parsed(t, count(long(MaxSourceType))).Check())
	for text, field := range map[string]string{
		`{"type":"single","name":"__timeout__"}`:                                          "name",
		`{"type":"single","waitpoint_key":"__"}`:                                          "waitpoint_key",
		`{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a","__b"]}`: "waitpoints[1]",
	} {
		if err := wantCode(t, parsed(t, text).Check(), base.CodeReservedName); err.Field != "resume_condition."+field {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A program in this process can put together what no JSON can say.
func TestW46_a_condition_that_would_not_survive_storing_is_refused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		c      Condition
		member string
	}{
		{Condition{}, "type"},
		{Condition{Kind: 99}, "type"},
		{Condition{Kind: Count, N: 1, Waitpoints: []string{"a"}}, "count_kind"},
		{Condition{Kind: Count, N: 1, CountKind: 99, Waitpoints: []string{"a"}}, "count_kind"},
		{Condition{Kind: Count, N: maxCountN + 1, CountKind: CountDistinctSignals, Waitpoints: []string{"a"}}, "n"},
		{Condition{Kind: Single, Waitpoints: []string{"a", "b"}}, "type"},
		{Condition{Kind: Single, Matcher: Matcher{Name: "x"}}, "type"},
		{Condition{Kind: Single, N: 1}, "type"},
		{Condition{Kind: Single, SourceTypes: []string{"operator"}}, "type"},
		{Condition{Kind: Single, Members: []Condition{{Kind: Single}}}, "type"},
		{Condition{Kind: OperatorOnly, Waitpoints: []string{"a"}}, "type"},
		{Condition{Kind: AllOf, Members: []Condition{{Kind: Single}}, Matcher: ByName("x")}, "type"},
		{Condition{Kind: Single, Waitpoints: []string{"a\xff"}}, "waitpoint_key"},
	} {
		wantReason(t, row.c.Check(), "condition_malformed", "resume_condition."+row.member)
		row.c.Evaluate([]Evidence{{WaitpointKey: "a"}}).Satisfied()
	}
}
