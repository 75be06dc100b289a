package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

const redBudget = `{"name":"team-red","dimensions":{"tokens":{"soft":50,"hard":100,"default_reserve":10}}}`

func TestU95_a_budget_is_made_with_its_address_and_found_again(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := w.post(t, "/v1/budgets", redBudget).wants(t, 201)
		id := made.text(t, "budget_id")
		if made.text(t, "outcome") != "created" || made.header.Get("Location") != "/v1/budgets/"+id || made.text(t, "scope.type") != "none" || made.text(t, "on_hard") != "block_new" ||
			made.number(t, "dimensions.tokens.available") != 100 || made.number(t, "revision") < 0 {
			t.Errorf("%s", made.body)
		}
		if again := w.post(t, "/v1/budgets", redBudget).wants(t, 200); again.text(t, "outcome") != "already_exists" || again.text(t, "budget_id") != id {
			t.Errorf("%s", again.body)
		}
		w.post(t, "/v1/budgets", strings.Replace(redBudget, "100", "101", 1)).refuses(t, 409, "budget_already_exists")
		shown := w.get(t, "/v1/budgets/team-red").wants(t, 200)
		if shown.text(t, "budget_id") != id || shown.header.Get("ETag") == "" {
			t.Errorf("%s", shown.body)
		}
		w.send(t, request{method: "GET", path: "/v1/budgets/" + id, header: map[string]string{"If-None-Match": shown.header.Get("ETag")}}).wants(t, 304)
		w.get(t, "/v1/budgets/missing").refuses(t, 404, "budget_not_found")
	})
}

func TestU95_a_definition_that_is_none_is_refused_with_its_field(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for body, want := range map[string]struct{ code, field string }{
		`{"dimensions":{"tokens":{}}}`:                                                                            {"missing_field", "/name"},
		`{"name":"a"}`:                                                                                            {"missing_field", "/dimensions"},
		`{"name":"a","dimensions":{}}`:                                                                            {"invalid_budget", "/dimensions"},
		`{"name":"a","dimensions":{"tokens":{"hard":0}}}`:                                                         {"invalid_budget", "/dimensions/tokens/hard"},
		`{"name":"a","dimensions":{"tokens":{"soft":0}}}`:                                                         {"invalid_budget", "/dimensions/tokens/soft"},
		`{"name":"a","dimensions":{"tokens":{"soft":3,"hard":2}}}`:                                                {"invalid_budget", "/dimensions/tokens/soft"},
		`{"name":"a","dimensions":{"Tokens":{}}}`:                                                                 {"invalid_budget", "/dimensions/Tokens"},
		`{"name":"a","dimensions":{"tokens":{"hard":"5"}}}`:                                                       {"invalid_argument", "/dimensions/tokens/hard"},
		`{"name":"a","dimensions":{"tokens":{"hard":1.5}}}`:                                                       {"invalid_argument", "/dimensions/tokens/hard"},
		`{"name":"a","dimensions":{"tokens":{"hrad":5}}}`:                                                         {"unknown_field", "/dimensions/tokens/hrad"},
		`{"name":"a","dimensions":{"tokens":{}},"on_hard":"explode"}`:                                             {"invalid_budget", "/on_hard"},
		`{"name":"a","dimensions":{"tokens":{}},"scope":{"type":"moon"}}`:                                         {"invalid_budget", "/scope/type"},
		`{"name":"a","dimensions":{"tokens":{}},"reset":{"type":"interval"}}`:                                     {"invalid_budget", "/reset/every_ms"},
		`{"name":"a","dimensions":{"tokens":{}},"reset":{"type":"calendar","unit":"year"}}`:                       {"invalid_budget", "/reset/unit"},
		`{"name":"a","dimensions":{"tokens":{}},"reset":{"type":"none","unit":"day"}}`:                            {"invalid_budget", "/reset"},
		`{"name":"a","dimensions":{"tokens":{}},"limit":5}`:                                                       {"unknown_field", "/limit"},
		`{"name":"a","dimensions":{"tokens":{}},"budget_id":"x"}`:                                                 {"invalid_id", "/budget_id"},
		`{"name":"a","dimensions":{"tokens":{}},"approval":{"default_raise":{"pages":1}}}`:                        {"invalid_budget", "/approval/default_raise/pages"},
		`{"name":"a","dimensions":{"tokens":{"hard":9007199254740992}}}`:                                          {"invalid_budget", "/dimensions/tokens/hard"},
		`{"name":"a","dimensions":{"tokens":{}},"reset":{"type":"calendar","unit":"day","timezone":"Mars/Base"}}`: {"invalid_budget", "/reset/timezone"},
	} {
		if got := w.post(t, "/v1/budgets", body).refuses(t, 400, want.code); got.text(t, "field") != want.field {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	if page := w.get(t, "/v1/budgets").wants(t, 200); len(page.field(t, "items").([]any)) > 0 {
		t.Errorf("%s", page.body)
	}
}

func TestU97_a_patch_changes_what_it_names_if_the_revision_is_the_one_that_was_seen(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := w.post(t, "/v1/budgets", redBudget).wants(t, 201)
		patch := func(ifMatch, body string) reply {
			header := map[string]string{}
			if ifMatch != "" {
				header["If-Match"] = ifMatch
			}
			return w.send(t, request{method: "PATCH", path: "/v1/budgets/team-red", body: body, header: header})
		}
		first := made.number(t, "revision")
		revision := strconv.Itoa(int(first))
		changed := patch(`"`+revision+`"`, `{"dimensions":{"tokens":{"hard":200,"remove":["soft"]}},"reason":"they grow"}`).wants(t, 200)
		if changed.number(t, "revision") != first+1 || changed.number(t, "dimensions.tokens.hard") != 200 || changed.field(t, "dimensions.tokens.soft") != nil ||
			changed.number(t, "dimensions.tokens.default_reserve") != 10 {
			t.Errorf("%s", changed.body)
		}
		stale := patch(`"`+revision+`"`, `{"dimensions":{"tokens":{"hard":300}}}`).refuses(t, 409, "stale_version")
		if stale.number(t, "current.revision") != first+1 {
			t.Errorf("%s", stale.body)
		}
		patch("x", `{}`).refuses(t, 400, "invalid_argument")
		patch("", `{"scope":{"type":"namespace"}}`).refuses(t, 400, "unknown_field")
		patch("", `{"dimensions":{"tokens":{"hard":0}}}`).refuses(t, 400, "invalid_budget")
		patch("", `{"dimensions":{"tokens":{"remove":["all"]}}}`).refuses(t, 400, "invalid_budget")
		patch("", `{"remove_dimensions":["tokens"]}`).refuses(t, 400, "invalid_budget")
		w.post(t, "/v1/budgets/team-red/charge", `{"usage":{"tokens":60}}`).wants(t, 200)
		below := patch("", `{"dimensions":{"tokens":{"hard":50}}}`).refuses(t, 409, "limit_below_usage")
		if below.number(t, "current.minimum") != 60 || below.text(t, "field") != "/dimensions/tokens/hard" {
			t.Errorf("%s", below.body)
		}
		for _, verb := range []string{"close", "reopen", "reset"} {
			w.send(t, request{method: "POST", path: "/v1/budgets/team-red/" + verb, body: `{}`, header: map[string]string{"If-Match": `"99"`}}).refuses(t, 409, "stale_version")
		}
		if closed := w.post(t, "/v1/budgets/team-red/close", `{"reason":"enough"}`).wants(t, 200); closed.text(t, "state") != "closed" {
			t.Errorf("%s", closed.body)
		}
		w.post(t, "/v1/budgets/team-red/charge", `{"usage":{"tokens":1}}`).refuses(t, 409, "budget_closed")
		w.post(t, "/v1/budgets/team-red/reopen", `{}`).wants(t, 200)
		if reset := w.post(t, "/v1/budgets/team-red/reset", `{}`).wants(t, 200); reset.number(t, "dimensions.tokens.used") != 0 {
			t.Errorf("%s", reset.body)
		}
		if epochs := w.get(t, "/v1/budgets/team-red/epochs").wants(t, 200); epochs.number(t, "items.0.dimensions.tokens.used") != 60 {
			t.Errorf("%s", epochs.body)
		}
		w.send(t, request{method: "DELETE", path: "/v1/budgets/team-red", header: map[string]string{"If-Match": `"99"`}}).refuses(t, 409, "stale_version")
		w.send(t, request{method: "DELETE", path: "/v1/budgets/team-red"}).wants(t, 204)
		w.get(t, "/v1/budgets/team-red").refuses(t, 404, "budget_not_found")
	})
}

func TestU74_usage_is_reported_under_the_lease(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		budget := w.post(t, "/v1/budgets", redBudget).wants(t, 201).text(t, "budget_id")
		w.post(t, "/v1/executions", `{"kind":"k","budget_ids":["team-red"],"estimate":{"tokens":30}}`).wants(t, 201)
		task := w.post(t, "/v1/work/claim", claimBody).wants(t, 200)
		if task.number(t, "tasks.0.remaining."+budget+".tokens") != 100 { // U28
			t.Errorf("%s", task.body)
		}
		id, lease := task.text(t, "tasks.0.execution_id"), task.text(t, "tasks.0.lease.fence")
		path := "/v1/executions/" + bare(id)
		report := func(body, key string) reply {
			header := map[string]string{"FlowFabric-Lease": lease}
			if key != "" {
				header["Idempotency-Key"] = key
			}
			return w.send(t, request{method: "POST", path: path + "/usage", body: body, header: header})
		}
		ok := report(`{"usage":{"tokens":40}}`, "").wants(t, 200)
		if ok.text(t, "outcome") != "ok" || ok.field(t, "applied") != true || ok.text(t, "action") != "none" || ok.number(t, "remaining."+budget+".tokens") != 60 {
			t.Errorf("%s", ok.body)
		}
		refused := report(`{"usage":{"tokens":70}}`, "").wants(t, 200)
		if refused.text(t, "outcome") != "hard_breach" || refused.field(t, "applied") != false || refused.text(t, "budget") != budget || refused.number(t, "attempted") != 70 {
			t.Errorf("%s", refused.body)
		}
		soft := report(`{"usage":{"tokens":20},"dedup_key":"a"}`, "").wants(t, 200)
		if soft.text(t, "outcome") != "soft_breach" || soft.number(t, "all.0.soft") != 50 {
			t.Errorf("%s", soft.body)
		}
		if again := report(`{"usage":{"tokens":20},"dedup_key":"a"}`, "").wants(t, 200); again.text(t, "outcome") != "already_applied" || again.text(t, "first_outcome") != "soft_breach" {
			t.Errorf("%s", again.body)
		}
		report(`{"usage":{"tokens":21},"dedup_key":"a"}`, "").refuses(t, 409, "idempotency_conflict")
		first := report(`{"usage":{"pages":3}}`, "key-1").wants(t, 200)
		if again := report(`{"usage":{"pages":3}}`, "key-1").wants(t, 200); string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" { // U13
			t.Errorf("%s", again.body)
		}
		for body, code := range map[string]string{
			`{}`: "missing_field", `{"usage":{}}`: "invalid_usage", `{"usage":{"tokens":-1}}`: "invalid_usage", `{"usage":{"wall_ms":1}}`: "reserved_dimension",
			`{"usage":{"tokens":"1"}}`: "invalid_argument", `{"usage":{"tokens":1},"spent":true}`: "unknown_field", `{"usage":{"tokens":9007199254740992}}`: "invalid_usage",
		} {
			report(body, "").refuses(t, 400, code)
		}
		w.post(t, path+"/usage", `{"usage":{"tokens":1}}`).refuses(t, 400, "fence_required")
		batch := w.post(t, "/v1/work/batch", `{"items":[{"op":"usage","execution_id":"`+id+`","lease":"`+lease+`","usage":{"tokens":1},"already_spent":true},`+
			`{"op":"complete","execution_id":"`+id+`","lease":"`+lease+`","usage":{"tokens":2}}]}`).wants(t, 200)
		if batch.text(t, "items.0.usage.outcome") != "soft_breach" || batch.text(t, "items.1.status") != "succeeded" {
			t.Errorf("%s", batch.body)
		}
		usage := w.get(t, path+"/usage").wants(t, 200)
		if usage.number(t, "usage.tokens") != 63 || usage.number(t, "usage.pages") != 3 {
			t.Errorf("%s", usage.body)
		}
		if one := w.get(t, path+"/usage?attempt=0").wants(t, 200); one.number(t, "usage.tokens") != 63 || one.number(t, "attempt_index") != 0 {
			t.Errorf("%s", one.body)
		}
		w.get(t, path+"/usage?attempt=7").refuses(t, 404, "attempt_not_found")
		if attempt := w.get(t, path+"/attempts/0").wants(t, 200); attempt.number(t, "usage.tokens") != 63 { // U30
			t.Errorf("%s", attempt.body)
		}
		if budgets := w.get(t, path+"/budgets").wants(t, 200); budgets.text(t, "budgets.0.budget_id") != budget || budgets.field(t, "admitted") != true {
			t.Errorf("%s", budgets.body)
		}
		if spend := w.get(t, "/v1/budgets/team-red/spend").wants(t, 200); spend.text(t, "items.0.execution_id") != id || spend.number(t, "items.0.used.tokens") != 63 {
			t.Errorf("%s", spend.body)
		}
		if released := w.post(t, "/v1/budgets/team-red/release", `{"execution_id":"`+id+`"}`).wants(t, 200); released.number(t, "released.tokens") != 63 {
			t.Errorf("%s", released.body)
		}
	})
}

func TestU32_a_submit_makes_budgets_of_its_own_and_shows_them_in_full(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		made := w.post(t, "/v1/executions", `{"kind":"k","budgets":[{"name":"mine","dimensions":{"tokens":{"hard":5}}}]}`).wants(t, 201)
		budget := w.get(t, "/v1/budgets/mine").wants(t, 200)
		if budget.text(t, "scope.type") != "execution" || budget.text(t, "scope.value") == "" || made.field(t, "budgets") != nil {
			t.Errorf("%s\n%s", budget.body, made.body)
		}
		full := w.get(t, "/v1/executions/"+bare(made.text(t, "execution_id"))+"?view=full").wants(t, 200)
		if full.text(t, "budgets.0.budget_id") != budget.text(t, "budget_id") {
			t.Errorf("%s", full.body)
		}
		for body, code := range map[string]string{
			`{"kind":"k","budgets":[{"dimensions":{"tokens":{"hard":0}}}]}`:                                             "invalid_budget",
			`{"kind":"k","budgets":[{"dimensions":{"tokens":{}},"scope":{"type":"namespace"}}]}`:                        "unknown_field",
			`{"kind":"k","budgets":[{"dimensions":{"tokens":{}}}],"policy":{"budgets":[{"dimensions":{"tokens":{}}}]}}`: "invalid_argument",
			`{"kind":"k","budget_ids":["missing"]}`:                                                                     "invalid_policy",
			`{"kind":"k","estimate":{"tokens":-1}}`:                                                                     "invalid_policy",
			`{"kind":"k","budget_ids":"mine"}`:                                                                          "invalid_argument",
			`{"kind":"k","policy":{"budgets":[{"dimensions":{"tokens":{"hard":0}}}]}}`:                                  "invalid_policy",
		} {
			w.post(t, "/v1/executions", body).refuses(t, 400, code)
		}
	})
}

func TestU32_budgets_beside_a_policy_that_has_some_are_refused_whatever_those_are(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for _, own := range []string{`{"hard":1}`, `{"hard":0}`, `{"soft":0}`, `{"hard":"1"}`, `{"hard":1.5}`, `{"hrad":1}`} {
			w.post(t, "/v1/executions", `{"kind":"k","budgets":[{"dimensions":{"tokens":{}}}],"policy":{"budgets":[{"dimensions":{"tokens":`+own+`}}]}}`).
				refuses(t, 400, "invalid_argument")
		}
		if made := w.get(t, "/v1/executions/count"); made.number(t, "total") != 0 {
			t.Errorf("%s", made.body)
		}
	})
}

func TestU89_a_limit_of_0_in_any_budget_of_a_flow_refuses_the_flow(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		const own = `"budgets":[{"name":"own","dimensions":{"tokens":{"hard":1}}},{"dimensions":{"tokens":{"hard":0}}}]`
		open := "/v1/flows/" + bare(w.post(t, "/v1/flows", `{"kind":"k","seal":false}`).wants(t, 201).text(t, "flow_id"))
		for _, c := range []struct{ path, body, place string }{
			{"/v1/flows", `{"kind":"k","nodes":[{"name":"a","kind":"k"}],` + own + `}`, ""},
			{"/v1/flows", `{"kind":"k","dry_run":true,"nodes":[{"name":"a","kind":"k"}],` + own + `}`, ""},
			{"/v1/flows", `{"kind":"k","nodes":[{"name":"a","kind":"k"},{"name":"b","kind":"k",` + own + `}]}`, "/nodes/1"},
			{"/v1/flows", `{"kind":"k","nodes":[{"name":"a","kind":"k"}],"defaults":{` + own + `}}`, "/defaults"},
			{"/v1/flows", `{"kind":"k","nodes":[{"name":"a","flow":{"nodes":[{"name":"b","kind":"k",` + own + `}]}}]}`, "/nodes/0/flow/nodes/0"},
			{open + "/extend", `{"nodes":[{"name":"a","kind":"k",` + own + `}]}`, "/nodes/0"},
		} {
			refused := w.post(t, c.path, c.body).refuses(t, 400, "invalid_budget")
			if refused.text(t, "detail") != "a limit must be at least 1" || refused.text(t, "field") != c.place+"/budgets/1/dimensions/tokens/hard" {
				t.Errorf("%s: %s", c.body, refused.body)
			}
		}
		if made := w.get(t, "/v1/executions/count"); made.number(t, "total") != 0 {
			t.Errorf("%s", made.body)
		}
		w.get(t, "/v1/budgets/own").refuses(t, 404, "budget_not_found")
	})
}

func TestU98_workers_and_operators_charge_and_others_do_not(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		with := func(role, method, path, body string) reply {
			return w.send(t, request{method: method, path: path, body: body, key: w.key(t, "default", role)})
		}
		with("operate", "POST", "/v1/budgets", redBudget).wants(t, 201)
		with("read", "POST", "/v1/budgets", redBudget).refuses(t, 403, "role_required")
		with("work", "POST", "/v1/budgets/team-red/charge", `{"usage":{"tokens":1}}`).wants(t, 200)
		with("operate", "POST", "/v1/budgets/team-red/charge", `{"usage":{"tokens":1}}`).wants(t, 200)
		with("submit", "POST", "/v1/budgets/team-red/charge", `{"usage":{"tokens":1}}`).refuses(t, 403, "role_required")
		with("work", "POST", "/v1/budgets/team-red/reset", `{}`).refuses(t, 403, "role_required")
		with("read", "GET", "/v1/budgets/team-red", "").wants(t, 200)
		with("work", "GET", "/v1/budgets/team-red", "").refuses(t, 403, "role_required")
		other := w.send(t, request{method: "GET", path: "/v1/budgets/team-red", key: w.key(t, "other", "operate")}).refuses(t, 404, "budget_not_found") // I14
		none := w.send(t, request{method: "GET", path: "/v1/budgets/team-blu", key: w.key(t, "other", "operate")}).refuses(t, 404, "budget_not_found")
		if strings.ReplaceAll(other.text(t, "detail"), "team-red", "team-blu") != none.text(t, "detail") {
			t.Errorf("%s\n%s", other.body, none.body)
		}
	})
}

func TestU112_budgets_are_told_as_a_feature(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{Open: true})
	if info := w.get(t, "/v1/info").wants(t, 200); info.field(t, "features.budgets") != true {
		t.Errorf("%s", info.body)
	}
}
