package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

const (
	renderWorker = `"worker_id":"render","worker_instance_id":"render-1"`
	grantBody    = `{` + renderWorker + `,"lanes":["default"],"wait_ms":20000,"grant_ttl_ms":60000}`
)

// granted submits and is given the key of a grant.
func (w *world) granted(t *testing.T) (id, key string) {
	t.Helper()
	id = w.post(t, "/v1/executions", `{"kind":"job","input":{"n":1}}`).wants(t, 201).text(t, "execution_id")
	a := w.post(t, "/v1/work/grants", grantBody).wants(t, 200)
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %s", a.header.Get("Cache-Control"))
	}
	return id, a.text(t, "grants.0.grant_key")
}

func TestU64_U65_a_broker_grants_and_a_worker_claims_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id, key := w.granted(t)
		if !strings.HasPrefix(key, "pg:"+w.full(t, id)+":") {
			t.Errorf("S28: %s", key)
		}
		bare := `{"grant_key":"` + key + `"}`
		if got := string(w.post(t, "/v1/work/grants/verify", bare).wants(t, 200).body); strings.TrimSpace(got) != `{"valid":true}` {
			t.Errorf("%s", got)
		}
		claim := `{"grant_key":"` + key + `",` + renderWorker + `}`
		first := w.post(t, "/v1/work/grants/claim", claim).wants(t, 200)
		again := w.post(t, "/v1/work/grants/claim", claim).wants(t, 200)
		if first.text(t, "execution_id") != id || first.text(t, "lease.lease_id") != again.text(t, "lease.lease_id") {
			t.Errorf("%s\n%s", first.body, again.body)
		}
		w.post(t, "/v1/work/grants/verify", bare).refuses(t, 404, "grant_unknown")
		_, key = w.granted(t)
		w.post(t, "/v1/work/grants/return", `{"grant_key":"`+key+`"}`).wants(t, http.StatusNoContent)
		none := w.post(t, "/v1/work/grants", `{`+renderWorker+`,"lanes":["empty"]}`).wants(t, 200)
		if strings.TrimSpace(string(none.body)) != `{"grants":[]}` {
			t.Errorf("S27: %s", none.body)
		}
	})
}

func TestU65_every_refusal_of_a_key_has_its_code_and_status(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id, key := w.granted(t)
		kid := strings.Split(key, ":")[5]
		for name, c := range map[string]struct {
			key    string
			status int
			code   string
		}{
			"malformed":   {"pg:nonsense", 400, "grant_malformed"},
			"expired":     {"pg:" + w.full(t, id) + ":1:" + kid + ":00", 410, "grant_expired"},
			"unknown kid": {strings.Replace(key, ":"+kid+":", ":other:", 1), 401, "grant_unknown_kid"},
			"unknown":     {strings.Replace(key, id, "0190f0c2-1111-7aaa-8bbb-0123456789ab", 1), 404, "grant_unknown"},
			"signature":   {key[:len(key)-64] + strings.Repeat("0", 64), 403, "grant_signature_mismatch"},
		} {
			for _, path := range []string{"verify", "return"} {
				refusal := w.post(t, "/v1/work/grants/"+path, `{"grant_key":"`+c.key+`"}`).refuses(t, c.status, c.code)
				if strings.Contains(string(refusal.body), key[len(key)-64:]) {
					t.Errorf("%s: the answer shows a key: %s", name, refusal.body)
				}
			}
			w.post(t, "/v1/work/grants/claim", `{"grant_key":"`+c.key+`",`+renderWorker+`}`).refuses(t, c.status, c.code)
		}
		w.post(t, "/v1/work/grants/verify", `{}`).refuses(t, 400, "missing_field")
		w.post(t, "/v1/work/grants", `{`+renderWorker+`,"lanes":["default"],"lease_ttl_ms":1000}`).refuses(t, 400, "unknown_field")
		w.post(t, "/v1/work/grants", `{`+renderWorker+`}`).refuses(t, 400, "invalid_argument")
	})
}

func TestL117_U13_the_same_request_for_grants_shows_the_same_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/executions", `{"kind":"job"}`).wants(t, 201)
		ask := func() reply {
			return w.send(t, request{method: "POST", path: "/v1/work/grants", body: grantBody, header: map[string]string{"Idempotency-Key": "once"}}).wants(t, 200)
		}
		first := ask()
		again := ask()
		key := first.text(t, "grants.0.grant_key")
		if key != again.text(t, "grants.0.grant_key") || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s\n%s %v", first.body, again.body, again.header)
		}
		back := request{method: "POST", path: "/v1/work/grants/return", body: `{"grant_key":"` + key + `"}`, header: map[string]string{"Idempotency-Key": "back"}}
		w.send(t, back).wants(t, 204)
		w.send(t, back).wants(t, 204)
	})
}

func TestU50_revoke_with_hand_to_over_http(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		id := w.post(t, "/v1/executions", `{"kind":"job"}`).wants(t, 201).text(t, "execution_id")
		w.post(t, "/v1/executions/"+id+"/claim", `{}`).wants(t, 200)
		a := w.post(t, "/v1/executions/"+id+"/revoke", `{"hand_to":{`+renderWorker+`,"grant_ttl_ms":60000}}`).wants(t, 200)
		if a.text(t, "outcome") != "revoked" || a.text(t, "grant.execution_id") != id || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %v", a.body, a.header)
		}
		w.post(t, "/v1/work/grants/claim", `{"grant_key":"`+a.text(t, "grant.grant_key")+`",`+renderWorker+`}`).wants(t, 200)
		a = w.post(t, "/v1/executions/"+id+"/revoke", `{"hold":true,"hand_to":{`+renderWorker+`}}`).wants(t, 200)
		if a.text(t, "outcome") != "revoked" || a.text(t, "cause") != "execution_not_eligible" || a.text(t, "hand_to_error.code") != "execution_not_eligible" {
			t.Errorf("%s", a.body)
		}
		w.post(t, "/v1/executions/"+id+"/revoke", `{"hand_to":{"worker_id":"render"}}`).refuses(t, 400, "missing_field")
	})
}

func TestU64_U65_U122_roles_namespaces_and_lanes_bound_grants(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		submitter, worker, operator := w.key(t, "default", "submit"), w.key(t, "default", "work"), w.key(t, "default", "operate")
		send := func(key, path, body string) reply {
			return w.send(t, request{method: "POST", path: path, key: key, body: body})
		}
		submit := func() { send(submitter, "/v1/executions", `{"kind":"job"}`).wants(t, 201) }
		submit()
		send(submitter, "/v1/work/grants", grantBody).refuses(t, 403, "role_required")
		granted := send(operator, "/v1/work/grants", grantBody).wants(t, 200)
		key := granted.text(t, "grants.0.grant_key")
		claim := `{"grant_key":"` + key + `",` + renderWorker + `}`
		send(operator, "/v1/work/grants/claim", claim).refuses(t, 403, "role_required")
		send(w.key(t, "elsewhere", "work"), "/v1/work/grants/claim", claim).refuses(t, 404, "grant_unknown")
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "bound", Roles: []string{"work"}, Namespaces: []string{"default"}, Lanes: []string{"fast"}})
		if err != nil {
			t.Fatal(err)
		}
		send(made.Secret, "/v1/work/grants/claim", claim).refuses(t, 403, "role_required")
		send(made.Secret, "/v1/work/grants", grantBody).refuses(t, 403, "role_required")
		send(made.Secret, "/v1/work/grants", `{`+renderWorker+`,"execution_id":"`+granted.text(t, "grants.0.execution_id")+`"}`).refuses(t, 403, "role_required")
		send(worker, "/v1/work/grants/claim", claim).wants(t, 200)
	})
}
