package server_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// chained is a flow of two, of which the second gets the result of the first.
const chained = `{"kind":"chain","output":"b","nodes":[{"name":"a","kind":"job","input":1},{"name":"b","kind":"job"}],"edges":[{"from":"a","to":"b","pass":"from-a"}]}`

// flowed submits a flow and gives its path.
func (w *world) flowed(t testing.TB, body string) (path string, made reply) {
	t.Helper()
	made = w.post(t, "/v1/flows", body).wants(t, 201)
	return made.header.Get("Location"), made
}

func TestU89_a_flow_is_submitted_made_empty_or_checked(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/flows", strings.Replace(chained, `"edges":[`, `"edges":[{"from":"a","to":"b","kind":"any_terminal"},`, 1)).refuses(t, 409, "dependency_already_exists")
		path, made := w.flowed(t, strings.Replace(chained, `"kind"`, `"idempotency_key":"k-1","kind"`, 1))
		if made.field(t, "created") != true || made.text(t, "state") != "open" || made.number(t, "graph_revision") != 1 || made.text(t, "members.a") == "" ||
			!strings.HasPrefix(path, "/v1/flows/") || strings.Contains(path, "fp:") || made.field(t, "counts") != nil {
			t.Errorf("%s %s", path, made.body)
		}
		again := w.post(t, "/v1/flows", strings.Replace(chained, `"kind"`, `"idempotency_key":"k-1","kind"`, 1)).wants(t, 200)
		if again.field(t, "created") != false || again.text(t, "flow_id") != made.text(t, "flow_id") {
			t.Errorf("%s", again.body)
		}
		w.post(t, "/v1/flows", `{"idempotency_key":"k-1","kind":"other","nodes":[{"name":"a","kind":"job"}]}`).refuses(t, 409, "idempotency_conflict")
		empty := w.post(t, "/v1/flows?empty=true", `{"kind":"growing","tags":{"a":"b"}}`).wants(t, 201)
		if empty.field(t, "sealed") != false || empty.number(t, "graph_revision") != 0 || empty.number(t, "node_count") != 0 {
			t.Errorf("%s", empty.body)
		}
		w.post(t, "/v1/flows?empty=true", chained).refuses(t, 400, "invalid_flow")
		checked := w.post(t, "/v1/flows", strings.Replace(chained, `"kind"`, `"dry_run":true,"kind"`, 1)).wants(t, 200)
		if checked.field(t, "ok") != true || checked.text(t, "order.0") != "a" || checked.text(t, "order.1") != "b" {
			t.Errorf("%s", checked.body)
		}
		if list := w.get(t, "/v1/flows").wants(t, 200); len(list.field(t, "items").([]any)) != 2 {
			t.Errorf("%s", list.body)
		}
	})
}

func TestU13_a_flow_submitted_again_under_the_key_of_its_request_is_the_first(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		send := func(body string) reply {
			return w.send(t, request{method: "POST", path: "/v1/flows", body: body, header: map[string]string{"Idempotency-Key": "once"}})
		}
		first, again := send(chained).wants(t, 201), send(chained).wants(t, 201)
		if first.text(t, "flow_id") != again.text(t, "flow_id") || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s\n%s %v", first.body, again.body, again.header)
		}
		send(`{"kind":"other","nodes":[{"name":"a","kind":"job"}]}`).refuses(t, 409, "idempotency_conflict")
	})
}

func TestU11_a_refusal_of_a_flow_points_at_its_place(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for body, want := range map[string]struct {
		status      int
		code, field string
	}{
		`{"kind":"k","nodes":[{"name":"a","kind":"job","lane":"no lane"}]}`:                                                                   {400, "invalid_argument", "/nodes/0/lane"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"},{"name":"a","kind":"job"}]}`:                                                          {400, "duplicate_name", "/nodes/1/name"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","after":["b"]}]}`:                                                                      {400, "unknown_name", "/nodes/0/after/0"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"}],"edges":[{"from":"a","to":"a"}]}`:                                                    {400, "self_referencing_edge", "/edges/0"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","join":{"policy":"any_of"}}]}`:                                                         {400, "join_without_edges", "/nodes/0/join"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job","after":["a"],"join":{"policy":"quorum","k":2}}]}`:           {400, "quorum_exceeds_edges", "/nodes/1/join/k"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","after":["b"]},{"name":"b","kind":"job","after":["a"]}]}`:                              {409, "cycle_detected", ""},
		`{"kind":"k","nodes":[{"name":"a","flow":{"nodes":[{"name":"x","kind":"job","lane":"no lane"}]}}]}`:                                   {400, "invalid_argument", "/nodes/0/flow/nodes/0/lane"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job"}],"edges":[{"from":"a","to":"b","kind":"sometimes"}]}`:       {400, "invalid_flow", "/edges/0/kind"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job"}],"edges":[{"from":"a","to":"b","edge_id":"no id"}]}`:        {400, "invalid_id", "/edges/0/edge_id"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job"},{"name":"b","kind":"job","after":["a"],"join":{"policy":"most"}}]}`:                   {400, "invalid_join", "/nodes/1/join/policy"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","policy":{"routing_requirements":{"required_capabilities":["x"]}},"requires":["x"]}]}`: {400, "invalid_argument", "/nodes/0/requires"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","policy":{"fairness_key":"x"},"fairness_key":"y"}]}`:                                   {400, "invalid_argument", "/nodes/0/fairness_key"},
		`{"kind":"k","nodes":[{"name":"a","kind":"job","budgets":[{"dimensions":{"usd":{"hard":0}}}]}]}`:                                      {400, "invalid_budget", "/nodes/0/budgets/0/dimensions/usd/hard"},
	} {
		refused := w.post(t, "/v1/flows", body).refuses(t, want.status, want.code)
		if got := refused.text(t, "field"); want.field != "" && got != want.field {
			t.Errorf("%s: at %s, want %s", body, got, want.field)
		}
	}
}

func TestU90_a_flow_is_extended_and_sealed_under_its_revision(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path := w.post(t, "/v1/flows?empty=true", `{"kind":"growing"}`).wants(t, 201).header.Get("Location")
		extend := func(revision, body string) reply {
			r := request{method: "POST", path: path + "/extend", body: body}
			if revision != "" {
				r.header = map[string]string{"If-Match": revision}
			}
			return w.send(t, r)
		}
		const first = `{"nodes":[{"name":"a","kind":"job"}]}`
		if grown := extend(`"0"`, first).wants(t, 200); grown.number(t, "graph_revision") != 1 || grown.field(t, "created") != true {
			t.Errorf("%s", grown.body)
		}
		stale := extend(`"0"`, `{"nodes":[{"name":"b","kind":"job","after":["a"]}]}`).refuses(t, 409, "stale_graph_revision")
		if stale.number(t, "current.graph_revision") != 1 && stale.number(t, "current.revision") != 1 {
			t.Errorf("%s", stale.body)
		}
		if same := extend("", first).wants(t, 200); same.field(t, "created") != false || same.number(t, "graph_revision") != 1 {
			t.Errorf("%s", same.body)
		}
		other := w.post(t, "/v1/executions", `{"kind":"job"}`).wants(t, 201).text(t, "execution_id")
		if refused := extend("", `{"members":[{"execution_id":"`+other+`","name":"old"}]}`); refused.status != 200 && refused.text(t, "code") != "partition_mismatch" {
			t.Errorf("%s", refused.body)
		}
		extend("", `{"edges":[{"from":"a","to":"missing"}]}`).refuses(t, 404, "execution_not_in_flow")
		w.send(t, request{method: "POST", path: path + "/seal", header: map[string]string{"If-Match": "99"}}).refuses(t, 409, "stale_graph_revision")
		if sealed := w.post(t, path+"/seal", "").wants(t, 200); sealed.field(t, "sealed") != true {
			t.Errorf("%s", sealed.body)
		}
		extend("", `{"nodes":[{"name":"z","kind":"job"}]}`).refuses(t, 409, "flow_sealed")
		w.post(t, "/v1/flows/0198f0a0-0000-7000-8000-000000000000/seal", "").refuses(t, 404, "flow_not_found")
	})
}

// tookOne claims, and answers the task.
func (w *world) tookOne(t testing.TB) reply {
	t.Helper()
	return w.post(t, "/v1/work/claim", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"wait_ms":20000}`).wants(t, 200)
}

// leaseOf is the lease of the first task of a claim, as JSON.
func leaseOf(t testing.TB, claimed reply) string {
	t.Helper()
	text, err := json.Marshal(claimed.field(t, "tasks.0.lease"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestU28_a_task_of_a_flow_has_its_name_and_what_came_from_others(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, made := w.flowed(t, chained)
		first := w.tookOne(t)
		if first.text(t, "tasks.0.name") != "a" || first.text(t, "tasks.0.flow_id") != made.text(t, "flow_id") || first.text(t, "tasks.0.root_flow_id") != made.text(t, "flow_id") || first.field(t, "tasks.0.inputs") != nil {
			t.Errorf("%s", first.body)
		}
		a := "/v1/executions/" + url.PathEscape(first.text(t, "tasks.0.execution_id"))
		w.post(t, a+"/complete", `{"lease":`+leaseOf(t, first)+`,"result":{"n":7}}`).wants(t, 200)
		second := w.tookOne(t)
		if second.text(t, "tasks.0.inputs.0.name") != "from-a" || second.text(t, "tasks.0.inputs.0.from") != "a" || second.text(t, "tasks.0.inputs.0.outcome") != "succeeded" ||
			second.field(t, "tasks.0.inputs.0.present") != true || second.number(t, "tasks.0.inputs.0.result.n") != 7 || second.text(t, "tasks.0.inputs.0.execution_id") != made.text(t, "members.a") {
			t.Errorf("%s", second.body)
		}
		b := "/v1/executions/" + url.PathEscape(second.text(t, "tasks.0.execution_id"))
		if input := w.get(t, b+"/inputs/from-a").wants(t, 200); string(input.body) != `{"n":7}` || input.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v", input.body, input.header)
		}
		w.get(t, b+"/inputs/other").refuses(t, 404, "input_not_found")
		if shown := w.get(t, b+"?view=full").wants(t, 200); shown.text(t, "name") != "b" || shown.text(t, "join.state") != "satisfied" {
			t.Errorf("%s", shown.body)
		}
		w.post(t, b+"/complete", `{"lease":`+leaseOf(t, second)+`}`).wants(t, 200)
		ended := w.send(t, request{method: "GET", path: path, header: map[string]string{"Prefer": "wait=20"}}).wants(t, 200)
		if ended.text(t, "state") != "completed" || ended.number(t, "counts.completed") != 2 || ended.number(t, "counts.total") != 2 || ended.header.Get("Preference-Applied") != "wait=20" || ended.header.Get("ETag") == "" {
			t.Errorf("%s %v", ended.body, ended.header)
		}
	})
}

func TestU18_a_flow_that_has_not_ended_is_shown_when_the_wait_is_over(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	path, _ := w.flowed(t, chained)
	shown := w.get(t, path+"?wait_ms=50").wants(t, 200)
	if shown.text(t, "state") != "open" || shown.text(t, "phase") != "waiting" || shown.number(t, "joins.pending") != 1 {
		t.Errorf("%s", shown.body)
	}
}

func TestU91_reads_of_a_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, made := w.flowed(t, chained)
		graph := w.get(t, path+"/graph").wants(t, 200)
		if graph.text(t, "nodes.1.name") != "b" || graph.text(t, "nodes.1.public_state") != "waiting_children" || graph.number(t, "nodes.1.join.n") != 1 ||
			graph.text(t, "edges.0.upstream") != "a" || graph.text(t, "edges.0.downstream_id") != made.text(t, "members.b") || graph.text(t, "edges.0.state") != "pending" || graph.text(t, "flow.flow_id") != made.text(t, "flow_id") {
			t.Errorf("%s", graph.body)
		}
		part := w.get(t, path+"/graph?limit=1").wants(t, 200)
		if next := part.text(t, "next_cursor"); next == "" || w.get(t, path+"/graph?cursor="+url.QueryEscape(next)).wants(t, 200).text(t, "nodes.0.name") != "b" {
			t.Errorf("%s", part.body)
		}
		w.get(t, path+"/graph?limit=0").refuses(t, 400, "invalid_argument")
		if members := w.get(t, path+"/members?state=waiting").wants(t, 200); members.text(t, "items.0.name") != "a" || len(members.field(t, "items").([]any)) != 1 {
			t.Errorf("%s", members.body)
		}
		edges := w.get(t, path+"/edges?to=b").wants(t, 200)
		if edge := w.get(t, path+"/edges/"+edges.text(t, "items.0.edge_id")).wants(t, 200); edge.text(t, "pass") != "from-a" || edge.text(t, "kind") != "success_only" {
			t.Errorf("%s", edge.body)
		}
		w.get(t, path+"/edges/0198f0a0-0000-7000-8000-000000000009").refuses(t, 404, "edge_not_found")
		if usage := w.get(t, path+"/usage").wants(t, 200); usage.text(t, "flow_id") != made.text(t, "flow_id") || usage.field(t, "usage") == nil {
			t.Errorf("%s", usage.body)
		}
		if events := w.get(t, path+"/events?after=start").wants(t, 200); !strings.Contains(string(events.body), `"flow.created"`) {
			t.Errorf("%s", events.body)
		}
		join := w.get(t, path+"/members/b/join").wants(t, 200)
		if join.text(t, "policy") != "all_of" || join.text(t, "waiting.0.name") != "a" || join.text(t, "on_satisfied") != "let_run" {
			t.Errorf("%s", join.body)
		}
		put := func(member, body string) reply {
			return w.send(t, request{method: "PUT", path: path + "/members/" + member + "/join", body: body})
		}
		put("b", `{"policy":"any_of"}`).refuses(t, 409, "join_already_fixed")
		if same := put("b", `{"policy":"all_of"}`).wants(t, 200); same.text(t, "outcome") != "unchanged" {
			t.Errorf("%s", same.body)
		}
		put("missing", `{"policy":"any_of"}`).refuses(t, 404, "execution_not_in_flow")
		for _, list := range []string{"?kind=chain", "?state=open", "?created_from=2020-01-01T00:00:00Z", ""} {
			if found := w.get(t, "/v1/flows"+list).wants(t, 200); len(found.field(t, "items").([]any)) != 1 {
				t.Errorf("%s: %s", list, found.body)
			}
		}
		for _, list := range []string{"?kind=other", "?state=failed", "?tag.team=blue", "?created_to=2020-01-01T00:00:00Z", "?limit=0"} {
			if found := w.get(t, "/v1/flows"+list).wants(t, 200); len(found.field(t, "items").([]any)) != 0 {
				t.Errorf("%s: %s", list, found.body)
			}
		}
		w.get(t, "/v1/flows?state=odd").refuses(t, 400, "invalid_argument")
	})
}

func TestU93_a_cancel_waits_and_says_what_remains(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		path, _ := w.flowed(t, chained)
		w.post(t, path+"/cancel", `{}`).refuses(t, 400, "missing_field")
		w.post(t, path+"/cancel", `{"reason":"r","policy":"most"}`).refuses(t, 400, "invalid_argument")
		running := w.tookOne(t)
		slow := w.send(t, request{method: "POST", path: path + "/cancel?wait_ms=50", body: `{"policy":"cancel_pending","reason":"no more"}`}).wants(t, 202)
		if slow.text(t, "state") != "cancelling" || slow.number(t, "remaining") != 1 || slow.number(t, "cancelled") != 1 || slow.text(t, "policy") != "cancel_pending" || slow.text(t, "reason") != "no more" {
			t.Errorf("%s", slow.body)
		}
		a := "/v1/executions/" + url.PathEscape(running.text(t, "tasks.0.execution_id"))
		done := make(chan reply, 1)
		w.sendLater(t, request{method: "POST", path: path + "/cancel", body: `{"policy":"cancel_pending","reason":"no more"}`, header: map[string]string{"Prefer": "wait=20"}}, done)
		w.post(t, a+"/complete", `{"lease":`+leaseOf(t, running)+`}`).wants(t, 200)
		select {
		case whole := <-done:
			if whole.wants(t, 200); whole.text(t, "state") != "cancelled" || whole.number(t, "remaining") != 0 || whole.header.Get("Preference-Applied") != "wait=20" {
				t.Errorf("%s %v", whole.body, whole.header)
			}
		case <-time.After(patience):
			t.Fatal("the cancel does not end")
		}
	})
}

func TestU94_tags_of_a_flow(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	path, _ := w.flowed(t, chained)
	if patch := w.send(t, request{method: "PATCH", path: path + "/tags", body: `{"a":"1","b":"2"}`}).wants(t, 200); patch.text(t, "tags.a") != "1" {
		t.Errorf("%s", patch.body)
	}
	if patch := w.send(t, request{method: "PATCH", path: path + "/tags", body: `{"a":null}`}).wants(t, 200); patch.text(t, "tags.b") != "2" || patch.field(t, "tags.a") != nil {
		t.Errorf("%s", patch.body)
	}
	if put := w.send(t, request{method: "PUT", path: path + "/tags", body: `{"c":"3"}`}).wants(t, 200); put.text(t, "tags.c") != "3" || put.field(t, "tags.b") != nil {
		t.Errorf("%s", put.body)
	}
	if put := w.send(t, request{method: "PUT", path: path + "/tags", body: `{}`}).wants(t, 200); len(put.field(t, "tags").(map[string]any)) != 0 {
		t.Errorf("%s", put.body)
	}
}

func TestU75_a_worker_spawns_and_waits_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"parent"}`).wants(t, 201)
		claimed := w.tookOne(t)
		path, lease := "/v1/executions/"+url.PathEscape(claimed.text(t, "tasks.0.execution_id")), leaseOf(t, claimed)
		spawned := w.post(t, path+"/spawn", `{"lease":`+lease+`,"defaults":{"kind":"child","lane":"below"},"children":[{"name":"x","input":1},{"name":"y"}],"on_parent_end":"detach"}`).wants(t, 200)
		if spawned.number(t, "created") != 2 || spawned.text(t, "children.x") == "" || spawned.field(t, "wait") != nil {
			t.Errorf("%s", spawned.body)
		}
		if again := w.post(t, path+"/spawn", `{"lease":`+lease+`,"children":[{"name":"x","kind":"child","lane":"below","input":1}]}`).wants(t, 200); again.number(t, "created") != 0 || again.text(t, "children.x") != spawned.text(t, "children.x") {
			t.Errorf("%s", again.body)
		}
		w.post(t, path+"/spawn", `{"lease":`+lease+`,"children":[{"name":"x","kind":"other"}]}`).refuses(t, 409, "name_taken")
		w.post(t, path+"/wait-children", `{"lease":`+lease+`,"names":["z"]}`).refuses(t, 404, "child_not_found")
		w.post(t, path+"/wait-children", `{"lease":`+lease+`,"timeout_ms":0}`).refuses(t, 400, "invalid_argument")
		waiting := w.post(t, path+"/wait-children", `{"lease":`+lease+`,"names":["x"],"usage":{"tokens":3}}`).wants(t, 200)
		if waiting.text(t, "outcome") != "waiting" || waiting.field(t, "children") != nil {
			t.Errorf("%s", waiting.body)
		}
		if list := w.get(t, path+"/children").wants(t, 200); list.text(t, "items.0.name") != "x" || len(list.field(t, "items").([]any)) != 2 {
			t.Errorf("%s", list.body)
		}
		child := w.post(t, "/v1/work/claim", `{"worker_id":"v","worker_instance_id":"v-1","lanes":["below"],"wait_ms":20000}`).wants(t, 200)
		w.post(t, "/v1/executions/"+url.PathEscape(child.text(t, "tasks.0.execution_id"))+"/complete", `{"lease":`+leaseOf(t, child)+`,"result":"done"}`).wants(t, 200)
		other := w.post(t, "/v1/work/claim", `{"worker_id":"v","worker_instance_id":"v-1","lanes":["below"],"wait_ms":20000}`).wants(t, 200)
		w.post(t, "/v1/executions/"+url.PathEscape(other.text(t, "tasks.0.execution_id"))+"/complete", `{"lease":`+leaseOf(t, other)+`,"result":"done"}`).wants(t, 200)
		resumed := w.tookOne(t)
		if resumed.text(t, "tasks.0.how") != "resumed" || resumed.text(t, "tasks.0.resumed.cause") != "children" || resumed.text(t, "tasks.0.resumed.children.0.name") != "x" ||
			resumed.text(t, "tasks.0.resumed.children.0.outcome") != "succeeded" || resumed.field(t, "tasks.0.resumed.children.0.has_result") != true || resumed.number(t, "tasks.0.attempt.attempt_index") != 0 {
			t.Errorf("%s", resumed.body)
		}
		ready := w.post(t, path+"/wait-children", `{"lease":`+leaseOf(t, resumed)+`}`).wants(t, 200)
		if ready.text(t, "outcome") != "ready" || ready.text(t, "state") != "satisfied" || len(ready.field(t, "children").([]any)) != 2 {
			t.Errorf("%s", ready.body)
		}
	})
}

func TestU77_spawn_and_wait_are_commands_of_a_batch(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"parent"}`).wants(t, 201)
		claimed := w.tookOne(t)
		id, lease := claimed.text(t, "tasks.0.execution_id"), leaseOf(t, claimed)
		head := `"execution_id":"` + id + `","lease":` + lease
		batch := w.post(t, "/v1/work/batch", `{"items":[{"op":"spawn",`+head+`,"children":[{"name":"x","kind":"child","lane":"below"}]},{"op":"wait_children",`+head+`,"timeout_ms":60000}]}`).wants(t, 200)
		if batch.number(t, "items.0.spawned.created") != 1 || batch.text(t, "items.1.outcome") != "waiting" || batch.text(t, "items.1.waited.outcome") != "waiting" {
			t.Errorf("%s", batch.body)
		}
		w.post(t, "/v1/work/batch", `{"items":[{"op":"spawn",`+head+`}]}`).refuses(t, 400, "missing_field")
		w.post(t, "/v1/work/batch", `{"items":[{"op":"wait_children",`+head+`,"children":[]}]}`).refuses(t, 400, "unknown_field")
	})
}

func TestU122_submit_reads_and_steers_only_flows_that_it_submitted_itself(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		mine, reader := w.key(t, "default", "submit"), w.key(t, "default", "read")
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "another", Roles: []string{"submit"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		other := made.Secret
		path := w.send(t, request{method: "POST", path: "/v1/flows", key: mine, body: strings.Replace(chained, `"kind"`, `"seal":false,"kind"`, 1)}).wants(t, 201).header.Get("Location")
		for _, c := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"GET", "/graph", ""},
			{"GET", "/members", ""},
			{"GET", "/edges", ""},
			{"GET", "/usage", ""},
			{"GET", "/events?after=start", ""},
			{"GET", "/members/b/join", ""},
			{"PATCH", "/tags", `{"a":"b"}`},
			{"PUT", "/tags", `{"a":"b"}`},
			{"POST", "/extend", `{"nodes":[{"name":"c","kind":"job"}]}`},
			{"PUT", "/members/a/join", `{"policy":"all_of"}`},
			{"POST", "/seal", ""},
			{"POST", "/cancel", `{"reason":"r"}`},
		} {
			w.send(t, request{method: c.method, path: path + c.path, key: other, body: c.body}).refuses(t, 403, "role_required")
			if got := w.send(t, request{method: c.method, path: path + c.path, key: mine, body: c.body}); got.status != 200 && got.status != 202 {
				t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
			}
		}
		for key, want := range map[string]int{mine: 1, other: 0, reader: 1} {
			if list := w.send(t, request{method: "GET", path: "/v1/flows", key: key}).wants(t, 200); len(list.field(t, "items").([]any)) != want {
				t.Errorf("%s", list.body)
			}
		}
		if list := w.send(t, request{method: "GET", path: "/v1/flows?creator=another", key: mine}).wants(t, 200); len(list.field(t, "items").([]any)) != 0 {
			t.Errorf("%s", list.body)
		}
	})
}

func TestI14_a_flow_of_another_namespace_is_as_if_it_were_not_there(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		acme, globex := w.key(t, "acme", "admin"), w.key(t, "globex", "admin")
		path := w.send(t, request{method: "POST", path: "/v1/flows", key: acme, body: chained}).wants(t, 201).header.Get("Location")
		const none = "/v1/flows/0198f0a0-0000-7000-8000-000000000000"
		for _, c := range []struct{ method, path, body string }{
			{"GET", "", ""},
			{"GET", "/graph", ""},
			{"GET", "/members", ""},
			{"GET", "/edges", ""},
			{"GET", "/usage", ""},
			{"GET", "/events?after=start", ""},
			{"GET", "/edges/0198f0a0-0000-7000-8000-000000000001", ""},
			{"GET", "/members/b/join", ""},
			{"PUT", "/members/b/join", `{"policy":"any_of"}`},
			{"PATCH", "/tags", `{"a":"b"}`},
			{"PUT", "/tags", `{}`},
			{"POST", "/extend", `{"nodes":[{"name":"c","kind":"job"}]}`},
			{"POST", "/seal", ""},
			{"POST", "/cancel", `{"reason":"r"}`},
		} {
			theirs := w.send(t, request{method: c.method, path: path + c.path, key: globex, body: c.body}).refuses(t, 404, "flow_not_found")
			absent := w.send(t, request{method: c.method, path: none + c.path, key: globex, body: c.body}).refuses(t, 404, "flow_not_found")
			if a, b := theirs.text(t, "detail"), absent.text(t, "detail"); strings.Contains(a, "acme") || len(a) != len(b) {
				t.Errorf("%s %s: %q and %q", c.method, c.path, a, b)
			}
		}
		if list := w.send(t, request{method: "GET", path: "/v1/flows", key: globex}).wants(t, 200); len(list.field(t, "items").([]any)) != 0 {
			t.Errorf("%s", list.body)
		}
	})
}

func TestU55_L140_L141_a_finished_flow_is_deleted_with_its_members(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := w.post(t, "/v1/flows", chained).wants(t, 201)
		path := "/v1/flows/" + url.PathEscape(made.text(t, "flow_id"))
		member := "/v1/executions/" + url.PathEscape(made.text(t, "members.a"))
		w.send(t, request{method: "DELETE", path: path}).refuses(t, 409, "flow_not_terminal")
		w.post(t, path+"/cancel", `{"reason":"no"}`).wants(t, 200)
		w.send(t, request{method: "PUT", path: member + "/retain", body: `{"reason":"law"}`}).wants(t, 200)
		w.send(t, request{method: "DELETE", path: path}).refuses(t, 409, "retained")
		w.send(t, request{method: "DELETE", path: member + "/retain"}).wants(t, 200)
		w.send(t, request{method: "DELETE", path: member}).wants(t, 204)
		w.get(t, member).refuses(t, 404, "execution_not_found")
		first := w.get(t, path+"/graph").wants(t, 200).field(t, "nodes").([]any)[0].(map[string]any)
		if first["name"] != "a" || first["deleted_at"] == nil || first["public_state"] != "cancelled" {
			t.Errorf("a deleted member is shown as %v", first)
		}
		w.send(t, request{method: "DELETE", path: path, body: `{"reason":"erased"}`}).wants(t, 204)
		w.get(t, path).refuses(t, 404, "flow_not_found")
		w.get(t, member).refuses(t, 404, "execution_not_found")
		w.send(t, request{method: "DELETE", path: path}).refuses(t, 404, "flow_not_found")
	})
}
