package rules

import (
	"fmt"
	"strings"
	"testing"
)

// refusal is how a request is refused.
type refusal struct {
	what   string
	body   string
	status int
	code   string
	field  string // the place; "" where it is not of one field
}

func TestF12_refusals_name_the_place(t *testing.T) {
	t.Parallel()
	pair := nodes("a", "b")
	flow := func(more string) string { return `{"kind":"k",` + more + `}` }
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, c := range []refusal{
			// Shape and sizes.
			{"kind missing", `{"nodes":[]}`, 400, "missing_field", "/kind"},
			{"kind empty", `{"kind":"","nodes":[]}`, 400, "invalid_flow", "/kind"},
			{"kind long", `{"kind":"` + strings.Repeat("k", 129) + `"}`, 400, "invalid_flow", "/kind"},
			{"node without name", flow(`"nodes":[{"kind":"job"}]`), 400, "missing_field", "/nodes/0/name"},
			{"bad name", flow(`"nodes":[` + nodes("a", "no name") + `]`), 400, "invalid_flow", "/nodes/1/name"},
			{"no kind", flow(`"nodes":[{"name":"a"}]`), 400, "invalid_flow", "/nodes/0/kind"},
			{"empty after", flow(`"nodes":[` + node("a", after("")) + `]`), 400, "invalid_flow", "/nodes/0/after/0"},
			{"input for a sub-flow", flow(`"nodes":[{"name":"a","input":1,"flow":{"nodes":[]}}]`), 400, "invalid_flow", "/nodes/0/input"},
			{"edge kind", whole(pair, edge("a", "b", `"kind":"sometimes"`)), 400, "invalid_flow", "/edges/0/kind"},
			{"pass", whole(pair, edge("a", "b", `"pass":"no name"`)), 400, "invalid_flow", "/edges/0/pass"},
			{"pass long", whole(pair, edge("a", "b", `"pass":"`+strings.Repeat("p", 65)+`"`)), 400, "invalid_flow", "/edges/0/pass"},
			{"priority for a sub-flow", flow(`"nodes":[{"name":"a","priority":1,"flow":{"nodes":[]}}]`), 400, "invalid_flow", "/nodes/0/priority"},
			{"key for a sub-flow", flow(`"nodes":[{"name":"a","fairness_key":"k","flow":{"nodes":[]}}]`), 400, "invalid_policy", "/nodes/0/fairness_key"},
			{"retries for a sub-flow", flow(`"nodes":[{"name":"a","flow":{"nodes":[{"name":"b","policy":{"retry_policy":{"max_retries":1}},"flow":{"nodes":[]}}]}}]`), 400, "invalid_policy", "/nodes/0/flow/nodes/0/policy/retry_policy"},
			{"inside", flow(`"nodes":[{"name":"a","flow":{"nodes":[{"name":"x"}]}}]`), 400, "invalid_flow", "/nodes/0/flow/nodes/0/kind"},
			{"5001 nodes", flow(`"nodes":[` + strings.Repeat(`{"name":"a","kind":"a"},`, 5000) + nodes("a") + `]`), 400, "flow_limit_exceeded", "/nodes"},
			{"50001 edges", flow(`"nodes":[` + pair + `],"edges":[` + strings.Repeat(edge("a", "b")+",", 50000) + edge("a", "b") + `]`), 400, "flow_limit_exceeded", "/edges"},
			{"budget", flow(`"budgets":[{"name":"x","dimensions":{}}],` + drawn(pair)), 400, "invalid_budget", "/budgets/0/dimensions"},
			// Each node by the rules of single submit.
			{"lane", whole(nodes("a", "b", "c"), node("d", `"lane":"no lane"`)), 400, "invalid_argument", "/nodes/3/lane"},
			{"tag", whole(node("a", `"tags":{"":"x"}`)), 400, "invalid_tag_key", "/nodes/0/tags/"},
			{"policy", whole(node("a", `"policy":{"retry_policy":{"max_retries":-1}}`)), 400, "invalid_policy", "/nodes/0/policy/retry_policy/max_retries"},
			{"unknown budget", whole(nodes("a"), node("b", `"budget_ids":["missing"]`)), 400, "invalid_policy", "/nodes/1/budget_ids/0"},
			{"delay", whole(node("a", `"delay_ms":-1`)), 400, "invalid_argument", "/nodes/0/delay_ms"},
			{"inner lane", flow(`"nodes":[` + nodes("z") + `,{"name":"a","flow":{"nodes":[` + node("x", `"lane":"no lane"`) + `]}}]`), 400, "invalid_argument", "/nodes/1/flow/nodes/0/lane"},
			// Names.
			{"twice", whole(nodes("a", "b", "a")), 400, "duplicate_name", "/nodes/2/name"},
			{"unknown after", whole(nodes("a"), node("b", after("a", "x"))), 400, "unknown_name", "/nodes/1/after/1"},
			{"unknown from", whole(pair, edge("x", "b")), 400, "unknown_name", "/edges/0/from"},
			{"unknown to", whole(pair, edge("a", "b"), edge("a", "x")), 400, "unknown_name", "/edges/1/to"},
			{"unknown output", flow(`"output":"x",` + drawn(pair)), 400, "unknown_name", "/output"},
			// Edges.
			{"self", whole(pair, edge("a", "a")), 400, "self_referencing_edge", "/edges/0"},
			{"self by after", whole(node("a", after("a"))), 400, "self_referencing_edge", "/nodes/0/after/0"},
			{"two of a pair", whole(pair, edge("a", "b"), edge("a", "b", `"kind":"failure_only"`)), 409, "dependency_already_exists", "/edges/1"},
			{"edge id twice", whole(nodes("a", "b", "c"), edge("a", "b", edgeID), edge("a", "c", edgeID)), 409, "edge_id_taken", "/edges/1/edge_id"},
			{"inputs of one name", whole(nodes("a", "b", "c"), edge("a", "c", `"pass":"x"`), edge("b", "c", `"pass":"x"`)), 400, "duplicate_name", "/edges/1/pass"},
			{"cycle", whole(node("a", after("b")), node("b", after("a"))), 409, "cycle_detected", "/nodes/1/after/0"},
			// Joins.
			{"join without edges", whole(pair, node("c", join("any_of"))), 400, "join_without_edges", "/nodes/2/join"},
			{"policy of a join", whole(nodes("a"), node("b", after("a"), join("most"))), 400, "invalid_join", "/nodes/1/join/policy"},
			{"on_satisfied", whole(nodes("a"), node("b", after("a"), join("any_of", `"on_satisfied":"maybe"`))), 400, "invalid_argument", "/nodes/1/join/on_satisfied"},
			{"k missing", whole(nodes("a"), node("b", after("a"), join("quorum"))), 400, "invalid_join", "/nodes/1/join/k"},
			{"k below 1", whole(nodes("a"), node("b", after("a"), join("quorum", `"k":-1`))), 400, "invalid_join", "/nodes/1/join/k"},
			{"k of another policy", whole(nodes("a"), node("b", after("a"), join("any_of", `"k":1`))), 400, "invalid_join", "/nodes/1/join/k"},
			{"k above n", whole(nodes("a"), node("b", after("a"), join("quorum", `"k":2`))), 400, "quorum_exceeds_edges", "/nodes/1/join/k"},
		} {
			got := w.post(t, "/v1/flows", c.body)
			if got.status != c.status || got.text(t, "code") != c.code || got.text(t, "field") != c.field || got.field(t, "retryable") != false {
				t.Errorf("%s: %d %s", c.what, got.status, got.body)
			}
		}
		w.get(t, "/v1/flows").wants(t, 200).shows(t, fields{"items.0": nil})
		if n := w.counted(t); n != 0 {
			t.Errorf("%d executions were made", n)
		}
		w.flow(t, growing(nodes("a"), node("b", after("a"), join("quorum", `"k":2`)))).shows(t, fields{"created": true}) // more may come
	})
}

const edgeID = `"edge_id":"0198f0a0-0000-7000-8000-0000000000aa"`

func TestF12_of_several_faults_the_first_in_order_is_told(t *testing.T) {
	t.Parallel()
	// Each line adds a fault that is looked for before all those above it.
	onEveryStore(t, func(t *testing.T, w *world) {
		parts := []string{node("s"), node("u", after("s"), join("quorum", `"k":9`))}
		for _, c := range []struct{ part, code, field string }{
			{"", "quorum_exceeds_edges", "/nodes/1/join/k"},
			{node("j", join("all_of")), "join_without_edges", "/nodes/0/join"},
			{edge("u", "s"), "cycle_detected", ""},
			{edge("u", "u"), "self_referencing_edge", ""},
			{edge("s", "missing"), "unknown_name", ""},
			{node("s"), "duplicate_name", ""},
			{node("bad3", `"budget_ids":["missing"]`), "invalid_policy", "/nodes/0/budget_ids/0"},
			{node("bad2", `"lane":"no lane"`), "invalid_argument", "/nodes/0/lane"},
			{node("bad1", `"budget_ids":["missing"]`), "invalid_policy", "/nodes/0/budget_ids/0"},
			{edge("s", "u", `"kind":"odd"`), "invalid_flow", ""},
		} {
			if c.part != "" {
				parts = append([]string{c.part}, parts...)
			}
			got := w.post(t, "/v1/flows", whole(parts...))
			if got.text(t, "code") != c.code || c.field != "" && got.text(t, "field") != c.field {
				t.Errorf("want %s at %s: %s\n%s", c.code, c.field, got.body, got.asked)
			}
		}
		w.get(t, "/v1/flows").wants(t, 200).shows(t, fields{"items.0": nil})
	})
}

func TestF12_one_bad_node_of_three_hundred_leaves_nothing(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		parts := make([]string, 300)
		for i := range parts {
			parts[i] = node(fmt.Sprintf("n%d", i))
		}
		parts[298] = node("n298", `"policy":{"retry_policy":{"max_retries":-1}}`)
		w.post(t, "/v1/flows", whole(parts...)).refuses(t, 400, "invalid_policy").shows(t, fields{"field": "/nodes/298/policy/retry_policy/max_retries"})
		if n := w.counted(t); n != 0 {
			t.Errorf("%d executions were made", n)
		}
		w.claimsNothing(t, "default")
		parts[298] = node("n298")
		w.flow(t, whole(parts...)).shows(t, fields{"node_count": 300})
	})
}
