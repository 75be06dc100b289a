package dashboards

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	approval "github.com/flowfabric/flowfabric/examples/approval/story"
	budget "github.com/flowfabric/flowfabric/examples/budget/story"
	callback "github.com/flowfabric/flowfabric/examples/callback/story"
	hello "github.com/flowfabric/flowfabric/examples/hello/story"
	pipeline "github.com/flowfabric/flowfabric/examples/pipeline/story"
	retry "github.com/flowfabric/flowfabric/examples/retry-and-cancel/story"
	"github.com/flowfabric/flowfabric/examples/stage"
	webhooks "github.com/flowfabric/flowfabric/examples/webhooks/story"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// house is a server with a worker beside it, both scraped.
type house struct {
	*flowfabric.Client
	ctx     context.Context //nolint:containedctx // of one test
	url     string
	key     string
	scraper string // a key of all namespaces
	worker  *flowfabric.Worker
}

// must takes the value of a call that may not fail.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

var quiet = slog.New(slog.DiscardHandler)

// newHouse runs a server that asks for keys.
func newHouse(t *testing.T) *house {
	t.Helper()
	ctx, cancel := context.WithTimeout(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), 10*time.Minute)
	t.Cleanup(cancel)
	here := must[*flowfabric.Client](t)(embedded.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "app.db"), embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: quiet, Webhooks: api.WebhookTargets{AllowLoopback: true},
	}}))
	t.Cleanup(func() { _ = here.Close(context.WithoutCancel(ctx)) })
	key := must[*api.NewAPIKey](t)(here.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "teller", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{"default"},
	}))
	scraper := must[*api.NewAPIKey](t)(here.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "prometheus", Roles: []string{"read"}, Namespaces: []string{"*"},
	}))
	handler := must[http.Handler](t)(flowfabrichttp.New(here, flowfabrichttp.Config{Logger: quiet}))
	address, stop, err := stage.Serve(ctx, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	h := &house{ctx: ctx, url: address, key: key.Secret, scraper: scraper.Secret}
	h.Client = h.connect(t, nil)
	return h
}

func (h *house) connect(t *testing.T, transport http.RoundTripper) *flowfabric.Client {
	t.Helper()
	cfg := flowfabric.ConnectConfig{APIKey: h.key, Namespace: "default"}
	if transport != nil {
		cfg.HTTP, cfg.Retry.MaxRetries = &http.Client{Transport: transport}, -1
	}
	c := must[*flowfabric.Client](t)(flowfabric.Connect(h.url, cfg))
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(h.ctx)) })
	return c
}

// scrape reads the server and the worker.
func (h *house) scrape(t *testing.T) []series {
	t.Helper()
	text := h.get(t, "/metrics", h.scraper, http.StatusOK)
	if h.worker != nil {
		answer := httptest.NewRecorder()
		h.worker.Metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text += answer.Body.String()
	}
	var all []series
	label := regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		name, labels, _ := strings.Cut(line[:at], "{")
		s := series{name: name, labels: map[string]string{}}
		for _, pair := range label.FindAllStringSubmatch(labels, -1) {
			s.labels[pair[1]] = pair[2]
		}
		s.value = must[float64](t)(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64))
		all = append(all, s)
	}
	return all
}

func (h *house) get(t *testing.T, path, key string, want int) string {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil))
	r.Header.Set("Authorization", "Bearer "+key)
	answer := must[*http.Response](t)(http.DefaultClient.Do(r))
	defer func() { _ = answer.Body.Close() }()
	text := must[[]byte](t)(io.ReadAll(answer.Body))
	if answer.StatusCode != want {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	return string(text)
}

// tell lets happen what the panels show: the demo, and what it has no need of.
func (h *house) tell(t *testing.T) {
	t.Helper()
	for _, story := range []stage.Story{hello.Hello, approval.Approval, callback.Callback, budget.Budget, pipeline.Pipeline, retry.RetryAndCancel, webhooks.Webhooks} {
		s := stage.Stage{Server: h.url, Key: h.key, Out: io.Discard, Log: quiet}
		if err := stage.Play(h.ctx, story, s); err != nil {
			t.Fatal(err)
		}
	}
	h.loseLeases(t)
	h.fillLane(t)
	h.fillQuota(t)
	h.operate(t)
	h.work(t)
	h.get(t, "/v1/info", "ffk_abcdefghijkl_"+strings.Repeat("A", 43), http.StatusUnauthorized)
}

// note is work that is not done unless the story says so.
const note flowfabric.Kind[string, string] = "note"

func (h *house) submit(t *testing.T, o flowfabric.SubmitOptions) flowfabric.ID {
	t.Helper()
	return must[flowfabric.SubmitResult](t)(h.Submit(h.ctx, note.Submission("x", o))).ID
}

func (h *house) claim(t *testing.T, lane string, ttl time.Duration) *api.Claimed {
	t.Helper()
	answer := must[api.ClaimAnswer](t)(h.Work().Claim(h.ctx, api.ClaimRequest{
		WorkerID: "w", InstanceID: "w-1", Lanes: []string{lane}, Max: 2, LeaseTTL: ttl, Wait: 30 * time.Second,
	}))
	if len(answer.Tasks) != 1 {
		t.Fatalf("%d tasks in lane %s", len(answer.Tasks), lane)
	}
	return answer.Tasks[0]
}

// do sends a command under a lease, which must be refused with the code; "": accepted.
func (h *house) do(t *testing.T, claimed *api.Claimed, op api.Op, code string) {
	t.Helper()
	item := api.WorkItem{Op: op, ID: claimed.ID, Lease: claimed.Lease}
	if answers := must[[]api.WorkAnswer](t)(h.Work().Do(h.ctx, item)); flowfabric.CodeOf(answers[0].Err) != code {
		t.Fatalf("%s: %v, want %q", op, answers[0].Err, code)
	}
}

// loseLeases lets one lease run out, whose work is taken over, and takes another away.
func (h *house) loseLeases(t *testing.T) {
	t.Helper()
	h.submit(t, flowfabric.SubmitOptions{Lane: "lapse", Delay: 10 * time.Millisecond})
	lost := h.claim(t, "lapse", time.Second)
	next := h.claim(t, "lapse", time.Minute) // waits until the lease has run out
	h.do(t, lost, api.OpComplete, "stale_lease")
	h.do(t, next, api.OpRenew, "")
	h.do(t, next, api.OpComplete, "")
	revoked := h.submit(t, flowfabric.SubmitOptions{Lane: "revoke"})
	h.claim(t, "revoke", time.Minute)
	must[api.Revocation](t)(h.Operate().Revoke(h.ctx, revoked))
}

// fillLane leaves work in a lane that is full.
func (h *house) fillLane(t *testing.T) {
	t.Helper()
	must[*api.Lane](t)(h.Lanes().Put(h.ctx, "narrow", api.LaneSettings{MaxConcurrent: 1}))
	for range 2 {
		h.submit(t, flowfabric.SubmitOptions{Lane: "narrow"})
	}
	h.claim(t, "narrow", time.Minute)
}

// fillQuota leaves work that waits for a slot.
func (h *house) fillQuota(t *testing.T) {
	t.Helper()
	must[*api.Quota](t)(h.Quotas().Put(h.ctx, "one", api.QuotaSettings{ConcurrencyLimit: 1}))
	for range 2 {
		h.submit(t, flowfabric.SubmitOptions{Lane: "quota", Quotas: []api.QuotaUse{{Quota: "one"}}})
	}
	h.claim(t, "quota", time.Minute)
}

// operate cancels in bulk, deletes, and submits what is there already.
func (h *house) operate(t *testing.T) {
	t.Helper()
	id := h.submit(t, flowfabric.SubmitOptions{Lane: "bulk"})
	must[flowfabric.SubmitResult](t)(h.Submit(h.ctx, note.Submission("x", flowfabric.SubmitOptions{Lane: "bulk", ID: id})))
	job := must[*api.BulkJob](t)(h.Operate().Bulk(h.ctx, ops.BulkRequest{Action: api.BulkCancel, IDs: []flowfabric.ID{id}}))
	must[*api.BulkJob](t)(h.Operate().WaitBulk(h.ctx, job.ID))
	if err := h.Operate().Delete(h.ctx, id); err != nil {
		t.Fatal(err)
	}
}

// shaky is a network that loses the first requests.
type shaky struct{ left atomic.Int64 }

// RoundTrip sends a request, or loses it.
func (s *shaky) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.left.Add(-1) >= 0 {
		return nil, errors.New("the network is down")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// work runs a worker that cannot reach the server at first, and loses a lease.
func (h *house) work(t *testing.T) {
	t.Helper()
	network := &shaky{}
	network.left.Store(2)
	h.worker = flowfabric.NewWorker(h.connect(t, network), flowfabric.WorkerConfig{ID: "h", Lanes: []string{"worker"}, Logger: quiet, DrainTimeout: time.Millisecond})
	entered := make(chan struct{}, 1)
	flowfabric.Handle(h.worker, note, func(ctx context.Context, _ *flowfabric.Task, _ string) (string, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	ctx, cancel := context.WithCancel(h.ctx)
	done := make(chan error, 1)
	go func() { done <- h.worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	id := h.submit(t, flowfabric.SubmitOptions{Lane: "worker"})
	select {
	case <-entered:
	case <-h.ctx.Done():
		t.Fatal("the worker got no work")
	}
	must[*flowfabric.Execution](t)(h.Cancel(h.ctx, id, "enough"))
}
