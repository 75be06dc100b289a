package server_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// inputsOf are the names of everything that a caller may say in a request of the operation, beside its path: "query force", "header
// If-Match", "body override". Names inside of objects and lists stand alone.
func inputsOf(o *wire.Operation) map[string]bool {
	names := map[string]bool{}
	gatherInputs(o.Request, names)
	return names
}

func gatherInputs(of reflect.Type, names map[string]bool) {
	for i := range of.NumField() {
		f := of.Field(i)
		switch {
		case f.Tag.Get("query") != "":
			names["query "+f.Tag.Get("query")] = true
		case f.Tag.Get("header") != "":
			names["header "+f.Tag.Get("header")] = true
		case f.Name == "Body":
			gatherFields(f.Type, names, map[reflect.Type]bool{})
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			gatherInputs(f.Type, names)
		}
	}
}

// gatherFields gathers the JSON fields of a type and of what it holds.
func gatherFields(of reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		gatherFields(of.Elem(), names, seen)
	case reflect.Struct:
		if seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if how := f.Tag.Get("spread"); how != "" {
				for _, member := range new(api.Payload).Members(how) {
					names["body "+name+member.Ending] = true
				}
				continue
			}
			if name != "" && name != "-" {
				names["body "+name] = true
			}
			if f.IsExported() && name != "-" {
				gatherFields(f.Type, names, seen)
			}
		}
	}
}

// without are the inputs that give no power beyond that of their route: a caller of it may say them, and any other is refused before
// they are read (TestU122_every_route_lets_in_the_roles_of_the_table_and_no_other).
var without = strings.Fields(`
	body: actor after ageing_ms already_spent anchor_at approval args atomic attempt_id brief budget_id budget_ids budgets cancelled capabilities
	category children class client_seq comment comment_required completed_from completed_to concurrency_limit continuation continuation_bytes
	continuation_content_type continuation_text correlation_id count_kind created_from created_to creator deadline_at decision decisions
	dedup_key default_policy default_quotas default_raise default_reserve defaults delay_ms delay_until description detail detail_bytes detail_content_type
	detail_text dimensions dry_run edge_id edges encoding estimate every_ms expect expected_suspension_id expired expires_at expires_in_ms
	failed fairness fairness_key fairness_weights filter flow flow_id frames fresh from grace_ms grant_key grant_ttl_ms hard id idempotency_key ids
	input input_bytes input_content_type input_text items join k key kid kind kinds label labels lane lane_order lease_epoch lease_id
	lease_ttl_ms leases liveness_ttl_ms max max_affected max_concurrent max_in_flight max_payload_bytes max_requests_per_second
	max_audit_rows_per_minute max_classes max_lanes max_priority max_readers max_ready max_submit_per_second max_workers may_fail members message mode n name names next nodes on_hard on_lease_loss on_parent_end on_satisfied op outcome output
	overlap_ms parent parent_id pass payload payload_bytes payload_content_type payload_text per_key percent policy priority_max priority_min
	public_state q quota quotas rate_limit rate_per_second reason reason_code remove remove_dimensions requires reset result result_bytes
	result_content_type result_text resume_condition resume_delay_ms retention_ms retry_after_ms scope seal secret secret_hex sent_at signal_id
	signal_name since skipped soft source_types state status succeeded suffix suspension_id tags timeout_at timeout_behavior timeout_ms timezone
	title to ttl_ms type unit until updated_from updated_to usage use_pending value version wait wait_ms waitpoint_id waitpoint_key waitpoints
	window_ms worker_id
	header: If-Match Last-Event-ID Prefer Webhook-Id
	query: action actor after approver attempt by capability client_seq completed_from completed_to created_from created_to cursor empty encoding entity
	entity_id epoch exhausted expect_lease_epoch expect_lease_id expect_status follow from idempotency_key include include_closed include_retired
	inline kind lane last_event_id limit mode modes name next ok order outcome parent_id principal priority_max priority_min public_state q reason
	reason_code run scope since state status suspension tag. to type types updated_from updated_to view wait_ms wait_version waitpoint_key`)

// powerful are the inputs that give power which not everybody has whom the route lets in, with the operations for which there is an attempt in
// attempts; elsewhere says which test tries it, or why it gives none there.
var powerful = map[string]struct {
	tried     string // operations
	elsewhere map[string]string
}{
	"body override":            {tried: "complete_execution fail_execution"},
	"body force":               {"claim_execution", map[string]string{"patch_api_key": "TestU123_open_mode_ends_for_good_with_the_first_admin_key", "revoke_signing_key": "TestU122_signing_keys_are_for_admins_of_all_namespaces"}},
	"query force":              {"delete_quota", map[string]string{"revoke_api_key": "TestU123_open_mode_ends_for_good_with_the_first_admin_key"}},
	"body hand_to":             {tried: "revoke_lease"},
	"body hold":                {tried: "revoke_lease"},
	"body priority":            {"set_priority submit_execution", map[string]string{"*": "a submitter says the priority of its own work; the route of start_bulk is an operator's"}},
	"query priority":           {tried: "submit_execution"},
	"body execution_id":        {"submit_execution submit_executions submit_flow grant_work", map[string]string{"create_webhook": "TestI14_E35_a_webhook_gets_nothing_of_another_tenant_whatever_its_filter_names", "update_webhook": "TestI14_E35_a_webhook_gets_nothing_of_another_tenant_whatever_its_filter_names", "extend_flow": "TestU122_a_submitter_adds_only_its_own_executions_to_its_flows", "charge_budget": "TestU98_a_work_key_with_lanes_charges_for_what_it_holds_there_alone", "release_budget": "TestU98_a_work_key_with_lanes_charges_for_what_it_holds_there_alone", "*": "a command of it needs its lease, a node its own id"}},
	"body namespaces":          {tried: "register_worker claim_work grant_work create_api_key patch_api_key"},
	"body lanes":               {"register_worker claim_work grant_work", map[string]string{"create_api_key": "an administrator bounds keys", "patch_api_key": "an administrator bounds keys", "nudge": "it only makes the server look"}},
	"body roles":               {"create_api_key patch_api_key", nil},
	"body all":                 {tried: "start_bulk"},
	"body action":              {tried: "start_bulk"},
	"body cascade":             {"replay_execution", map[string]string{"start_bulk": "an operator's"}},
	"body ignore_dependencies": {"replay_execution", map[string]string{"start_bulk": "an operator's"}},
	"body keep_steps":          {"replay_execution", map[string]string{"start_bulk": "an operator's"}},
	"body worker_instance_id":  {"register_worker claim_work claim_execution revoke_lease", map[string]string{"start_bulk": "it is a filter", "create_webhook": "it is a filter", "update_webhook": "it is a filter", "*": "TestU103_a_work_key_steers_only_the_instances_that_it_registered"}},
	"body take_leases":         {tried: "mark_worker_dead"},
	"body approver":            {tried: "create_link"},
	"body lease":               {"cancel_execution complete_execution renew_lease", map[string]string{"*": "TestU122_a_key_with_lanes_works_on_those_alone_whatever_lease_it_shows"}},
	"header FlowFabric-Lease":  {"cancel_execution complete_execution renew_lease", map[string]string{"*": "TestU122_a_key_with_lanes_works_on_those_alone_whatever_lease_it_shows"}},
	"body token":               {"", map[string]string{"*": "TestW33_U24_the_token_is_judged_before_the_body"}},
	"header FlowFabric-Token":  {"", map[string]string{"*": "TestW33_U24_the_token_is_judged_before_the_body"}},
	"body source_identity":     {"", map[string]string{"*": "who has a token says itself who it is; people are known by their links: TestW71_U131_a_decision_is_in_the_audit_log_under_the_name_of_the_approver"}},
	"body source_type":         {"", map[string]string{"*": "who has a token says itself who it is; people are known by their links: TestW71_U131_a_decision_is_in_the_audit_log_under_the_name_of_the_approver"}},
	"query leaving":            {"drain_worker", map[string]string{"mark_worker_dead": "it says how an instance ends that the key may declare dead: TestU103_a_work_key_steers_only_the_instances_that_it_registered"}},
	"query worker_id":          {tried: "drain_workers undrain_workers"},
	"query shared":             {"", map[string]string{"verify_audit": "TestU131_an_administrator_verifies_the_audit_log_of_its_namespaces"}},
	"query creator":            {"list_flows", map[string]string{"*": "it is a filter for readers"}},
	"query execution":          {"", map[string]string{"list_budget_spend": "it is a filter for readers"}},
	"query execution_id":       {"list_events", map[string]string{"*": "it is a filter for readers"}},
	"query flow_id":            {"list_events", map[string]string{"*": "it is a filter for readers"}},
	"body url":                 {"", map[string]string{"*": "TestE45_U108_a_webhook_leads_to_no_address_that_is_not_permitted"}},
	"query worker_instance_id": {"list_events", map[string]string{"*": "it is a filter for readers"}},
}

func TestU122_every_input_of_every_route_is_known_to_give_power_or_none(t *testing.T) {
	t.Parallel()
	none, place := map[string]bool{}, ""
	for _, word := range without {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			place = name
			continue
		}
		none[place+" "+word] = true
	}
	used, tests := map[string]bool{}, testNames(t)
	for _, o := range wire.Operations() {
		if o.Reserved {
			continue
		}
		for input := range inputsOf(o) {
			used[input] = true
			row, power := powerful[input]
			switch {
			case power && none[input]:
				t.Errorf("%s is in both lists", input)
			case none[input]:
			case !power:
				t.Errorf("%s of %s: say whether it gives power, and try it", input, o.ID)
			case slices.Contains(strings.Fields(row.tried), o.ID):
				if !slices.ContainsFunc(attempts, func(a attempt) bool { return a.op == o.ID && a.input == input }) {
					t.Errorf("%s of %s is not tried", input, o.ID)
				}
			case row.elsewhere[o.ID] == "" && row.elsewhere["*"] == "":
				t.Errorf("%s of %s is not tried", input, o.ID)
			}
		}
	}
	for input := range none {
		if !used[input] {
			t.Errorf("no route takes %s", input)
		}
	}
	for input, row := range powerful {
		if !used[input] {
			t.Errorf("no route takes %s", input)
		}
		for _, by := range row.elsewhere {
			if name := by[strings.LastIndex(by, " ")+1:]; strings.HasPrefix(name, "Test") && !slices.Contains(tests, name) {
				t.Errorf("%s: there is no test %s", input, name)
			}
		}
	}
}

// testNames are the names of the tests of this package.
func testNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names
}

// attempt is a request with an input that gives power. Everybody is refused with role_required whom want does not name; "" is a success.
type attempt struct {
	op, input string
	path      string // after the place of the operation, with a query
	body      string
	header    string // FlowFabric-Lease
	needs     string // props besides those that path, body and header name
	want      map[string]string
	shows     func(t *testing.T, who string, answer reply) // what a success must be; nil: anything
}

// allowed are callers who succeed.
func allowed(who ...string) map[string]string {
	want := map[string]string{}
	for _, name := range who {
		want[name] = ""
	}
	return want
}

// plus adds what another caller gets.
func plus(want map[string]string, code string, who ...string) map[string]string {
	for _, name := range who {
		want[name] = code
	}
	return want
}

// The callers: keys with one role, of the namespace default unless an asterisk says all. mail is a work key of the lane mail. own is the
// submit key that submitted the work.
var (
	callers   = []string{"read", "submit", "own", "work", "mail", "operate", "admin", "operate*", "admin*"}
	operators = []string{"operate", "admin", "operate*", "admin*"}
)

var attempts = []attempt{
	{op: "complete_execution", input: "body override", path: "/v1/executions/{running}/complete", body: `{"override":true,"reason":"r"}`, want: allowed(operators...)},
	{op: "fail_execution", input: "body override", path: "/v1/executions/{running}/fail", body: `{"override":true,"message":"m","class":"permanent","reason":"r"}`, want: allowed(operators...)},
	{op: "claim_execution", input: "body force", path: "/v1/executions/{ready}/claim", body: `{"worker_id":"o","worker_instance_id":"o-{who}","force":true,"reason":"r"}`, want: allowed(operators...)},
	{op: "claim_execution", input: "body worker_instance_id", path: "/v1/executions/{ready}/claim", body: `{"worker_id":"o","worker_instance_id":"o-{who}"}`, want: allowed(operators...)},
	{op: "delete_quota", input: "query force", path: "/v1/quotas/q?force=true", want: plus(allowed(), "quota_not_found", "operate*", "admin*")},
	{op: "revoke_lease", input: "body hand_to", path: "/v1/executions/{running}/revoke", body: `{"reason":"r","hand_to":{"worker_id":"h","worker_instance_id":"h-1"}}`, want: allowed(operators...)},
	{op: "revoke_lease", input: "body worker_instance_id", path: "/v1/executions/{running}/revoke", body: `{"reason":"r","hand_to":{"worker_id":"h","worker_instance_id":"h-1"}}`, want: allowed(operators...)},
	{op: "revoke_lease", input: "body hold", path: "/v1/executions/{running}/revoke", body: `{"reason":"r","hold":true}`, want: allowed(operators...)},
	{op: "set_priority", input: "body priority", path: "/v1/executions/{ready}/priority", body: `{"priority":9}`, want: allowed(operators...)},
	{op: "submit_execution", input: "body priority", path: "/v1/executions", body: `{"kind":"job","priority":1000}`, want: allowed("submit", "own", "admin", "admin*")},
	{op: "submit_execution", input: "query priority", path: "/v1/executions?kind=job&priority=1000", body: "raw", want: allowed("submit", "own", "admin", "admin*")},
	{op: "submit_execution", input: "body execution_id", path: "/v1/executions", body: `{"kind":"job","execution_id":"{theirs}"}`, want: plus(allowed(), "id_conflict", "submit", "own", "admin", "admin*")},
	{
		op: "submit_executions", input: "body execution_id", path: "/v1/executions/bulk", body: `{"items":[{"kind":"job","execution_id":"{theirs}"}]}`,
		want: allowed("submit", "own", "admin", "admin*"), shows: func(t *testing.T, who string, answer reply) {
			t.Helper()
			if answer.text(t, "items.0.error.code") != "id_conflict" {
				t.Errorf("%s: %s", who, answer.body)
			}
		},
	},
	{op: "submit_flow", input: "body execution_id", path: "/v1/flows", body: `{"kind":"g","nodes":[{"name":"n","kind":"job","execution_id":"{theirs}"}]}`, want: plus(allowed(), "id_conflict", "submit", "own", "admin", "admin*")},
	{op: "grant_work", input: "body execution_id", path: "/v1/work/grants", body: `{"worker_id":"g","worker_instance_id":"g-{who}","execution_id":"{ready}"}`, want: allowed("work", "operate", "admin", "operate*", "admin*")},
	{op: "grant_work", input: "body namespaces", path: "/v1/work/grants", body: `{"worker_id":"g","worker_instance_id":"gn-{who}","lanes":["mail"],"namespaces":["other"]}`, want: plus(allowed(), "namespace_forbidden", "work", "mail", "operate", "admin", "operate*", "admin*")},
	{op: "grant_work", input: "body lanes", path: "/v1/work/grants", body: `{"worker_id":"g","worker_instance_id":"gl-{who}","lanes":["pay"]}`, want: allowed("work", "operate", "admin", "operate*", "admin*")},
	{op: "register_worker", input: "body namespaces", path: "/v1/workers", body: `{"worker_id":"n","worker_instance_id":"n-{who}","lanes":["mail"],"namespaces":["other"]}`, want: plus(allowed(), "namespace_forbidden", "work", "mail", "admin", "admin*")},
	{op: "register_worker", input: "body lanes", path: "/v1/workers", body: `{"worker_id":"n","worker_instance_id":"n-{who}","lanes":["pay"]}`, want: allowed("work", "admin", "admin*")},
	{op: "register_worker", input: "body worker_instance_id", path: "/v1/workers", body: `{"worker_id":"w","worker_instance_id":"{instance}","lanes":["mail"]}`, want: plus(allowed(), "instance_id_taken", "work", "mail", "admin", "admin*")},
	{op: "claim_work", input: "body namespaces", path: "/v1/work/claim", body: `{"worker_id":"n","worker_instance_id":"cn-{who}","lanes":["mail"],"namespaces":["other"]}`, want: plus(allowed(), "namespace_forbidden", "work", "mail", "admin", "admin*")},
	{op: "claim_work", input: "body lanes", path: "/v1/work/claim", body: `{"worker_id":"n","worker_instance_id":"cl-{who}","lanes":["nothing"]}`, want: allowed("work", "admin", "admin*")},
	{op: "claim_work", input: "body worker_instance_id", path: "/v1/work/claim", body: `{"worker_id":"w","worker_instance_id":"{instance}","lanes":["mail"]}`, want: plus(allowed(), "instance_id_taken", "work", "mail", "admin", "admin*")},
	{op: "create_api_key", input: "body namespaces", path: "/v1/api-keys", body: `{"name":"k","roles":["read"],"namespaces":["other"]}`, want: plus(allowed("admin*"), "namespace_forbidden", "admin")},
	{op: "create_api_key", input: "body roles", path: "/v1/api-keys", body: `{"name":"k","roles":["admin"],"namespaces":["*"]}`, want: plus(allowed("admin*"), "namespace_forbidden", "admin")},
	{op: "patch_api_key", input: "body namespaces", path: "/v1/api-keys/{key}", body: `{"namespaces":["other"]}`, want: plus(allowed("admin*"), "namespace_forbidden", "admin")},
	{op: "patch_api_key", input: "body roles", path: "/v1/api-keys/{everywhere}", body: `{"roles":["admin"]}`, want: plus(allowed("admin*"), "api_key_not_found", "admin")},
	{op: "start_bulk", input: "body action", path: "/v1/bulk", body: `{"action":"delete","all":true,"dry_run":true,"reason":"r"}`, want: allowed("admin", "admin*")},
	{op: "start_bulk", input: "body all", path: "/v1/bulk", body: `{"action":"cancel","all":true,"dry_run":true,"reason":"r"}`, want: allowed(operators...)},
	{op: "replay_execution", input: "body cascade", path: "/v1/executions/{done}/replay", body: `{"cascade":"none"}`, want: allowed("own", "operate", "admin", "operate*", "admin*")},
	{op: "replay_execution", input: "body ignore_dependencies", path: "/v1/executions/{done}/replay", body: `{"ignore_dependencies":true}`, want: allowed("own", "operate", "admin", "operate*", "admin*")},
	{op: "replay_execution", input: "body keep_steps", path: "/v1/executions/{done}/replay", body: `{"keep_steps":true}`, want: allowed("own", "operate", "admin", "operate*", "admin*")},
	{op: "mark_worker_dead", input: "body take_leases", path: "/v1/workers/{instance}/dead", body: `{"reason":"r","take_leases":true}`, want: allowed("operate*", "admin*")},
	{op: "drain_worker", input: "query leaving", path: "/v1/workers/{instance}/drain?leaving=true", want: allowed("operate*", "admin*")},
	{op: "drain_workers", input: "query worker_id", path: "/v1/workers/drain?worker_id=w", want: allowed("operate*", "admin*")},
	{op: "undrain_workers", input: "query worker_id", path: "/v1/workers/undrain?worker_id=w", want: allowed("operate*", "admin*")},
	{op: "create_link", input: "body approver", path: "/v1/waitpoints/{waitpoint}/links", body: `{"approver":"ana"}`, want: allowed(operators...)},
	{op: "cancel_execution", input: "header FlowFabric-Lease", path: "/v1/executions/{running}/cancel", header: "{fence}", want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{op: "cancel_execution", input: "body lease", path: "/v1/executions/{running}/cancel", body: `{"lease":"{fence}"}`, want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{op: "complete_execution", input: "header FlowFabric-Lease", path: "/v1/executions/{running}/complete", header: "{fence}", want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{op: "complete_execution", input: "body lease", path: "/v1/executions/{running}/complete", body: `{"lease":"{fence}"}`, want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{op: "renew_lease", input: "header FlowFabric-Lease", path: "/v1/executions/{running}/renew", header: "{fence}", want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{op: "renew_lease", input: "body lease", path: "/v1/executions/{running}/renew", body: `{"lease":"{fence}"}`, want: plus(allowed(), "stale_lease", "work", "admin", "admin*")},
	{
		op: "list_flows", input: "query creator", path: "/v1/flows?creator=own", needs: "{flow}", want: allowed("read", "submit", "own", "operate", "admin", "operate*", "admin*"),
		shows: func(t *testing.T, who string, answer reply) {
			t.Helper()
			if listed := strings.Contains(string(answer.body), "flow_id"); listed == (who == "submit") {
				t.Errorf("%s: %s", who, answer.body)
			}
		},
	},
	{op: "list_events", input: "query execution_id", path: "/v1/events?after=start&execution_id={ready}", want: allowed("read", "own", "operate", "admin", "operate*", "admin*")},
	{op: "list_events", input: "query flow_id", path: "/v1/events?after=start&flow_id={flow}", want: allowed("read", "own", "operate", "admin", "operate*", "admin*")},
	{op: "list_events", input: "query worker_instance_id", path: "/v1/events?after=start&worker_instance_id={instance}", want: allowed("read", "operate", "admin", "operate*", "admin*")},
}

// homeOf chooses the namespace of a request, for callers of several. A key that is made reaches no further than the chosen one.
func homeOf(path string) map[string]string {
	if strings.HasPrefix(path, "/v1/api-keys") {
		return map[string]string{}
	}
	return map[string]string{"FlowFabric-Namespace": "default"}
}

// props makes what an attempt is about, as far as it is needed: executions in each state that the key own submitted and the key victim works
// on.
func (w *world) props(t *testing.T, keys map[string]string, needed string, n int) *strings.Replacer {
	t.Helper()
	send := func(method, path, key, body string, status int) reply {
		t.Helper()
		return w.send(t, request{method: method, path: path, key: keys[key], body: body, header: homeOf(path)}).wants(t, status)
	}
	instance := "victim-" + strconv.Itoa(n)
	submit := func() string {
		return send("POST", "/v1/executions", "own", `{"kind":"job","lane":"`+instance+`","input":1}`, 201).text(t, "execution_id")
	}
	claim := func() reply {
		return send("POST", "/v1/work/claim", "victim", `{"worker_id":"w","worker_instance_id":"`+instance+`","lanes":["`+instance+`"],"wait_ms":20000}`, 200)
	}
	fenced := func(task reply, verb, body string) reply {
		return w.send(t, request{
			method: "POST", path: "/v1/executions/" + task.text(t, "tasks.0.execution_id") + verb, key: keys["victim"], body: body,
			header: map[string]string{"FlowFabric-Lease": task.text(t, "tasks.0.lease.fence")},
		}).wants(t, 200)
	}
	values := map[string]func() string{
		"{done}": func() string {
			id := submit()
			fenced(claim(), "/complete", `{}`)
			return id
		},
		"{waitpoint}": func() string {
			submit()
			return fenced(claim(), "/suspend", `{"resume_condition":{"type":"single","waitpoint_key":"k"},"waitpoints":[{"fresh":{"waitpoint_key":"k"}}],"reason_code":"waiting_for_approval"}`).text(t, "waitpoints.0.waitpoint_id")
		},
		"{fence}": func() string { // of another execution
			submit()
			return claim().text(t, "tasks.0.lease.fence")
		},
		"{running}": func() string {
			id := submit()
			claim()
			return id
		},
		"{instance}": func() string {
			send("POST", "/v1/workers", "victim", `{"worker_id":"w","worker_instance_id":"`+instance+`"}`, 200)
			return instance
		},
		"{flow}": func() string {
			return send("POST", "/v1/flows", "own", `{"kind":"g","nodes":[{"name":"n","kind":"job","delay_ms":3600000}]}`, 201).text(t, "flow_id")
		},
		"{key}": func() string {
			return send("POST", "/v1/api-keys", "admin*", `{"name":"k","roles":["read"],"namespaces":["default"]}`, 201).text(t, "key_id")
		},
		"{everywhere}": func() string {
			return send("POST", "/v1/api-keys", "admin*", `{"name":"k","roles":["read"],"namespaces":["*"]}`, 201).text(t, "key_id")
		},
		"{ready}": submit,
	}
	var pairs []string
	for _, name := range append(slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool { return name == "{ready}" }), "{ready}") { // that is not to be claimed
		if strings.Contains(needed, name) {
			pairs = append(pairs, name, values[name]())
		}
	}
	return strings.NewReplacer(pairs...)
}

func TestU122_who_may_not_is_refused_whatever_its_body_says(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		keys := map[string]string{"victim": w.key(t, "*", "work"), "mail": w.laneKey(t, "default", []string{"mail"}, "work"), "operate*": w.key(t, "*", "operate"), "admin*": w.key(t, "*", "admin")}
		for _, role := range []string{"read", "submit", "work", "operate", "admin"} {
			keys[role] = w.key(t, "default", role)
		}
		own, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "own", Roles: []string{"submit"}, Namespaces: []string{"default"}})
		if err != nil {
			t.Fatal(err)
		}
		keys["own"] = own.Secret
		theirs := w.send(t, request{method: "POST", path: "/v1/executions", key: w.key(t, "other", "submit"), body: `{"kind":"job"}`}).wants(t, 201).text(t, "execution_id")
		for i, a := range attempts {
			var method string
			for _, o := range wire.Operations() {
				if o.ID == a.op {
					method = o.Method
				}
			}
			try := func(who string, about *strings.Replacer) reply {
				t.Helper()
				fill := func(text string) string {
					return strings.NewReplacer("{who}", strings.Trim(who, "*")+strconv.Itoa(i)+strconv.Itoa(strings.Count(who, "*")), "{theirs}", theirs).Replace(about.Replace(text))
				}
				header := homeOf(a.path)
				if a.header != "" {
					header["FlowFabric-Lease"] = fill(a.header)
				}
				if a.body == "raw" {
					header["Content-Type"] = "text/plain"
				}
				return w.send(t, request{method: method, path: fill(a.path), key: keys[who], body: fill(a.body), header: header})
			}
			needed := a.path + a.body + a.header + a.needs
			props := w.props(t, keys, needed, i*len(callers))
			for _, who := range callers { // before anybody succeeds: it is about the same things
				code, named := a.want[who]
				if !named {
					code = "role_required"
				}
				if code == "" {
					continue
				}
				if answer := try(who, props); answer.status < 400 || answer.text(t, "code") != code {
					t.Errorf("%s with %s by %s: %d %s, want %s", a.op, a.input, who, answer.status, answer.body, code)
				}
			}
			for n, who := range callers {
				if code, named := a.want[who]; !named || code != "" {
					continue
				}
				about := props
				if method != "GET" && n > 0 { // it changes them
					about = w.props(t, keys, needed, i*len(callers)+n)
				}
				answer := try(who, about)
				if answer.status > 299 {
					t.Errorf("%s with %s by %s: %d %s", a.op, a.input, who, answer.status, answer.body)
				} else if a.shows != nil {
					a.shows(t, who, answer)
				}
			}
		}
		w.overridesAreAudited(t)
		for _, o := range wire.Operations() { // the header that every route takes can only narrow (U121)
			if o.Roles&(wire.Open|wire.Token) != 0 || o.Only[wire.Admin] == wire.AllNamespaces {
				continue
			}
			w.send(t, request{
				method: o.Method, path: somePath(o, theirs), key: keys["admin"], header: map[string]string{"FlowFabric-Namespace": "other"},
			}).refuses(t, 403, "namespace_forbidden")
		}
	})
}

// overridesAreAudited checks that what was overridden stands in the audit log, done and refused, with who and why.
func (w *world) overridesAreAudited(t *testing.T) {
	t.Helper()
	for _, action := range []string{"complete_override", "fail_override", "operator_claim", "revoke"} {
		rows, err := w.Admin().AuditPage(t.Context(), ops.AuditFilter{Action: action})
		if err != nil {
			t.Fatal(err)
		}
		done, refused := 0, 0
		for _, row := range rows.Items {
			switch {
			case row.Outcome == "done" && row.Principal != "" && row.EntityID != "":
				done++
			case row.Outcome == "role_required":
				refused++
			}
		}
		if done < len(operators) || refused == 0 {
			t.Errorf("%s: %d are done and %d refused in the audit log", action, done, refused)
		}
	}
}
