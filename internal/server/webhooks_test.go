package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

func TestE45_U108_a_webhook_leads_to_no_address_that_is_not_permitted(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	key := w.key(t, "default", "operate")
	send := func(method, path, body string) reply {
		return w.send(t, request{method: method, path: path, key: key, body: body})
	}
	hook := send("POST", "/v1/webhooks", `{"url":"https://here.invalid/","filter":{"kinds":["none"]}}`).wants(t, 201).text(t, "endpoint_id")
	for _, url := range []string{
		"http://here.invalid/", "https://localhost/", "https://127.0.0.1/", "https://0.0.0.0/", "https://10.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/",
		"https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://2130706433/", "https://0x7f.1/", "https://a:b@here.invalid/", "https://here.invalid:22/", "ftp://here.invalid/",
	} {
		body := fmt.Sprintf(`{"url":%q}`, url)
		for _, refused := range []reply{send("POST", "/v1/webhooks", body), send("PATCH", "/v1/webhooks/"+hook, body)} {
			if refused.refuses(t, 400, "invalid_webhook_url").text(t, "field") != "/url" {
				t.Errorf("%s", refused.body)
			}
		}
	}
	if shown := send("GET", "/v1/webhooks/"+hook, "").wants(t, 200); shown.text(t, "url") != "https://here.invalid/" {
		t.Errorf("%s", shown.body)
	}
}

func TestE41_U108_a_secret_is_shown_once_and_never_again(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		key, reader := w.key(t, "default", "operate"), w.key(t, "default", "read")
		send := func(method, path, body string) reply {
			return w.send(t, request{method: method, path: path, key: key, body: body})
		}
		made := send("POST", "/v1/webhooks", `{"url":"https://here.invalid/hook/secret-path","filter":{"kinds":["none"]}}`).wants(t, 201)
		at := "/v1/webhooks/" + made.text(t, "endpoint_id")
		secrets := []string{made.text(t, "secret"), send("POST", at+"/rotate", `{}`).wants(t, 201).text(t, "secret")}
		const own = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
		secrets = append(secrets, send("POST", at+"/rotate", `{"secret":"`+own+`"}`).wants(t, 201).text(t, "secret"))
		if secrets[0] == secrets[1] || secrets[2] != own || !strings.HasPrefix(secrets[0], "whsec_") {
			t.Errorf("%q", secrets)
		}
		for _, short := range []string{"whsec_AAEC", "nonsense", "whsec_" + strings.Repeat("A", 120)} {
			send("POST", at+"/rotate", `{"secret":"`+short+`"}`).refuses(t, 400, "invalid_secret")
		}
		w.send(t, request{method: "GET", path: at, key: reader}).refuses(t, 403, "role_required")
		w.send(t, request{method: "GET", path: at + "/deliveries", key: reader}).refuses(t, 403, "role_required")
		all := w.key(t, "*", "admin")
		for _, path := range []string{at, "/v1/webhooks", at + "/deliveries", "/v1/events?after=start&limit=1000", "/v1/audit?limit=1000"} {
			answer := w.send(t, request{method: "GET", path: path, key: all}).wants(t, 200)
			for _, secret := range secrets {
				if strings.Contains(string(answer.body), secret[len("whsec_"):]) {
					t.Errorf("%s shows a secret (EI12)", path)
				}
			}
			if strings.HasPrefix(path, "/v1/events") && strings.Contains(string(answer.body), "secret-path") {
				t.Error("an event shows where a webhook leads (EI12)")
			}
		}
	})
}

func TestI14_E35_a_webhook_gets_nothing_of_another_tenant_whatever_its_filter_names(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		acme, other := w.key(t, "acme", "submit", "operate"), w.key(t, "b", "submit", "operate")
		id := w.send(t, request{method: "POST", path: "/v1/executions", key: acme, body: `{"kind":"k"}`}).wants(t, 201).text(t, "execution_id")
		hook := w.send(t, request{method: "POST", path: "/v1/webhooks", key: other, body: `{"url":"https://here.invalid/","filter":{"execution_id":"` + id + `"}}`}).wants(t, 201).text(t, "endpoint_id")
		w.send(t, request{method: "POST", path: "/v1/executions/" + id + "/cancel", key: acme, body: `{}`}).wants(t, 200)
		own := w.send(t, request{method: "POST", path: "/v1/executions", key: other, body: `{"kind":"k"}`}).wants(t, 201).text(t, "execution_id")
		at := "/v1/webhooks/" + hook
		w.send(t, request{method: "PATCH", path: at, key: other, body: `{"filter":{"execution_id":"` + own + `"}}`}).wants(t, 200)
		w.send(t, request{method: "POST", path: at + "/replay", key: other, body: `{"after":"start"}`}).wants(t, 200)
		var shown reply
		eventually(t, "the tenant's own event is taken", func() bool {
			shown = w.send(t, request{method: "GET", path: at + "/deliveries", key: other}).wants(t, 200)
			return strings.Contains(string(shown.body), "execution.submitted")
		})
		if all := strings.Count(string(shown.body), `"kind"`); all != strings.Count(string(shown.body), `"kind":"execution.submitted"`) || all > 2 { // once by the replay
			t.Errorf("%s", shown.body)
		}
	})
}
