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
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

// scribe is a tracer that writes down everything that spans are told.
type scribe struct{ book *logBook }

func (s scribe) Start(ctx context.Context, start api.SpanStart) (context.Context, api.Span) {
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

// confidant is a server that gets secrets, with everything that it and its clients say of them.
type confidant struct {
	url, key         string
	remote           *flowfabric.Client
	logs, spans, met *logBook
	problems         logBook
}

func confide(t *testing.T, address string) *confidant {
	t.Helper()
	c := &confidant{logs: &logBook{}, spans: &logBook{}, met: &logBook{}}
	tracer, logger := scribe{c.spans}, c.logs.logger(slog.LevelDebug)
	client := must[*flowfabric.Client](t)(embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), address,
		embedded.Config{
			EngineConfig: flowfabric.EngineConfig{
				Logger:        logger,
				Tracer:        tracer,
				MasterKey:     confidentialMaster,
				SigningKid:    "first",
				SigningSecret: confidentialSecret,
			},
		}))
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	key := must[*api.NewAPIKey](t)(client.Admin().APIKeys().Create(t.Context(), api.APIKeySettings{
		Name: "ci", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"*"},
	}))
	s := must[*server.Server](t)(server.New(backend(client), server.Config{Logger: logger, Tracer: tracer}))
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
		fmt.Fprintf(&c.problems, "%s: %s\n", method, text)
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

// waits lets work wait for a callback and for a person, and returns the tokens that were handed out for that.
func (c *confidant) waits(t *testing.T) (tokens []string) {
	t.Helper()
	addresses, links := make(chan flowfabric.Waitpoint, 1), make(chan []flowfabric.ApprovalLink, 1)
	w := &world{Client: c.remote}
	w.work(t, flowfabric.WorkerConfig{Logger: c.logs.logger(slog.LevelDebug)}, func(worker *flowfabric.Worker) {
		flowfabric.Handle(worker, wait, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
			_, err := flowfabric.AwaitSignal[string](ctx, task, "called", flowfabric.WaitOptions{Notify: func(_ context.Context, at flowfabric.Waitpoint) error {
				task.Logger().Info("asked", "at", at, "text", fmt.Sprintf("%+v", at))
				addresses <- at
				return nil
			}})
			if err != nil {
				return nil, err
			}
			_, err = task.Ask(ctx, flowfabric.Approval{Key: "asked", Approvers: []string{"ann"}, Notify: func(_ context.Context, made []flowfabric.ApprovalLink) error {
				task.Logger().Info("asked", "links", made, "text", fmt.Sprint(made))
				links <- made
				return nil
			}})
			return []string{"done"}, err
		})
	})
	run := must[*flowfabric.Run[[]string]](t)(wait.Submit(inTime(t), c.remote, flowfabric.None{}))
	at := receive(t, addresses)
	w.awaits(t, run.ID(), "called")
	digest := func(token flowfabric.Token) string { return token.Reveal()[strings.Index(token.Reveal(), ":")+1:] }
	wrong := flowfabric.TokenOf("first:" + strings.Repeat("bada55", 11)[:64])
	if _, err := c.remote.Signal(inTime(t), flowfabric.Signal{WaitpointID: at.ID, Token: wrong, Name: "x"}); flowfabric.CodeOf(err) != "invalid_token" {
		t.Errorf("a wrong token: %v", err)
	}
	c.asks(t, "POST", at.CallbackURL[len(c.url):]+"x", "hidden-callback", c.key) // a byte too many
	c.asks(t, "POST", at.CallbackURL[len(c.url):], "hidden-callback", c.key)
	link := receive(t, links)[0]
	w.awaits(t, run.ID(), "asked")
	c.asks(t, "GET", link.URL[len(c.url):]+"x", "", c.key)
	c.asks(t, "GET", link.URL[len(c.url):], "", c.key)
	must[api.LinkOutcome](t)(c.remote.Waitpoints().Decide(inTime(t), link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "approve"}))
	must[[]string](t)(run.Result(inTime(t)))
	return []string{digest(at.Token)[16:32], digest(tokenOf(link.URL))[16:32], digest(wrong)[16:32]} // the first sixteen are no secret (W28)
}

// events is the log of events from its start, without the message of the failure, which it tells (E28). Those of no namespace are searched where
// they are stored (WI6).
func (c *confidant) events(t *testing.T) string {
	t.Helper()
	status, text := c.asks(t, "GET", "/v1/events?after=start&limit=1000", "", c.key)
	if status != http.StatusOK || !strings.Contains(text, `"at_end":true`) {
		t.Fatalf("the events: %d %s", status, text)
	}
	return strings.ReplaceAll(text, "hidden-failure", "")
}

// What webhooks send and show is checked in internal/server and internal/engine.
func TestU130_EI12_secrets_and_payloads_are_in_no_event_log_metric_trace_problem_or_setting(t *testing.T) {
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
			tokens := c.waits(t)
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
			for _, path := range []string{"/metrics", "/v1/admin/settings", "/v1/admin/doctor", "/v1/info", "/v1/api-keys", "/v1/keys?include_retired=true", "/v1/audit", "/v1/whoami", "/readyz"} {
				if status, text := c.asks(t, "GET", path, "", c.key); status == http.StatusOK {
					fmt.Fprintln(c.met, text)
				} else {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
			events := c.events(t)
			for what, text := range map[string]string{"an event": events, "a log": strings.ReplaceAll(c.logs.String(), `"error":"hidden-failure"`, ""), "a span": c.spans.String(), "a problem": c.problems.String(), "metrics or settings": c.met.String()} {
				for _, hidden := range append([]string{"hidden-", c.key, c.key[len(c.key)-43:], confidentialMaster[:8], confidentialSecret[:8], confidentialNext[:8]}, tokens...) {
					if at := strings.Index(text, hidden); at >= 0 {
						t.Errorf("%s shows %q: …%s…", what, hidden, text[max(0, at-200):min(len(text), at+100)])
					}
				}
			}
			for what, text := range map[string]string{
				"handler": c.spans.String(), "ff_http_requests_total": c.met.String(), "FF_MASTER_KEY": c.met.String(), `"kid":"next"`: c.met.String(), `"msg":"request"`: c.logs.String(), `"msg":"asked"`: c.logs.String(),
				"approval_link.decided": events, "signal.accepted": events, "execution.completed": events,
			} {
				if !strings.Contains(text, what) {
					t.Errorf("nothing is shown of %s", what)
				}
			}
		})
	}
}
