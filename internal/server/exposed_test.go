package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU124_a_server_that_was_opened_to_others_answers_by_whatever_name_they_know_it(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, Exposed: true})
	for _, host := range []string{"flowfabric:7433", "ff.example.com", "10.0.0.7:7433"} {
		w.send(t, request{method: "GET", path: "/v1/whoami", header: map[string]string{"Host": host}}).wants(t, 200)
	}
	for origin, status := range map[string]int{"http://ff.example.com": 201, "https://ff.example.com": 201, "https://evil.example.com": 403, "null": 403} {
		w.send(t, request{
			method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, header: map[string]string{"Host": "ff.example.com", "Origin": origin},
		}).wants(t, status)
	}
}

func TestU124_a_server_that_anybody_may_use_says_so(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, Exposed: true})
	if ready := w.get(t, "/readyz").wants(t, 200); ready.field(t, "checks.open.ok") != true || !strings.Contains(ready.text(t, "checks.open.detail"), "--insecure-open") {
		t.Errorf("%s", ready.body)
	}
	if ready := openWorld(t).get(t, "/readyz").wants(t, 200); ready.field(t, "checks.open") != nil {
		t.Errorf("%s", ready.body)
	}
	if c := w.check(t, "credentials"); c.State != api.CheckWarn || !strings.Contains(c.Detail, "--insecure-open") || c.Hint == "" {
		t.Errorf("%+v", c)
	}
}

// check asks the server's doctor about one thing.
func (w *world) check(t *testing.T, name string) api.Check {
	t.Helper()
	answer := w.get(t, "/v1/admin/doctor").wants(t, 200)
	var found api.HealthReport
	if err := json.Unmarshal(answer.body, &found); err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("nothing is said of %s: %s", name, answer.body)
	return api.Check{}
}

func TestU113_the_doctor_of_a_server_looks_at_store_and_server(t *testing.T) {
	t.Parallel()
	end := api.Check{Name: "tls", State: api.CheckFail, Detail: "over", Hint: "renew it"}
	w := keyedWorld(t, server.Config{Checks: func() []api.Check { return []api.Check{end} }})
	admin := w.key(t, "*", "admin")
	answer := w.send(t, request{method: "GET", path: "/v1/admin/doctor", key: admin}).wants(t, 200)
	var found api.HealthReport
	if err := json.Unmarshal(answer.body, &found); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, c := range found.Checks {
		states[c.Name] = c.State
	}
	if found.OK || states["tls"] != "fail" || states["credentials"] != "ok" || states["stopping"] != "ok" || states["schema"] != "ok" || states["api_keys"] != "ok" {
		t.Errorf("%s", answer.body)
	}
	w.server.Drain()
	if answer := w.send(t, request{method: "GET", path: "/v1/admin/doctor", key: admin}).wants(t, 200); !strings.Contains(string(answer.body), "the server is stopping") {
		t.Errorf("%s", answer.body)
	}
	w.send(t, request{method: "GET", path: "/v1/admin/doctor", key: w.key(t, "default", "admin")}).refuses(t, 403, "role_required")
	settings := w.send(t, request{method: "GET", path: "/v1/admin/settings", key: admin}).wants(t, 200)
	if !strings.Contains(string(settings.body), `{"name":"FF_MAX_PAYLOAD","value":"4194304","source":"default"}`) {
		t.Errorf("a server without settings of its own shows those of the client: %s", settings.body)
	}
}

func TestU113_the_hint_for_a_store_with_its_own_tools_has_the_command_and_no_password(t *testing.T) {
	t.Parallel()
	address := cluster.Database(t)
	sep := "?"
	if strings.Contains(address, "?") {
		sep = "&"
	}
	w := serveStore(t, address+sep+"password=hush", server.Config{Open: true})
	refusal := w.post(t, "/v1/admin/backup", "").refuses(t, 501, "not_implemented")
	if hint := refusal.text(t, "hint"); !strings.Contains(hint, "pg_dump") || !strings.Contains(hint, "flowfabric backup FILE --store") {
		t.Errorf("%s", refusal.body)
	}
	if strings.Contains(string(refusal.body), "hush") || strings.Contains(w.log.String(), "hush") {
		t.Errorf("the password is shown: %s", refusal.body)
	}
}

func TestU196_metrics_have_an_address_of_their_own_and_nothing_else_is_there(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	get := func(path, key string, open bool) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		answer := httptest.NewRecorder()
		w.server.MetricsServer(open).Handler.ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
	reader := w.key(t, "*", "read")
	for _, one := range []struct {
		path, key string
		open      bool
		want      int
	}{{"/metrics", "", false, 401}, {"/metrics", reader, false, 200}, {"/metrics", "", true, 200}, {"/v1/info", reader, false, 404}, {"/v1/info", reader, true, 404}} {
		if code, text := get(one.path, one.key, one.open); code != one.want || code == 200 && !strings.Contains(text, "ff_build_info") {
			t.Errorf("%+v: %d", one, code)
		}
	}
}
