package server_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU200_requests_are_measured_by_route_and_never_by_id(t *testing.T) {
	t.Parallel()
	w := serveStore(t, sqliteStore(t), server.Config{Open: true, Version: "1.2.3", Commit: "abc"})
	id := w.submitted(t)
	w.get(t, "/v1/executions/"+id).wants(t, 200)
	w.get(t, "/v1/executions/"+id).wants(t, 200)
	w.get(t, "/nowhere").wants(t, 404)
	w.send(t, request{method: "BREW", path: "/nowhere"}).wants(t, 404)
	w.post(t, "/v1/executions", `{"kind":"job","lan":1}`).wants(t, 400)
	text := string(w.get(t, "/metrics").wants(t, 200).body)
	for _, sample := range []string{
		`ff_http_requests_total{code="201",method="POST",route="/v1/executions"} 1`,
		`ff_http_requests_total{code="400",method="POST",route="/v1/executions"} 1`,
		`ff_http_requests_total{code="200",method="GET",route="/v1/executions/{id}"} 2`,
		`ff_http_requests_total{code="404",method="GET",route="_other"} 1`,
		`ff_http_requests_total{code="404",method="_other",route="_other"} 1`,
		`ff_http_request_seconds_count{method="GET",route="/v1/executions/{id}"} 2`,
		`ff_http_rejected_total{reason="size"} 0`,
		`ff_build_info{commit="abc",go="go`,
		`store="sqlite",version="1.2.3"} 1`,
		"go_goroutines ", "process_open_fds ",
		`ff_submitted_total{lane="default",namespace="default"} 1`, `ff_store_queries_total{statement="insert execution"} 1`,
	} {
		if !strings.Contains(text, sample) {
			t.Errorf("no %s", sample)
		}
	}
	if strings.Contains(text, id[strings.LastIndex(id, ":")+1:]) {
		t.Error("an id is a label")
	}
}

func TestU115_metrics_are_for_readers_unless_they_are_open(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{MetricsOpen: true})
	w.get(t, "/metrics").wants(t, 200)
	closed := keyedWorld(t, server.Config{})
	closed.get(t, "/metrics").refuses(t, 401, "missing_credentials")
	closed.send(t, request{method: "GET", path: "/metrics", key: closed.key(t, "default", "submit")}).refuses(t, 403, "role_required")
	closed.send(t, request{method: "GET", path: "/metrics", key: closed.key(t, "default", "read")}).wants(t, 200)
}

func TestU115_I14_a_key_of_one_namespace_sees_the_metrics_of_that_namespace_alone(t *testing.T) {
	t.Parallel()
	onStores(t, server.Config{}, func(t *testing.T, w *world) {
		for _, namespace := range []string{"a", "b"} {
			key := w.key(t, namespace, "submit", "operate", "read")
			send := func(path, body string) {
				w.send(t, request{method: "POST", path: path, body: strings.ReplaceAll(body, "OWN", namespace+"-own"), key: key}).wants(t, 201)
			}
			send("/v1/budgets", `{"name":"OWN-budget","dimensions":{"tokens":{"hard":100}}}`)
			send("/v1/executions", `{"kind":"OWN-kind","lane":"OWN-lane"}`)
		}
		page := func(namespaces string) string {
			return string(w.send(t, request{method: "GET", path: "/metrics", key: w.key(t, namespaces, "read")}).wants(t, 200).body)
		}
		of := page("b")
		for _, sample := range []string{
			`ff_executions{lane="b-own-lane",status="ready"} 1`, `ff_oldest_ready_seconds{lane="b-own-lane"}`, `ff_budget_ratio{budget="b-own-budget",dimension="tokens"} 0`,
		} {
			if !strings.Contains(of, sample) {
				t.Errorf("there is no %s in\n%s", sample, of)
			}
		}
		for line := range strings.Lines(of) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(line, `"b-own-`) {
				t.Errorf("%q is not of the namespace", line)
			}
		}
		for namespaces, shown := range map[string]bool{"*": true, "a,b": true, "a": true, "c": false} {
			if strings.Contains(page(namespaces), "a-own-lane") != shown {
				t.Errorf("%s", namespaces)
			}
		}
	})
}

func TestU114_what_is_wrong_is_told_only_to_those_who_may_read(t *testing.T) {
	t.Parallel()
	w := keyedWorld(t, server.Config{})
	w.server.Drain()
	if anonymous := w.get(t, "/readyz").wants(t, 503); strings.Contains(string(anonymous.body), "detail") {
		t.Errorf("%s", anonymous.body)
	}
	reader := w.send(t, request{method: "GET", path: "/readyz", key: w.key(t, "default", "read")}).wants(t, 503)
	if reader.text(t, "checks.stopping.detail") == "" {
		t.Errorf("%s", reader.body)
	}
}
