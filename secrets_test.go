package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// scribe is a tracer that writes down everything that spans are told.
type scribe struct{ book *logBook }

func (s scribe) Start(ctx context.Context, start flowfabric.SpanStart) (context.Context, flowfabric.Span) {
	fmt.Fprintf(s.book, "%s %v\n", start.Name, start.Attributes)
	return ctx, s
}

func (s scribe) Current(context.Context) flowfabric.TraceContext { return flowfabric.TraceContext{} }

func (s scribe) Remote(ctx context.Context, _ flowfabric.TraceContext) context.Context { return ctx }

func (s scribe) Set(attributes ...slog.Attr) { fmt.Fprintln(s.book, attributes) }

func (s scribe) End(code string) { fmt.Fprintln(s.book, "end", code) }

// What a server is set up with and must not tell.
const (
	confidentialMaster = "c0ffee0000000000000000000000000000000000000000000000000000000001"
	confidentialSecret = "decade0000000000000000000000000000000000000000000000000000000002"
	confidentialNext   = "facade0000000000000000000000000000000000000000000000000000000003"
)

// confidant is a server that is told secrets, with everything that it and its clients say of them.
type confidant struct {
	url, key         string
	remote           flowfabric.Client
	logs, spans, met *logBook
	problems         logBook
}

func confide(t *testing.T, address string) *confidant {
	t.Helper()
	c := &confidant{logs: &logBook{}, spans: &logBook{}, met: &logBook{}}
	tracer, logger := scribe{c.spans}, c.logs.logger(slog.LevelDebug)
	client := must[flowfabric.Client](t)(flowfabric.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address,
		flowfabric.OpenConfig{
			Logger: logger, Tracer: tracer, MasterKey: confidentialMaster, SigningKid: "first", SigningSecret: confidentialSecret,
		}))
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	key := must[*flowfabric.NewAPIKey](t)(client.Admin().APIKeys().Create(t.Context(), flowfabric.APIKeySettings{
		Name: "ci", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"*"},
	}))
	s := must[*server.Server](t)(server.New(client, server.Config{Logger: logger, Tracer: tracer}))
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	c.url, c.key = listener.URL, key.Secret
	c.remote = connect(t, c.url, flowfabric.ConnectConfig{APIKey: c.key, Namespace: "default", Tracer: tracer})
	return c
}

// asks sends a request and returns the answer; what is refused is kept.
func (c *confidant) asks(t *testing.T, method, path, body, key string) (int, string) {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(inTime(t), method, c.url+path, strings.NewReader(body)))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("FlowFabric-Namespace", "default")
	r.Header.Set("Content-Type", "application/json")
	answer := must[*http.Response](t)(http.DefaultClient.Do(r))
	defer answer.Body.Close()
	text := must[[]byte](t)(io.ReadAll(answer.Body))
	if answer.StatusCode >= 400 {
		fmt.Fprintf(&c.problems, "%s %s: %s\n", method, path, text)
	}
	return answer.StatusCode, string(text)
}

// runs lets a worker do what fails, under steps that remember something.
func (c *confidant) runs(t *testing.T) {
	t.Helper()
	const tell flowfabric.Kind[string, string] = "tell"
	_, stop := (&world{Client: c.remote}).work(t, flowfabric.WorkerConfig{Logger: c.logs.logger(slog.LevelDebug)}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, tell, func(ctx context.Context, task *flowfabric.Task, in string) (string, error) {
			if _, err := flowfabric.Step(ctx, task, "s", func(context.Context) (string, error) { return "hidden-step", nil }); err != nil {
				return "", err
			}
			if in == "hidden-good" {
				return "hidden-result", nil
			}
			return "", flowfabric.Permanent(errors.New("hidden-failure"))
		})
	})
	defer stop()
	for _, in := range []string{"hidden-good", "hidden-bad"} {
		run := must[*flowfabric.Run[string]](t)(tell.Submit(inTime(t), c.remote, in))
		if _, err := run.Result(inTime(t)); (err == nil) != (in == "hidden-good") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestU130_secrets_and_payloads_are_in_no_log_metric_trace_problem_or_setting(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			if name == "postgres" { // the store's password is a secret too
				separator := "?"
				if strings.Contains(url, "?") {
					separator = "&"
				}
				url += separator + "password=hidden-password"
			}
			c := confide(t, url)
			c.runs(t)
			for _, r := range []struct{ method, path, body, key string }{
				{"POST", "/v1/executions", `{"kind":"k","idempotency_key":"a","input":"hidden-one"}`, c.key},
				{"POST", "/v1/executions", `{"kind":"k","idempotency_key":"a","input":"hidden-other"}`, c.key},
				{"POST", "/v1/executions", `{"kind":"k","input":{"a":"hidden-input",}}`, c.key},
				{"POST", "/v1/executions", `{"kind":"k","input_bytes":"hidden-bytes!"}`, c.key},
				{"POST", "/v1/executions", `{"kind":"k","input":"hidden-a","input_text":"hidden-b"}`, c.key},
				{"POST", "/v1/executions", `{"kind":"k","input":"hidden-a","imput":"hidden-b"}`, c.key},
				{"POST", "/v1/executions", `{"kind":"","input":"hidden-a"}`, c.key},
				{"POST", "/v1/executions/0198f0a0-0000-7000-8000-000000000000/complete", `{"lease":"a.1.b","result":"hidden-result"}`, c.key},
				{"GET", "/v1/lanes", "", c.key[:len(c.key)-8] + "hidden-k"},
				{"GET", "/v1/lanes", "", "hidden-key"},
				{"POST", "/v1/keys/rotate", `{"kid":"next","secret_hex":"` + confidentialNext + `"}`, c.key},
				{"POST", "/v1/keys/rotate", `{"kid":"next","secret_hex":"` + confidentialSecret + `"}`, c.key},
				{"POST", "/v1/keys/rotate", `{"kid":"` + confidentialNext + `0","grace_ms":0}`, c.key},
				{"POST", "/v1/keys/seed", `{"kid":"other","secret_hex":"` + confidentialSecret + `"}`, c.key},
				{"POST", "/v1/keys/seed", `{"kid":"other","secret_hex":"hidden-` + confidentialSecret + `"}`, c.key},
				{"PATCH", "/v1/api-keys/" + strings.Split(c.key, "_")[1], `{"roles":["hidden"]}`, c.key},
			} {
				c.asks(t, r.method, r.path, r.body, r.key)
			}
			if n := strings.Count(c.problems.String(), `"code":`); n < 13 {
				t.Errorf("only %d requests were refused:\n%s", n, &c.problems)
			}
			for _, path := range []string{"/metrics", "/v1/admin/settings", "/v1/admin/doctor", "/v1/info", "/v1/api-keys", "/v1/keys?include_retired=true", "/v1/events?limit=1000", "/v1/audit", "/v1/whoami", "/readyz"} {
				if status, text := c.asks(t, "GET", path, "", c.key); status == http.StatusOK {
					fmt.Fprintln(c.met, text)
				} else {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
			for what, text := range map[string]string{"a log": c.logs.String(), "a span": c.spans.String(), "a problem": c.problems.String(), "metrics or settings": c.met.String()} {
				for _, hidden := range []string{"hidden-", c.key, c.key[len(c.key)-43:], confidentialMaster[:8], confidentialSecret[:8], confidentialNext[:8]} {
					if at := strings.Index(text, hidden); at >= 0 {
						t.Errorf("%s shows %q: …%s…", what, hidden, text[max(0, at-200):min(len(text), at+100)])
					}
				}
			}
			for what, text := range map[string]string{"handler": c.spans.String(), "ff_http_requests_total": c.met.String(), "FF_MASTER_KEY": c.met.String(), `"kid":"next"`: c.met.String(), `"msg":"request"`: c.logs.String()} {
				if !strings.Contains(text, what) {
					t.Errorf("nothing is told of %s", what)
				}
			}
		})
	}
}
