package flowfabric_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// barrier holds the first two requests of a client back, so that its next submits queue.
type barrier struct {
	mu      sync.Mutex
	came    int
	holds   chan struct{} // gets a value for each that is held
	release chan struct{}
}

func newBarrier() *barrier {
	return &barrier{holds: make(chan struct{}, 2), release: make(chan struct{})}
}

// RoundTrip sends a request.
func (g *barrier) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	g.came++
	held := g.came <= cap(g.holds)
	g.mu.Unlock()
	if held {
		g.holds <- struct{}{}
		<-g.release
	}
	return http.DefaultTransport.RoundTrip(r)
}

// gated is a client whose first two requests are held back.
func gated(t *testing.T, address string) (*barrier, *flowfabric.Client) {
	t.Helper()
	g := newBarrier()
	return g, connect(t, address, flowfabric.ConnectConfig{HTTP: &http.Client{Transport: g}})
}

// submitted is how a submit ended.
type submitted struct {
	flowfabric.SubmitResult
	err error
}

// together submits all of them in one batch. Two others, in requests of their own, come before.
func (g *barrier) together(t *testing.T, client *flowfabric.Client, contexts []context.Context, all []flowfabric.Submission) (wait func() []submitted) {
	t.Helper()
	var calls sync.WaitGroup
	for range cap(g.holds) {
		calls.Go(func() {
			if _, err := client.Submit(inTime(t), flowfabric.Submission{Kind: "first"}); err != nil {
				t.Errorf("a lone submit: %v", err)
			}
		})
		receive(t, g.holds)
	}
	results, queued := make([]submitted, len(all)), flowfabric.QueuedSubmits(client)
	for i := range all {
		calls.Go(func() { results[i].SubmitResult, results[i].err = client.Submit(contexts[i], all[i]) })
		for queued() < i+1 {
			runtime.Gosched()
		}
	}
	return func() []submitted {
		calls.Wait()
		return results
	}
}

// many are so many submissions of one kind, and a context for each.
func many(t *testing.T, n int) ([]context.Context, []flowfabric.Submission) {
	t.Helper()
	contexts, all := make([]context.Context, n), make([]flowfabric.Submission, n)
	for i := range all {
		contexts[i], all[i] = inTime(t), flowfabric.Submission{Kind: fmt.Sprintf("kind-%d", i)}
	}
	return contexts, all
}

// office is a server of submits that are never done. It remembers the requests.
type office struct {
	mu    sync.Mutex
	came  int
	bulks []*http.Request // those for many, which may overtake the lone ones before them
	// answer may take the n-th bulk request over: true means that it did.
	answer  func(n int, w http.ResponseWriter) bool
	hangsUp bool // on bulk requests
}

func (o *office) open(t *testing.T) string {
	t.Helper()
	listener := httptest.NewServer(o)
	t.Cleanup(listener.Close)
	return listener.URL
}

// ServeHTTP answers a submit with the id that it brought, and its kind as its state.
func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		submission
		Items []submission `json:"items"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(err)
	}
	o.mu.Lock()
	o.came++
	taken := false
	if len(body.Items) > 0 {
		o.bulks = append(o.bulks, r)
		taken = o.answer != nil && o.answer(len(o.bulks), w)
	}
	o.mu.Unlock()
	switch {
	case taken:
	case o.hangsUp && len(body.Items) > 0:
		hangUp(w, r)
	case len(body.Items) == 0:
		says(http.StatusCreated, body.answer("created"))(w, r)
	default:
		items := make([]string, len(body.Items))
		for i, item := range body.Items {
			items[i] = fmt.Sprintf(`{"index":%d,"ok":true,%s`, i, item.answer("duplicate")[1:])
		}
		says(http.StatusOK, `{"items":[`+strings.Join(items, ",")+`],"failed":0}`)(w, r)
	}
}

type submission struct {
	ID   string `json:"execution_id"`
	Kind string `json:"kind"`
}

func (s submission) answer(outcome string) string {
	return fmt.Sprintf(`{"outcome":%q,"execution_id":%q,"public_state":%q}`, outcome, s.ID, s.Kind)
}

func TestU22_submits_that_queue_travel_together_and_each_gets_its_own_answer(t *testing.T) {
	t.Parallel()
	var o office
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 200)
	wait := g.together(t, client, contexts, all)
	close(g.release)
	for i, got := range wait() {
		if got.err != nil || got.PublicState != all[i].Kind {
			t.Errorf("submit %d was answered with %+v", i, got)
		}
	}
	if o.came != 3 || len(o.bulks) != 1 {
		t.Errorf("%d requests, %d of them for many: want two lone ones and one for all that queued", o.came, len(o.bulks))
	}
}

func TestU15_the_lost_answer_of_a_batch_makes_no_duplicates_and_no_errors(t *testing.T) {
	t.Parallel()
	o := office{answer: func(n int, w http.ResponseWriter) bool {
		if n == 1 {
			w.Header().Set("Content-Length", "7")
			w.WriteHeader(http.StatusOK) // and no body: the connection is cut
		}
		return n == 1
	}}
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 20)
	all[7].ID = "018f4e5e-0000-7000-8000-000000000007"
	wait := g.together(t, client, contexts, all)
	close(g.release)
	for i, got := range wait() {
		if got.err != nil || got.Duplicate != (i == 7) {
			t.Errorf("submit %d was answered with %+v: only an id of the caller's own can be a duplicate", i, got)
		}
	}
	if len(o.bulks) != 2 || o.bulks[0].Header.Get("Idempotency-Key") != o.bulks[1].Header.Get("Idempotency-Key") {
		t.Errorf("%d requests, want two with the same key", len(o.bulks))
	}
}

func TestU15_an_item_of_unknown_outcome_is_sent_again(t *testing.T) {
	t.Parallel()
	const unknown = `{"code":"timeout","class":"unavailable","retryable":true}`
	o := office{answer: func(n int, w http.ResponseWriter) bool {
		if n == 1 {
			says(http.StatusOK, `{"items":[{"index":0,"ok":true,"public_state":"kind-0"},{"index":1,"ok":false,"error":`+unknown+`},
				{"index":2,"ok":false,"error":`+unknown+`}],"failed":2}`)(w, nil)
		}
		return n == 1
	}}
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 3)
	wait := g.together(t, client, contexts, all)
	close(g.release)
	for i, got := range wait() {
		if got.err != nil || got.Duplicate || got.PublicState != all[i].Kind {
			t.Errorf("submit %d was answered with %+v", i, got)
		}
	}
}

func TestU15_items_whose_outcome_stays_unknown_are_not_reported_as_failed(t *testing.T) {
	t.Parallel()
	o := office{hangsUp: true}
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 3)
	wait := g.together(t, client, contexts, all)
	close(g.release)
	for i, got := range wait() {
		if !errors.Is(got.err, flowfabric.ErrOutcomeUnknown) {
			t.Errorf("submit %d: %v, want an outcome that is unknown", i, got.err)
		}
	}
}

func TestU132_a_caller_who_gives_up_leaves_the_queue(t *testing.T) {
	t.Parallel()
	var o office
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 10)
	var cancel context.CancelFunc
	contexts[4], cancel = context.WithCancel(inTime(t))
	wait := g.together(t, client, contexts, all)
	cancel()
	queued := flowfabric.QueuedSubmits(client)
	for queued() == len(all) {
		runtime.Gosched()
	}
	close(g.release)
	for i, got := range wait() {
		switch {
		case i != 4:
			if got.err != nil || got.PublicState != all[i].Kind {
				t.Errorf("submit %d was answered with %+v", i, got)
			}
		case !errors.Is(got.err, context.Canceled) || errors.Is(got.err, flowfabric.ErrOutcomeUnknown):
			t.Errorf("%v, want that the caller left before anything was sent", got.err)
		}
	}
}

func TestU132_closing_lets_submits_end_that_have_queued(t *testing.T) {
	t.Parallel()
	var o office
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 10)
	wait := g.together(t, client, contexts, all)
	closed := make(chan error, 1)
	go func() { closed <- client.Close(inTime(t)) }()
	for flowfabric.CodeOf(client.Nudge(inTime(t))) != "shutting_down" {
		runtime.Gosched()
	}
	close(g.release)
	for i, got := range wait() {
		if got.err != nil || got.PublicState != all[i].Kind {
			t.Errorf("submit %d was answered with %+v", i, got)
		}
	}
	if err := receive(t, closed); err != nil {
		t.Error(err)
	}
}

func TestU215_only_submits_of_one_trace_share_a_request(t *testing.T) {
	t.Parallel()
	var o office
	g, client := gated(t, o.open(t))
	contexts, all := many(t, 12)
	parents := []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01", ""}
	for i := range contexts {
		if parent := parents[i%len(parents)]; parent != "" {
			contexts[i] = transport.WithTrace(contexts[i], flowfabric.TraceContext{Traceparent: parent})
		}
	}
	wait := g.together(t, client, contexts, all)
	close(g.release)
	for i, got := range wait() {
		if got.err != nil || got.PublicState != all[i].Kind {
			t.Errorf("submit %d was answered with %+v", i, got)
		}
	}
	named := map[string]int{}
	for _, l := range o.bulks {
		named[l.Header.Get("Traceparent")]++
	}
	if want := map[string]int{parents[0]: 1, parents[1]: 1, parents[2]: 1}; !reflect.DeepEqual(named, want) {
		t.Errorf("the requests name %v, want each trace once", named)
	}
}

func TestU22_an_item_that_is_refused_in_a_batch_is_refused_as_it_were_alone(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t, address(t), engine.Hooks{})
			s := must[*server.Server](t)(server.New(backend(w.Client), server.Config{Open: true, Logger: silent()}))
			listener := httptest.NewServer(s.Handler())
			t.Cleanup(listener.Close)
			contexts, all := many(t, 40)
			bad := map[int]flowfabric.SubmitOptions{
				3: {Policy: &flowfabric.Policy{MaxReplays: 1 << 30}}, 9: {Tags: map[string]string{"": "x"}}, 17: {ID: "missing"}, 29: {Lane: strings.Repeat("l", 1000)},
			}
			for i, options := range bad {
				all[i].SubmitOptions = options
			}
			for _, i := range []int{5, 6} {
				all[i].Kind, all[i].IdempotencyKey = "same", "key"
			}
			alone := connect(t, listener.URL, flowfabric.ConnectConfig{})
			g, client := gated(t, listener.URL)
			wait := g.together(t, client, contexts, all)
			close(g.release)
			results := wait()
			for i, got := range results {
				if _, refused := bad[i]; !refused {
					if x, err := w.Get(inTime(t), got.ID); got.err != nil || err != nil || x.Kind != all[i].Kind {
						t.Errorf("submit %d was answered with %+v, and is %+v, %v", i, got, x, err)
					}
					continue
				}
				_, err := alone.Submit(inTime(t), all[i])
				if want, had := refusalOf(t, err), refusalOf(t, got.err); !reflect.DeepEqual(had, want) {
					t.Errorf("submit %d was refused with %+v, alone with %+v", i, had, want)
				}
			}
			if results[5].ID != results[6].ID || results[5].Duplicate == results[6].Duplicate {
				t.Errorf("two submits with one key: %+v and %+v", results[5], results[6])
			}
		})
	}
}

// refusalOf is an error without what no two requests share.
func refusalOf(t *testing.T, err error) flowfabric.Error {
	t.Helper()
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is no refusal", err)
	}
	plain := *refusal
	plain.RequestID = ""
	return plain
}
