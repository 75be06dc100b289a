package server_test

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU119_a_request_needs_a_valid_key(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		reader := w.key(t, "default", "read")
		missing := w.get(t, "/v1/lanes").refuses(t, 401, "missing_credentials")
		if missing.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%v", missing.header)
		}
		for _, wrong := range []string{"x", "ffk_aaaaaaaaaaaa_" + strings.Repeat("x", 43), reader[:len(reader)-4] + "AAAA"} {
			w.send(t, request{method: "GET", path: "/v1/lanes", key: wrong}).refuses(t, 401, "invalid_credentials")
		}
		w.send(t, request{method: "GET", path: "/v1/lanes", key: reader}).wants(t, 200)
		who := w.send(t, request{method: "GET", path: "/v1/whoami", key: reader}).wants(t, 200)
		if who.text(t, "principal") != "read@default" || who.text(t, "roles.0") != "read" || who.text(t, "namespaces.0") != "default" || who.field(t, "open") != false {
			t.Errorf("%s", who.body)
		}
		for _, open := range []string{"/healthz", "/readyz", "/openapi.json", "/docs", "/problems/internal"} {
			w.get(t, open).wants(t, 200)
		}
		w.get(t, "/metrics").refuses(t, 401, "missing_credentials")
	})
}

func TestU24_the_route_is_looked_for_before_the_credential_and_the_credential_before_the_body(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	reader := w.key(t, "default", "read")
	w.get(t, "/v1/nowhere").refuses(t, 404, "route_not_found")
	w.send(t, request{method: "PATCH", path: "/v1/lanes"}).refuses(t, 405, "method_not_allowed")
	w.post(t, "/v1/executions", `{`).refuses(t, 401, "missing_credentials")
	w.send(t, request{method: "POST", path: "/v1/executions", body: `{`, key: reader}).refuses(t, 403, "role_required")
	w.send(t, request{method: "GET", path: "/v1/lanes?x=1", key: reader, header: map[string]string{"FlowFabric-Namespace": "other"}}).refuses(t, 403, "namespace_forbidden")
}

func TestU120_a_revoked_key_stops_working_at_once(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		admin := w.key(t, "*", "admin")
		made := w.send(t, request{method: "POST", path: "/v1/api-keys", key: admin, body: `{"name":"r","roles":["read"],"namespaces":["default"]}`}).wants(t, 201)
		secret, id := made.text(t, "secret"), made.text(t, "key_id")
		w.send(t, request{method: "GET", path: "/v1/lanes", key: secret}).wants(t, 200)
		rotated := w.send(t, request{method: "POST", path: "/v1/api-keys/" + id + "/rotate", key: admin, body: `{"overlap_ms":0}`}).wants(t, 201)
		w.send(t, request{method: "GET", path: "/v1/lanes", key: rotated.text(t, "secret")}).wants(t, 200)
		w.send(t, request{method: "GET", path: "/v1/lanes", key: secret}).wants(t, 401)
		w.send(t, request{method: "PATCH", path: "/v1/api-keys/" + id, key: admin, body: `{"roles":["submit"]}`}).wants(t, 200)
		w.send(t, request{method: "GET", path: "/v1/lanes", key: rotated.text(t, "secret")}).refuses(t, 403, "role_required")
		w.send(t, request{method: "DELETE", path: "/v1/api-keys/" + id, key: admin}).wants(t, 204)
		w.send(t, request{method: "GET", path: "/v1/lanes", key: rotated.text(t, "secret")}).refuses(t, 401, "api_key_revoked")
		w.send(t, request{method: "PATCH", path: "/v1/api-keys/" + id, key: admin, body: `{"roles":["read"]}`}).refuses(t, 409, "key_retired") // not the caller's
		w.send(t, request{method: "POST", path: "/v1/api-keys/" + id + "/rotate", key: admin}).refuses(t, 409, "key_retired")
		if list := w.send(t, request{method: "GET", path: "/v1/api-keys", key: admin}).wants(t, 200); strings.Contains(string(list.body), secret) {
			t.Error("a list shows a secret")
		}
	})
}

func TestU120_a_waiting_call_of_a_key_ends_when_the_key_does(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{Name: "r", Roles: []string{"read"}, Namespaces: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan reply, 1)
	w.sendLater(t, request{method: "GET", path: "/v1/events?wait_ms=30000", key: made.Secret}, answered)
	eventually(t, "a call waits", func() bool { readers, _ := w.server.Waiting(); return readers == 1 })
	if err := w.Admin().APIKeys().Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	(<-answered).refuses(t, 401, "api_key_revoked")
}

// keyChanges change what a key allows, by the setting; "": the setting allows nothing. A key that expires is no longer valid.
var keyChanges = map[string]string{
	"name": `{"name":"other"}`, "roles": `{"roles":["read"]}`, "namespaces": `{"namespaces":["elsewhere"]}`, "lanes": `{"lanes":["slow"]}`,
	"expires_at": "", "max_requests_per_second": "", "max_in_flight": "", "force": "", "reason": "",
}

func TestU120_every_setting_of_a_key_is_known_to_allow_something_or_not(t *testing.T) {
	t.Parallel()
	body, _ := wire.PatchAPIKey.Request.FieldByName("Body")
	for _, field := range reflect.VisibleFields(body.Type) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, known := keyChanges[name]; name != "" && !known {
			t.Errorf("%s of a key: say whether it allows something", name)
		}
	}
}

// A call that waits was let in by what the key allowed: it ends when that is changed.
func TestU120_a_waiting_call_of_a_key_ends_when_the_key_allows_something_else(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		admin := w.key(t, "*", "admin")
		answered, ids := make(chan reply, len(keyChanges)), map[string]string{}
		for name, change := range keyChanges {
			if change == "" {
				continue
			}
			made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
				Name: name, Roles: []string{"read", "work"}, Namespaces: []string{"default"}, Lanes: []string{"fast", "slow"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = made.ID
			body := `{"worker_id":"` + name + `","worker_instance_id":"` + name + `","lanes":["fast"],"wait_ms":60000}`
			w.sendLater(t, request{method: "POST", path: "/v1/work/claim", key: made.Secret, body: body}, answered)
		}
		eventually(t, "the claims wait", func() bool { _, claims := w.server.Waiting(); return claims == len(ids) })
		for name, id := range ids {
			w.send(t, request{method: "PATCH", path: "/v1/api-keys/" + id, key: admin, body: keyChanges[name]}).wants(t, 200)
		}
		for range ids {
			(<-answered).refuses(t, 401, "api_key_revoked")
		}
	})
}

func TestU129_twenty_wrong_keys_from_one_address_are_enough(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{TrustedProxies: []string{"127.0.0.0/8", "::1/128"}}, func(t *testing.T, w *world) {
		reader := w.key(t, "default", "read")
		from := func(address, key string) reply {
			return w.send(t, request{method: "GET", path: "/v1/lanes", key: key, header: map[string]string{"X-Forwarded-For": "10.9.9.9, " + address}})
		}
		for range 20 {
			from("192.0.2.1", "wrong").refuses(t, 401, "invalid_credentials")
		}
		blocked := from("192.0.2.1", "wrong").refuses(t, 429, "rate_limited")
		if blocked.header.Get("Retry-After") != "60" || blocked.number(t, "retry_after_ms") != 60000 {
			t.Errorf("%v %s", blocked.header, blocked.body)
		}
		from("192.0.2.2", reader).wants(t, 200)
		w.send(t, request{method: "GET", path: "/v1/lanes", key: reader}).wants(t, 200)
		metrics := w.send(t, request{method: "GET", path: "/metrics", key: w.key(t, "*", "read")}).wants(t, 200)
		if !strings.Contains(string(metrics.body), `ff_auth_failures_total{reason="invalid_credentials"} 20`) {
			t.Errorf("%s", metrics.body)
		}
	})
}

func TestU129_addresses_come_from_headers_only_behind_trusted_proxies(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	reader := w.key(t, "default", "read")
	for i := range 20 {
		w.send(t, request{method: "GET", path: "/v1/lanes", key: "wrong", header: map[string]string{"X-Forwarded-For": "192.0.2." + string(rune('1'+i%9))}})
	}
	w.send(t, request{method: "GET", path: "/v1/lanes", key: "wrong"}).refuses(t, 429, "rate_limited")
	w.send(t, request{method: "GET", path: "/v1/lanes", key: reader}).wants(t, 200)
	if told := strings.Count(w.log.String(), "X-Forwarded-For is ignored"); told != 1 {
		t.Errorf("a proxy that is not trusted is reported %d times", told)
	}
}

// Behind a proxy, all callers may have one address.
func TestU129_a_good_key_gets_through_from_an_address_with_too_many_failures(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		reader := w.key(t, "default", "read")
		send := func(path, key string) reply { return w.send(t, request{method: "GET", path: path, key: key}) }
		for range 20 {
			send("/v1/lanes", "ffk_aaaaaaaaaaaa_"+strings.Repeat("x", 43)).refuses(t, 401, "invalid_credentials")
		}
		for range 3 {
			// Failures are forgotten with time, so that a slow machine may have to fail some more.
			wrong := send("/v1/lanes", reader[:len(reader)-4]+"AAAA")
			for range 200 {
				if wrong.status == 429 {
					break
				}
				wrong = send("/v1/lanes", reader[:len(reader)-4]+"AAAA")
			}
			wrong.refuses(t, 429, "rate_limited")
			send("/v1/lanes", reader).wants(t, 200)
			send("/v1/lanes", "").refuses(t, 401, "missing_credentials")
			for _, open := range []string{"/healthz", "/readyz", "/openapi.json", "/docs", "/problems/internal"} {
				for _, key := range []string{"", "wrong", reader} {
					send(open, key).wants(t, 200)
				}
			}
		}
	})
}

func TestU129_a_key_has_its_limits(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	limited := func(perSecond, inFlight int) string {
		made, err := w.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
			Name: "limited", Roles: []string{"read"}, Namespaces: []string{"default"}, MaxRequestsPerSecond: perSecond, MaxInFlight: inFlight,
		})
		if err != nil {
			t.Fatal(err)
		}
		return made.Secret
	}
	hasty := limited(1, 0)
	statuses := map[int]int{}
	for range 20 {
		statuses[w.send(t, request{method: "GET", path: "/v1/whoami", key: hasty}).status]++
	}
	if statuses[200] == 0 || statuses[429] == 0 || statuses[200]+statuses[429] != 20 {
		t.Errorf("%v", statuses)
	}
	single := limited(0, 1)
	waited := make(chan reply, 1)
	w.sendLater(t, request{method: "GET", path: "/v1/events?wait_ms=30000", key: single}, waited)
	eventually(t, "a call waits", func() bool { readers, _ := w.server.Waiting(); return readers == 1 })
	w.send(t, request{method: "GET", path: "/v1/whoami", key: single}).refuses(t, 429, "rate_limited")
	w.server.Drain()
	(<-waited).wants(t, 200)
}

func TestU121_a_key_of_several_namespaces_says_which_one_it_means(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		both := w.key(t, "acme,globex", "submit", "read")
		submit := func(namespace string) reply {
			header := map[string]string{}
			if namespace != "" {
				header["FlowFabric-Namespace"] = namespace
			}
			return w.send(t, request{method: "POST", path: "/v1/executions", body: `{"kind":"job"}`, key: both, header: header})
		}
		submit("").refuses(t, 400, "namespace_required")
		submit("umbrella").refuses(t, 403, "namespace_forbidden")
		if made := submit("acme").wants(t, 201); made.text(t, "namespace") != "acme" {
			t.Errorf("%s", made.body)
		}
		submit("globex").wants(t, 201)
		all := w.send(t, request{method: "GET", path: "/v1/executions/count", key: both}).wants(t, 200)
		one := w.send(t, request{method: "GET", path: "/v1/executions/count", key: both, header: map[string]string{"FlowFabric-Namespace": "acme"}}).wants(t, 200)
		if all.number(t, "total") != 2 || one.number(t, "total") != 1 {
			t.Errorf("%s %s", all.body, one.body)
		}
	})
}

func TestI14_what_belongs_to_another_tenant_is_as_if_it_did_not_exist(t *testing.T) {
	t.Parallel()
	keyedOnEveryStore(t, func(t *testing.T, w *world) {
		roles := []string{"read", "submit", "work", "operate", "admin"}
		acme, globex := w.key(t, "acme", roles...), w.key(t, "globex", roles...)
		made := w.send(t, request{method: "POST", path: "/v1/executions", key: acme, body: `{"kind":"acmekind","tags":{"secret":"acmetag"},"input":1}`}).wants(t, 201)
		theirs := made.text(t, "execution_id")
		const nothing = "0198f0a0-0000-7000-8000-000000000000"
		bodies := map[string]string{
			wire.RetainExecution.ID: `{"reason":"r"}`, wire.SetPriority.ID: `{"priority":1}`, wire.FailExecution.ID: `{"message":"m"}`,
			wire.ClaimResumed.ID: `{"worker_id":"w","worker_instance_id":"i"}`, wire.ReclaimExecution.ID: `{"worker_id":"w","worker_instance_id":"i"}`,
			wire.DelayExecution.ID: `{"delay_ms":1}`, wire.PatchTags.ID: `{"a":"b"}`,
		}
		lease := map[string]string{"FlowFabric-Lease": nothing + ".1." + nothing}
		underLease := []string{
			wire.RenewLease.ID, wire.ReportProgress.ID, wire.CompleteExecution.ID, wire.FailExecution.ID, wire.ReleaseExecution.ID, wire.DelayExecution.ID, wire.PutStep.ID,
		}
		for _, o := range wire.Operations() {
			if !strings.HasPrefix(o.Path, "/v1/executions/{id}") {
				continue
			}
			ask := func(id string) string {
				header := map[string]string{"X-Request-Id": "same"}
				for name, value := range lease {
					header[name] = value
				}
				if !slices.Contains(underLease, o.ID) {
					delete(header, "FlowFabric-Lease")
				}
				path := strings.NewReplacer("{id}", url.PathEscape(id), "{n}", "0", "{name}", "s").Replace(o.Path)
				answer := w.send(t, request{method: o.Method, path: path, key: globex, body: bodies[o.ID], header: header})
				return strings.ReplaceAll(string(answer.body), id, "ID")
			}
			if other, none := ask(theirs), ask(nothing); other != none {
				t.Errorf("%s: another tenant's: %s\nnothing: %s", o.ID, other, none)
			}
		}
		for _, path := range []string{
			"/v1/executions", "/v1/executions/count?by=kind", "/v1/executions/export", "/v1/events?after=start", "/v1/bulk", "/v1/audit", "/v1/api-keys",
			"/v1/lanes", "/v1/workers", "/v1/whoami", "/v1/executions?q=acme",
		} {
			if answer := w.send(t, request{method: "GET", path: path, key: globex}).wants(t, 200); strings.Contains(string(answer.body), "acme") {
				t.Errorf("%s shows the other tenant: %s", path, answer.body)
			}
		}
		if total := w.send(t, request{method: "GET", path: "/v1/executions/count", key: globex}); total.number(t, "total") != 0 {
			t.Errorf("%s", total.body)
		}
	})
}
