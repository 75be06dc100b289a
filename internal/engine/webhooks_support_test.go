package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// receivers take what engines send, and answer as a test says.
type receivers struct {
	mu     sync.Mutex
	got    []webhook.Request
	now    map[string]int // requests under way, by URL
	most   map[string]int
	answer func(ctx context.Context, r webhook.Request) webhook.Answer
}

// taken204 is the answer of a receiver that has taken an event.
func taken204(context.Context, webhook.Request) webhook.Answer { return webhook.Answer{Status: 204} }

// answering is a receiver that always answers so.
func answering(status int) func(context.Context, webhook.Request) webhook.Answer {
	return func(context.Context, webhook.Request) webhook.Answer {
		return webhook.Answer{Status: status, Duration: 3 * time.Millisecond, Body: []byte("as told")}
	}
}

func (r *receivers) answers(f func(ctx context.Context, r webhook.Request) webhook.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receivers) send(ctx context.Context, request webhook.Request) webhook.Answer {
	r.mu.Lock()
	r.got = append(r.got, request)
	r.now[request.URL]++
	r.most[request.URL] = max(r.most[request.URL], r.now[request.URL])
	answer := r.answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now[request.URL]--
	}()
	return answer(ctx, request)
}

// requests are those that a receiver got, in the order in which they began.
func (r *receivers) requests(url string) []webhook.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.got), func(q webhook.Request) bool { return q.URL != url })
}

// mostOf is how many requests were under way at a receiver at a time.
func (r *receivers) mostOf(url string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most[url]
}

// all are the requests that all receivers got.
func (r *receivers) all() []webhook.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// kinds are the kinds of the events that a receiver got.
func (r *receivers) kinds(url string) []string {
	kinds := []string{}
	for _, q := range r.requests(url) {
		kinds = append(kinds, typeOf(q))
	}
	return kinds
}

func typeOf(q webhook.Request) string {
	var body struct{ Type string }
	_ = json.Unmarshal(q.Body, &body)
	return body.Type
}

// listening has an engine send to receivers.
func (w *world) listening(r *receivers, engines ...*engine.Engine) *receivers {
	if r == nil {
		r = &receivers{now: map[string]int{}, most: map[string]int{}, answer: taken204}
	}
	for _, e := range engines {
		e.SetUpWebhooks(engine.WebhookSetup{Send: r.send, Envelope: func(ev engine.LoggedEvent) ([]byte, error) {
			return json.Marshal(map[string]any{"id": ev.ID.String(), "cursor": ev.Cursor, "kind": ev.Kind, "execution_id": ev.ExecutionID.String()})
		}})
	}
	return r
}

// hooked is an endpoint in a namespace.
func (w *world) hooked(namespace, url string, f webhook.Filter) engine.WebhookView {
	w.t.Helper()
	secret := webhook.NewSecret([]byte(strings.Repeat("k", webhook.NewSize)))
	view, own, err := w.e.CreateWebhook(w.ctx(), operator, namespace, webhook.Settings{URL: url, Filter: f, MaxInFlight: w.inFlight}, secret, engine.AdminAction{})
	ok(w.t, err)
	if !own {
		w.t.Errorf("a new webhook has another secret than was given")
	}
	return view
}

func (w *world) hook(id base.UUID) engine.WebhookView {
	w.t.Helper()
	return must(w.e.Webhook(w.ctx(), operator, id))(w.t)
}

// delivered returns the deliveries of an endpoint in a state.
func (w *world) deliveries(id base.UUID, state string) []webhook.Delivery {
	w.t.Helper()
	list, next, err := w.e.Deliveries(w.ctx(), operator, id, state, "", nil)
	ok(w.t, err)
	if next != "" {
		w.t.Fatalf("there are more than a page")
	}
	return list
}

// settledHook waits until nothing is pending.
func (w *world) settledHook(id base.UUID, done int) {
	w.t.Helper()
	eventually(w.t, "all deliveries are finished", func() bool {
		v := w.hook(id)
		return v.Queue.Pending() == 0 && v.Queue.Done >= done && len(v.Queue.Ranges) == 0 && v.Queue.Owner == ""
	})
}

const (
	hereURL  = "https://here.example/hook"
	thereURL = "https://there.example/hook"
)

var submittedOnly = webhook.Filter{Kinds: []string{"execution.submitted"}}

// pendingOf is how many deliveries of an endpoint are not finished.
func (w *world) pendingOf(id base.UUID) int {
	w.t.Helper()
	v := w.hook(id)
	return v.Queue.Pending()
}
