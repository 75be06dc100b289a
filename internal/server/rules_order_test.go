package server_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

// Each request has the fault of its row and all those below it: the first decides.
func TestU24_checks_come_one_after_the_other(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	w.key(t, "default", "admin")
	spent := w.limitedKey(t, 1, 0) // read and submit in default, one request a second
	eventually(t, "the key has used up its rate", func() bool {
		return w.send(t, request{method: "GET", path: "/v1/whoami", key: spent}).status == 429
	})
	submitter := w.key(t, "default", "submit")
	const unreadable = `{"kimd":`
	elsewhere := map[string]string{"FlowFabric-Namespace": "other"}
	for _, c := range []struct {
		what   string
		r      request
		status int
		code   string
	}{
		{"the head", request{method: "POST", path: "/v1/nowhere", key: "wrong", body: unreadable, header: map[string]string{"X-Large": strings.Repeat("x", 33<<10)}}, 413, "payload_too_large"},
		{"the route", request{method: "POST", path: "/v1/nowhere", key: "wrong", body: unreadable, header: elsewhere}, 404, "route_not_found"},
		{"the method", request{method: "PATCH", path: "/v1/executions", key: "wrong", body: unreadable, header: elsewhere}, 405, "method_not_allowed"},
		{"the credential", request{method: "POST", path: "/v1/bulk", key: "wrong", body: unreadable, header: elsewhere}, 401, "invalid_credentials"},
		{"the role", request{method: "POST", path: "/v1/bulk", key: spent, body: unreadable, header: elsewhere}, 403, "role_required"},
		{"the namespace", request{method: "POST", path: "/v1/executions", key: spent, body: unreadable, header: elsewhere}, 403, "namespace_forbidden"},
		{"the rate", request{method: "POST", path: "/v1/executions", key: spent, body: unreadable}, 429, "rate_limited"},
		{"the shape", request{method: "POST", path: "/v1/executions", key: submitter, body: `{"kind":"","kimd":1}`}, 400, "unknown_field"},
		{"the rules", request{method: "POST", path: "/v1/executions", key: submitter, body: `{"kind":""}`}, 400, "invalid_argument"},
	} {
		if c.code == "rate_limited" { // it may have recovered since
			eventually(t, "the key has used up its rate", func() bool {
				answer := w.send(t, c.r)
				return answer.status == c.status && answer.text(t, "code") == c.code
			})
			continue
		}
		if answer := w.send(t, c.r); answer.status != c.status || answer.text(t, "code") != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.what, answer.status, answer.body, c.status, c.code)
		}
	}
}

func TestU24_every_token_that_is_none_answers_alike(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	reader := w.key(t, "default", "read")
	id := strings.Split(reader, "_")[1]
	answer := func(key string) string {
		r := w.send(t, request{method: "GET", path: "/v1/lanes", key: key, header: map[string]string{"X-Request-Id": "same"}}).refuses(t, 401, "invalid_credentials")
		return string(r.body)
	}
	first := answer("ffk_" + id + "_" + strings.Repeat("A", 43)) // a key that exists, another secret
	for _, other := range []string{"ffk_aaaaaaaaaaaa_" + strings.Repeat("A", 43), "ffk_" + id, "x", reader + "x", strings.ToUpper(reader)} {
		if got := answer(other); got != first {
			t.Errorf("%s\nand\n%s", got, first)
		}
	}
}

func TestU12_the_id_of_a_request_stands_in_audit_rows_and_logs(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	named := map[string]string{"X-Request-Id": "from-outside-7"}
	w.send(t, request{method: "POST", path: "/v1/executions/" + bare(w.submitted(t)) + "/hold", body: `{}`, header: named}).wants(t, 200)
	if rows := w.get(t, "/v1/audit").wants(t, 200); rows.text(t, "items.0.request_id") != "from-outside-7" {
		t.Errorf("%s", rows.body)
	}
	eventually(t, "the log names the request", func() bool { return strings.Contains(w.log.String(), "from-outside-7") })
}
