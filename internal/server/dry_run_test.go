package server_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// try is a request that a command refuses, and its dry run with it.
type try struct {
	name, body string
	key        string // Idempotency-Key
	code       string
	field      string
}

// taken is what the requests of refusedFlows run into.
const taken = `{"budget_id":"01900000-0000-7000-8000-00000000b001","name":"taken","scope":{"type":"none"},"dimensions":{"tokens":{"hard":9}}}`

// flowsWorld makes what the requests of refusedFlows run into.
func flowsWorld(t *testing.T, w *world) {
	t.Helper()
	w.post(t, "/v1/budgets", taken).wants(t, 201)
	w.post(t, "/v1/executions", `{"kind":"k","lane":"shut"}`).wants(t, 201)
	w.send(t, request{method: "PUT", path: "/v1/lanes/shut", body: `{"state":"draining"}`}).wants(t, 200)
	w.post(t, "/v1/executions", `{"kind":"k","execution_id":"{fp:7}:01900000-0000-7000-8000-00000000e001"}`).wants(t, 201)
	const graph = `"nodes":[{"name":"a","kind":"k"}]}`
	w.post(t, "/v1/flows", `{"kind":"first","flow_id":"01900000-0000-7000-8000-00000000f001",`+graph).wants(t, 201)
	w.post(t, "/v1/flows", `{"kind":"first","idempotency_key":"used",`+graph).wants(t, 201)
	w.send(t, request{method: "POST", path: "/v1/flows", body: `{"kind":"first",` + graph, header: map[string]string{"Idempotency-Key": "asked"}}).wants(t, 201)
	w.send(t, request{method: "PUT", path: "/v1/namespaces/default", body: `{"max_payload_bytes":1000,"max_ready":100}`}).wants(t, 200)
}

// refusedNodes are nodes that rows refuse, or the clock, with where the fault is: at the top and inside of sub-flows alike.
func refusedNodes() map[string]try {
	const own = `"dimensions":{"tokens":{"hard":1}}}]`
	return map[string]try{
		"a name of a budget that is taken": {body: `"kind":"k","budgets":[{"name":"taken",` + own, code: "budget_already_exists", field: "/budgets/0/name"},
		"the same in its policy":           {body: `"kind":"k","policy":{"budgets":[{"name":"taken",` + own + `}`, code: "budget_already_exists", field: "/policy/budgets/0/name"},
		"an id of a budget that is taken":  {body: `"kind":"k","budgets":[{"budget_id":"01900000-0000-7000-8000-00000000b001",` + own, code: "budget_already_exists", field: "/budgets/0/budget_id"},
		"a budget below one that is not":   {body: `"kind":"k","budgets":[{"name":"mine","parent":"missing",` + own, code: "invalid_policy", field: "/budgets/0/parent"},
		"a budget that is not":             {body: `"kind":"k","budget_ids":["missing"]`, code: "invalid_policy", field: "/budget_ids/0"},
		"a quota that is not":              {body: `"kind":"k","quotas":[{"quota":"missing"}]`, code: "invalid_policy", field: "/quotas/0/quota"},
		"a closed lane":                    {body: `"kind":"k","lane":"shut"`, code: "lane_not_accepting", field: "/lane"},
		"an id that is taken":              {body: `"kind":"k","execution_id":"01900000-0000-7000-8000-00000000e001"`, code: "id_conflict", field: "/execution_id"},
		"an id of another partition":       {body: `"kind":"k","execution_id":"{fp:9}:01900000-0000-7000-8000-00000000e002"`, code: "partition_mismatch", field: "/execution_id"},
		"a deadline in the past":           {body: `"kind":"k","deadline_at":"2020-01-01T00:00:00Z"`, code: "invalid_argument", field: "/deadline_at"},
		"an input above the bound":         {body: `"kind":"k","input":"` + strings.Repeat("x", 1100) + `"`, code: "payload_too_large", field: "/input"},
	}
}

// refusedFlows are flows that a submit refuses.
func refusedFlows() []try {
	const good, graph = `{"name":"first","kind":"k"}`, `"nodes":[{"name":"a","kind":"k"}]`
	const own = `"budgets":[{"name":"taken","dimensions":{"tokens":{"hard":1}}}]`
	all := []try{
		{name: "a name of a budget of the flow that is taken", body: `{"kind":"k",` + graph + `,` + own + `}`, code: "budget_already_exists", field: "/budgets/0/name"},
		{name: "a budget of the flow below none", body: `{"kind":"k",` + graph + `,"budgets":[{"parent":"missing","dimensions":{"tokens":{"hard":1}}}]}`, code: "budget_not_found", field: "/budgets/0/parent"},
		{
			name: "two budgets of one name", code: "budget_already_exists", field: "/nodes/1/flow/nodes/0/budgets/0/name",
			body: `{"kind":"k","nodes":[{"name":"a","kind":"k",` + strings.Replace(own, "taken", "two", 1) + `},{"name":"b","flow":{"nodes":[{"name":"c","kind":"k",` + strings.Replace(own, "taken", "two", 1) + `}]}}]}`,
		},
		{name: "an id of a flow that is taken", body: `{"kind":"k","flow_id":"01900000-0000-7000-8000-00000000f001",` + graph + `}`, code: "flow_already_exists", field: "/flow_id"},
		{name: "a key of a flow that was used", body: `{"kind":"k","idempotency_key":"used",` + graph + `}`, code: "idempotency_conflict", field: "/idempotency_key"},
		{name: "a key of a request that was used", body: `{"kind":"k",` + graph + `}`, key: "asked", code: "idempotency_conflict", field: "header.Idempotency-Key"},
		{name: "a cycle", body: `{"kind":"k","nodes":[{"name":"a","kind":"k","after":["b"]},{"name":"b","kind":"k","after":["a"]}]}`, code: "cycle_detected", field: "/nodes/1/after/0"},
		{name: "more than may wait", body: `{"kind":"k","nodes":[` + strings.TrimSuffix(strings.Repeat(`{"name":"#","kind":"k"},`, 101), ",") + `]}`, code: "rate_limited"},
	}
	for name, node := range refusedNodes() {
		bad := `{"name":"bad",` + node.body + `}`
		for at, body := range map[string]string{
			"/nodes/1":                           `{"kind":"k","nodes":[` + good + `,` + bad + `]}`,
			"/nodes/1/flow/nodes/0":              `{"kind":"k","nodes":[` + good + `,{"name":"s","flow":{"nodes":[` + bad + `]}}]}`,
			"/nodes/0/flow/nodes/1/flow/nodes/0": `{"kind":"k","nodes":[{"name":"s","flow":{"nodes":[` + good + `,{"name":"t","flow":{"nodes":[` + bad + `]}}]}}]}`,
		} {
			body = strings.Replace(body, "{", `{"flow_id":"{fp:7}:01900000-0000-7000-8000-00000000f009",`, 1)
			all = append(all, try{name: name + " at " + at, body: body, code: node.code, field: at + node.field})
		}
	}
	for i := range all { // names of nodes differ
		for n := 0; strings.Contains(all[i].body, "#"); n++ {
			all[i].body = strings.Replace(all[i].body, "#", "n"+string(rune('0'+n/10%10))+string(rune('0'+n%10))+string(rune('0'+n/100)), 1)
		}
	}
	return all
}

// refusedBulk are bulk jobs that are refused. Not among them is one that would meet more than max_affected: to count them is what a dry run is for.
func refusedBulk() []try {
	return []try{
		{name: "nothing chosen", body: `{"action":"cancel","reason":"r"}`, code: "invalid_argument", field: "/filter"},
		{name: "a filter of no text", body: `{"action":"cancel","reason":"r","filter":{"kind":["\u0000"]}}`, code: "invalid_filter", field: "/filter/kind"},
		{name: "no priority", body: `{"action":"priority","all":true}`, code: "missing_field", field: "/args/priority"},
		{name: "a reserved tag", body: `{"action":"tag","all":true,"args":{"tags":{"ff.a":"b"}}}`, code: "invalid_tag_key", field: "/args/tags/ff.a"},
		{name: "a deadline in the past", body: `{"action":"replay","all":true,"args":{"deadline_at":"2020-01-01T00:00:00Z"}}`, code: "invalid_argument", field: "/args/deadline_at"},
		{name: "an argument of another action", body: `{"action":"cancel","all":true,"args":{"priority":0}}`, code: "unknown_field", field: "/args/priority"},
		{name: "another beside its own", body: `{"action":"replay","all":true,"args":{"keep_steps":true,"delay_ms":1}}`, code: "unknown_field", field: "/args/delay_ms"},
		{name: "an id that is none", body: `{"action":"hold","ids":["x"]}`, code: "invalid_id", field: "/ids/0"},
	}
}

// dryRuns are the operations with a dry run, with what they refuse.
func dryRuns() map[string][]try {
	return map[string][]try{wire.SubmitFlow.ID: refusedFlows(), wire.StartBulk.ID: refusedBulk()}
}

func TestU89_U57_the_operations_with_a_dry_run_are_those_that_are_tried(t *testing.T) {
	t.Parallel()
	var found []string
	for _, op := range wire.Operations() {
		if op.Request == nil || op.Request.Kind() != reflect.Struct {
			continue
		}
		body, ok := op.Request.FieldByName("Body")
		if !ok || body.Type.Kind() != reflect.Struct {
			continue
		}
		for _, field := range reflect.VisibleFields(body.Type) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == "dry_run" {
				found = append(found, op.ID)
			}
		}
		if slices.ContainsFunc(queriesOf(op.Request), func(p parameter) bool { return p.name == "dry_run" }) {
			found = append(found, op.ID)
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(maps.Keys(dryRuns())); !slices.Equal(found, want) {
		t.Errorf("%v have a dry run, %v are tried", found, want)
	}
}

// A dry run refuses what the command refuses, with the same answer, and changes nothing.
func TestU89_U57_a_dry_run_refuses_what_the_command_refuses(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flowsWorld(t, w)
		path := map[string]string{wire.SubmitFlow.ID: "/v1/flows", wire.StartBulk.ID: "/v1/bulk"}
		for op, tries := range dryRuns() {
			for _, c := range tries {
				header := map[string]string{}
				if c.key != "" {
					header["Idempotency-Key"] = c.key
				}
				dry := w.send(t, request{method: "POST", path: path[op], body: strings.Replace(c.body, "{", `{"dry_run":true,`, 1), header: header})
				done := w.send(t, request{method: "POST", path: path[op], body: c.body, header: header})
				if done.text(t, "code") != c.code || done.text(t, "field") != c.field {
					t.Errorf("%s of %s is %s", op, c.name, done.body)
				}
				for _, part := range []string{"code", "field", "detail", "hint"} {
					if dry.status != done.status || dry.text(t, part) != done.text(t, part) {
						t.Errorf("%s of %s: the dry run is %s,\nthe command %s", op, c.name, dry.body, done.body)
						break
					}
				}
			}
		}
	})
}

// A flow that would be accepted is not made by its dry run, nor anything for it: no lane, no budget, no room.
func TestU89_a_dry_run_leaves_nothing_behind(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flowsWorld(t, w)
		events := w.get(t, "/v1/events?after=start&limit=1000").wants(t, 200)
		const own = `"budgets":[{"name":"own","dimensions":{"tokens":{"hard":1}}}]`
		const body = `"kind":"k",` + own + `,"nodes":[{"name":"a","kind":"new","lane":"new"},{"name":"s","after":["a"],"flow":{"nodes":[` +
			`{"name":"b","kind":"k","lane":"newer","budgets":[{"name":"inner","parent":"own","dimensions":{"tokens":{"hard":1}}}]}]}}]`
		header := map[string]string{"Idempotency-Key": "mine"}
		for range 120 { // more than may wait
			checked := w.send(t, request{method: "POST", path: "/v1/flows", body: `{"dry_run":true,` + body + `}`, header: header}).wants(t, 200)
			if checked.text(t, "order.0") != "a" || checked.header.Get("Idempotency-Replayed") != "" {
				t.Fatalf("%v %s", checked.header, checked.body)
			}
		}
		if lanes := w.get(t, "/v1/lanes").wants(t, 200); len(lanes.field(t, "items").([]any)) != 2 {
			t.Errorf("lanes %s, were default and shut", lanes.body)
		}
		if after := w.get(t, "/v1/events?after=start&limit=1000").wants(t, 200); string(after.body) != string(events.body) {
			t.Errorf("events %s, were %s", after.body, events.body)
		}
		w.get(t, "/v1/budgets/own").refuses(t, 404, "budget_not_found")
		made := w.send(t, request{method: "POST", path: "/v1/flows", body: `{` + body + `}`, header: header}).wants(t, 201)
		w.send(t, request{method: "POST", path: "/v1/flows", body: `{"dry_run":true,` + body + `}`, header: header}).wants(t, 200) // it would be a repeat
		if again := w.send(t, request{method: "POST", path: "/v1/flows", body: `{` + body + `}`, header: header}); again.text(t, "flow_id") != made.text(t, "flow_id") {
			t.Errorf("%s, was %s", again.body, made.body)
		}
	})
}

// Nodes that are added to a flow, or spawned, are refused as those of a submit are, inside of sub-flows too.
func TestF14_F46_nodes_of_an_extension_are_refused_as_those_of_a_submit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		flowsWorld(t, w)
		open := w.post(t, "/v1/flows", `{"kind":"k","flow_id":"{fp:7}:01900000-0000-7000-8000-00000000f002","nodes":[{"name":"there","kind":"k"}],"seal":false}`).wants(t, 201).text(t, "flow_id")
		for name, node := range refusedNodes() {
			bad := `{"name":"bad",` + node.body + `}`
			for at, body := range map[string]string{
				"/nodes/1":              `{"nodes":[{"name":"there","kind":"k"},` + bad + `]}`,
				"/nodes/1/flow/nodes/0": `{"nodes":[{"name":"there","kind":"k"},{"name":"s","flow":{"nodes":[` + bad + `]}}]}`,
			} {
				refused := w.post(t, "/v1/flows/"+open+"/extend", body)
				if refused.text(t, "code") != node.code || refused.text(t, "field") != at+node.field {
					t.Errorf("%s at %s: %s", name, at, refused.body)
				}
			}
		}
		if revision := w.get(t, "/v1/flows/"+open).wants(t, 200).number(t, "graph_revision"); revision != 1 {
			t.Errorf("revision %v", revision)
		}
	})
}
