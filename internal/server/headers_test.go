package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// A proxy may judge by one of two headers, and this server by the other.
func TestU119_U121_a_header_that_gives_power_is_sent_once(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	reader := w.key(t, "default", "read")
	for _, name := range []string{
		"Authorization", "FlowFabric-Namespace", "FlowFabric-Token", "FlowFabric-Lease", "Idempotency-Key", "If-Match", "Origin", "Sec-Fetch-Site",
	} {
		for _, path := range []string{"/v1/lanes", "/healthz", "/approve/x/y"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Authorization", "Bearer "+reader)
			r.Header[http.CanonicalHeaderKey(name)] = []string{r.Header.Get(name), "Bearer " + reader}
			answer := httptest.NewRecorder()
			w.server.Handler().ServeHTTP(answer, r)
			got := reply{answer.Code, answer.Result().Header, answer.Body.Bytes()}
			if got.refuses(t, 400, "invalid_argument").text(t, "field") != "header."+name {
				t.Errorf("%s: %s", name, got.body)
			}
		}
	}
}

func TestU126_browsers_are_told_to_keep_to_tls_and_to_keep_others_out(t *testing.T) {
	t.Parallel()
	const strict, policy = "Strict-Transport-Security", "Cross-Origin-Resource-Policy"
	for _, secure := range []bool{false, true} {
		w := keyedWorld(t, server.Config{TLS: secure})
		for host, named := range map[string]bool{"ff.example.com": true, "ff.example.com:7433": true, "localhost:7433": false, "127.0.0.1:7433": false, "[::1]:7433": false} {
			for _, path := range []string{"/healthz", "/v1/lanes", "/nowhere", "/approve/x/y"} {
				answer := w.ask(t, request{method: "GET", path: path, header: map[string]string{"Host": host}})
				if got := answer.header.Get(strict) != ""; got != (secure && named) {
					t.Errorf("TLS %v, %s%s: %s is %q", secure, host, path, strict, answer.header.Get(strict))
				}
				if got := answer.header.Get(policy); got != "same-origin" {
					t.Errorf("%s: %s is %q", path, policy, got)
				}
			}
		}
	}
}
