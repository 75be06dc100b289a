package server_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// adminSettings are those of an admin key of all namespaces.
var adminSettings = api.APIKeySettings{Name: "me", Roles: []string{"admin"}, Namespaces: []string{"*"}}

func TestU123_open_mode_ends_for_good_with_the_first_admin_key(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		w.post(t, "/v1/api-keys", `{"name":"shop","roles":["submit"],"namespaces":["default"]}`).wants(t, 201)
		if who := w.get(t, "/v1/whoami").wants(t, 200); who.field(t, "open") != true {
			t.Errorf("%s", who.body)
		}
		made := w.post(t, "/v1/api-keys", `{"name":"me","roles":["admin"],"namespaces":["*"]}`).wants(t, 201)
		w.get(t, "/v1/whoami").refuses(t, 401, "missing_credentials") // at once where it was made
		if told := strings.Count(w.log.String(), "from now on every caller needs an API key"); told != 1 {
			t.Errorf("told %d times: %s", told, w.log)
		}
		admin := made.text(t, "secret")
		if who := w.send(t, request{method: "GET", path: "/v1/whoami", key: admin}).wants(t, 200); who.field(t, "open") != false {
			t.Errorf("%s", who.body)
		}
		if w.server.IsOpen() {
			t.Error("the server says that it is open")
		}
		w.get(t, "/healthz").wants(t, 200)
		w.send(t, request{method: "DELETE", path: "/v1/api-keys/" + made.text(t, "key_id"), key: admin}).refuses(t, 409, "last_admin_key")
		w.send(t, request{method: "PATCH", path: "/v1/api-keys/" + made.text(t, "key_id"), key: admin, body: `{"roles":["read"]}`}).refuses(t, 409, "last_admin_key")
		w.send(t, request{method: "DELETE", path: "/v1/api-keys/" + made.text(t, "key_id") + "?force=true", key: admin}).wants(t, 204)
		w.get(t, "/v1/whoami").refuses(t, 401, "missing_credentials") // and a request without a key is refused again
	})
}

func TestU123_open_mode_ends_when_another_process_makes_the_first_admin_key(t *testing.T) {
	t.Parallel()
	address := cluster.Database(t)
	w := serveStore(t, address, server.Config{Open: true})
	answered := make(chan reply, 1)
	w.sendLater(t, request{method: "GET", path: "/v1/events?wait_ms=60000"}, answered)
	eventually(t, "a call waits", func() bool { readers, _ := w.server.Waiting(); return readers == 1 })
	other, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address, embedded.Config{EngineConfig: flowfabric.EngineConfig{NoEngine: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Admin().APIKeys().Create(t.Context(), adminSettings); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "callers need keys", func() bool { return w.get(t, "/v1/whoami").status == 401 })
	(<-answered).refuses(t, 401, "missing_credentials") // who waited waits no more
}

func TestU123_a_server_that_has_an_admin_key_is_never_open(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		if _, err := w.Admin().APIKeys().Create(t.Context(), adminSettings); err != nil {
			t.Fatal(err)
		}
		w.get(t, "/v1/whoami").refuses(t, 401, "missing_credentials")
	})
}

// A proxy on the same machine makes callers from anywhere look as if they were on it.
func TestU123_an_open_server_answers_nothing_that_a_proxy_passes_on(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]server.Config{
		"loopback": {Open: true, PublicURL: "https://ff.example.com"}, "exposed": {Open: true, Exposed: true, PublicURL: "https://ff.example.com"},
		"trusted proxy": {Open: true, TrustedProxies: []string{"127.0.0.0/8"}},
	} {
		w := serveStore(t, sqliteStore(t), cfg)
		for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Anything"} {
			refusal := w.send(t, request{method: "GET", path: "/v1/whoami", header: map[string]string{header: "203.0.113.7"}}).refuses(t, 403, "origin_forbidden")
			if refusal.text(t, "field") != "header."+header {
				t.Errorf("%s: %s", name, refusal.body)
			}
		}
		if cfg.PublicURL != "" {
			w.send(t, request{method: "GET", path: "/v1/whoami", header: map[string]string{"Host": "ff.example.com"}}).refuses(t, 403, "origin_forbidden")
		}
		w.get(t, "/v1/whoami").wants(t, 200)
	}
}

// What has a token needs nothing else: callbacks and links come by the public URL, through a proxy.
func TestU123_U127_tokens_count_at_the_public_url_of_an_open_server(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, PublicURL: "https://ff.example.com"})
	from := map[string]string{"Host": "ff.example.com", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
	w.send(t, request{method: "POST", path: "/v1/callbacks/0198f0a0-0000-7000-8000-000000000000/x", header: from, body: `{}`}).refuses(t, 401, "invalid_token")
	from["Host"] = "evil.example.com"
	w.send(t, request{method: "POST", path: "/v1/callbacks/0198f0a0-0000-7000-8000-000000000000/x", header: from, body: `{}`}).refuses(t, 403, "origin_forbidden")
}

func TestC131_an_open_server_refuses_what_a_browser_sends_for_pages_of_other_origins(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, CORSOrigins: []string{"https://app.example.com"}})
	send := func(path, site, origin string) reply {
		header := map[string]string{"Sec-Fetch-Site": site}
		if origin != "" {
			header["Origin"] = origin
		}
		return w.send(t, request{method: "GET", path: path, header: header})
	}
	for _, site := range []string{"cross-site", "same-site", "nonsense"} {
		send("/v1/events?wait_ms=1", site, "").refuses(t, 403, "origin_forbidden")
		send("/v1/lanes", site, "").refuses(t, 403, "origin_forbidden")
		send("/v1/lanes", site, "https://app.example.com").wants(t, 200)
		send("/docs", site, "").wants(t, 200) // a link to it does no harm
	}
	for _, site := range []string{"same-origin", "none"} {
		send("/v1/lanes", site, "").wants(t, 200)
	}
}
