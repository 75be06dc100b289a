package flowfabric_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// inbox is a server that a test answers for by hand. It remembers what came.
type inbox struct {
	mu   sync.Mutex
	came []letter
}

// letter is a request as it came.
type letter struct {
	*http.Request
	body []byte
}

func (i *inbox) all() []letter {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.came
}

// serve answers requests one by one, the n-th with the n-th answer and all later ones with the last.
func serve(t *testing.T, answers ...http.HandlerFunc) (*inbox, *flowfabric.Client) {
	t.Helper()
	in := &inbox{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		n := len(in.came)
		in.came = append(in.came, letter{r, body})
		in.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answers[min(n, len(answers)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	return in, connect(t, server.URL, flowfabric.ConnectConfig{APIKey: "ff_secret", Namespace: "red"})
}

// connect connects a client that repeats in a hurry.
func connect(t testing.TB, address string, cfg flowfabric.ConnectConfig) *flowfabric.Client {
	t.Helper()
	cfg.Retry.Backoff = flowfabric.Backoff{Initial: time.Millisecond, Max: time.Millisecond}
	client, err := flowfabric.Connect(address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return client
}

// says answers with a status and a JSON text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// problem answers with a problem of a code.
func problem(status int, e *flowfabric.Error) http.HandlerFunc {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return says(status, string(text))
}

// hangUp takes the request and closes the connection.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// created answers a submit as if it had made the execution that it names.
func created(outcome string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		says(http.StatusCreated, `{"outcome":"`+outcome+`","execution_id":"{fp:1}:018f4e5e-0000-7000-8000-000000000001","public_state":"waiting"}`)(w, r)
	}
}

var busy = &flowfabric.Error{Code: "overloaded", Class: "unavailable", Message: "the queue is full", Retryable: true, RetryAfter: time.Millisecond}

func TestL86_U13_a_repeat_carries_the_same_key_and_the_same_id(t *testing.T) {
	t.Parallel()
	in, client := serve(t, problem(503, busy), hangUp, created("created"))
	if _, err := client.Submit(inTime(t), flowfabric.Submission{Kind: "k"}); err != nil {
		t.Fatal(err)
	}
	keys, bodies := map[string]bool{}, map[string]bool{}
	for _, l := range in.all() {
		keys[l.Header.Get("Idempotency-Key")], bodies[string(l.body)] = true, true
	}
	if len(in.all()) != 3 || len(keys) != 1 || keys[""] || len(bodies) != 1 {
		t.Errorf("%d requests with keys %v and bodies %v, want 3 that are the same", len(in.all()), keys, bodies)
	}
	if _, err := client.Submit(inTime(t), flowfabric.Submission{Kind: "k"}); err != nil {
		t.Fatal(err)
	}
	if again := in.all()[3]; keys[again.Header.Get("Idempotency-Key")] || bodies[string(again.body)] {
		t.Error("another submit has the key, or the id, of the first")
	}
}

func TestU132_a_request_says_who_asks_and_for_what(t *testing.T) {
	t.Parallel()
	in, client := serve(t, says(200, `{"total":7}`), says(204, ""))
	count := must[api.Count](t)(client.Executions().Count(inTime(t), ops.Filter{
		Status: []flowfabric.Status{"ready", "running"}, Tags: map[string]string{"team": "a,b"}, HasTags: []string{"urgent"},
	}))
	if count.Total != 7 {
		t.Errorf("counted %+v", count)
	}
	if err := client.Nudge(inTime(t), "mail"); err != nil {
		t.Fatal(err)
	}
	read, write := in.all()[0], in.all()[1]
	for _, want := range []struct{ got, want string }{
		{read.Method + " " + read.URL.String(), "GET /v1/executions/count?status=ready%2Crunning&tag.team=a%2Cb&tag.urgent"},
		{read.Header.Get("Authorization"), "Bearer ff_secret"},
		{read.Header.Get("FlowFabric-Namespace"), "red"},
		{read.Header.Get("Accept-Encoding"), "identity"},
		{read.Header.Get("Idempotency-Key"), ""},
		{write.Method + " " + write.URL.String(), "POST /v1/nudge"},
		{write.Header.Get("Content-Type"), "application/json"},
		{string(write.body), `{"lanes":["mail"]}`},
	} {
		if want.got != want.want {
			t.Errorf("sent %q, want %q", want.got, want.want)
		}
	}
	if id := read.Header.Get("X-Request-Id"); id == "" || id == write.Header.Get("X-Request-Id") {
		t.Errorf("the request id %q is not its own", id)
	}
}

func TestU15_a_submit_that_made_it_and_lost_the_answer_is_no_duplicate(t *testing.T) {
	t.Parallel()
	in, client := serve(t, hangUp, echoID("duplicate"))
	result := must[flowfabric.SubmitResult](t)(client.Submit(inTime(t), flowfabric.Submission{Kind: "k"}))
	if result.Duplicate || len(in.all()) != 2 {
		t.Errorf("%+v after %d tries: what a lost try had made is not a duplicate", result, len(in.all()))
	}
	_, client = serve(t, echoID("duplicate"))
	given := flowfabric.Submission{Kind: "k", SubmitOptions: flowfabric.SubmitOptions{ID: "018f4e5e-0000-7000-8000-000000000002"}}
	if result := must[flowfabric.SubmitResult](t)(client.Submit(inTime(t), given)); !result.Duplicate {
		t.Errorf("%+v: an id of the caller's that was used before is a duplicate", result)
	}
}

// echoID answers a submit with the id that it brought.
func echoID(outcome string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var brought struct {
			ID string `json:"execution_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&brought); err != nil {
			panic(err)
		}
		says(200, `{"outcome":"`+outcome+`","execution_id":"`+brought.ID+`"}`)(w, r)
	}
}

func TestU15_an_outcome_that_stays_unknown_is_not_reported_as_failed(t *testing.T) {
	t.Parallel()
	unknown := &flowfabric.Error{Code: "timeout", Class: "unavailable", Message: "the outcome is not known", Retryable: true}
	for name, answers := range map[string][]http.HandlerFunc{
		"the connection is lost":     {hangUp},
		"the server does not know":   {problem(504, unknown)},
		"a gateway says so":          {says(502, "<html>bad gateway</html>")},
		"later tries do not get far": {hangUp, problem(503, busy)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, client := serve(t, answers...)
			_, err := client.Submit(inTime(t), flowfabric.Submission{Kind: "k"})
			if !errors.Is(err, flowfabric.ErrOutcomeUnknown) || !flowfabric.Retryable(err) {
				t.Errorf("%v, want an outcome that is unknown", err)
			}
			if len(in.all()) != 6 {
				t.Errorf("%d tries, want one and five repeats", len(in.all()))
			}
		})
	}
}

func TestU15_when_the_context_ends_first_the_outcome_is_unknown(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	_, client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-came
		cancel()
	}()
	_, err := client.Cancel(ctx, "018f4e5e-0000-7000-8000-000000000001", "")
	if !errors.Is(err, flowfabric.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want an outcome that is unknown because the context ended", err)
	}
}

func TestU15_what_never_reached_the_server_is_not_unknown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client := connect(t, server.URL, flowfabric.ConnectConfig{})
	_, err := client.Submit(inTime(t), flowfabric.Submission{Kind: "k"})
	if !errors.Is(err, flowfabric.ErrUnavailable) || errors.Is(err, flowfabric.ErrOutcomeUnknown) {
		t.Errorf("%v, want that no server can be reached", err)
	}
}

func TestU11_a_problem_becomes_the_error_that_it_was(t *testing.T) {
	t.Parallel()
	refusal := &flowfabric.Error{
		Code: "execution_not_active", Class: "state", Message: "it has ended", Field: "/lease", Hint: "claim again", RequestID: "r-1",
		RetryAfter: 2 * time.Second, Current: map[string]any{"status": "cancelled", "lease_epoch": int64(3)},
		Errors: []api.FieldError{{Field: "/lease", Code: "stale_lease", Message: "old", Hint: "new"}},
	}
	in, client := serve(t, problem(409, refusal))
	_, err := client.Get(inTime(t), "018f4e5e-0000-7000-8000-000000000001")
	var got *flowfabric.Error
	if !errors.As(err, &got) || !reflect.DeepEqual(got, refusal) {
		t.Errorf("got %+v, want %+v", got, refusal)
	}
	if !errors.Is(err, flowfabric.ErrState) || len(in.all()) != 1 {
		t.Errorf("%v after %d tries: a refusal is not repeated", err, len(in.all()))
	}
}

func TestU132_answers_of_others_are_told_from_the_servers(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{404: "route_not_found", 401: "invalid_credentials", 500: "internal", 302: "internal"} {
		_, client := serve(t, says(status, "<html>"))
		_, err := client.Get(inTime(t), "018f4e5e-0000-7000-8000-000000000001")
		if flowfabric.CodeOf(err) != code {
			t.Errorf("status %d is %v, want %s", status, err, code)
		}
	}
	_, client := serve(t, says(200, "<html>"))
	if _, err := client.Get(inTime(t), "018f4e5e-0000-7000-8000-000000000001"); !errors.Is(err, flowfabric.ErrInternal) {
		t.Errorf("%v, want an answer that cannot be read", err)
	}
}

func TestU132_addresses_and_keys_that_are_none_are_refused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost:8080", "ftp://host", "http://", "https://host?x=1", "http://user:word@host", "::"} {
		if _, err := flowfabric.Connect(address); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("%q: %v, want invalid_argument", address, err)
		}
	}
	for _, cfg := range []flowfabric.ConnectConfig{{APIKey: "a\nb"}, {Namespace: "ä"}} {
		if _, err := flowfabric.Connect("https://host", cfg); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("%+v: %v, want invalid_argument", cfg, err)
		}
	}
	if _, err := flowfabric.Connect("https://host", flowfabric.ConnectConfig{}, flowfabric.ConnectConfig{}); flowfabric.CodeOf(err) != "invalid_argument" {
		t.Errorf("two option structs: %v, want invalid_argument", err)
	}
	in, client := serve(t, says(200, "{}"))
	action := ops.Action{RequestKey: strings.Repeat("k", 129)}
	if _, err := client.Operate().Hold(inTime(t), "018f4e5e-0000-7000-8000-000000000001", action); flowfabric.CodeOf(err) != "invalid_argument" || len(in.all()) != 0 {
		t.Errorf("a key that no header carries: %v after %d requests", err, len(in.all()))
	}
}

func TestU132_a_private_authority_is_trusted_when_it_is_named(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"version":"v1.2.3"}`))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes that this test makes fail
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for _, cfg := range []flowfabric.ConnectConfig{{RootCAs: roots}, {}} {
		cfg.Retry.MaxRetries = -1
		client, err := flowfabric.Connect(server.URL, cfg)
		if err != nil {
			t.Fatal(err)
		}
		info, err := client.Admin().Info(t.Context())
		if trusted := err == nil && info.Version == "v1.2.3"; trusted != (cfg.RootCAs != nil) {
			t.Errorf("with authorities %v: %+v %v", cfg.RootCAs != nil, info, err)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := flowfabric.Connect(server.URL, flowfabric.ConnectConfig{RootCAs: roots, HTTP: server.Client()}); flowfabric.CodeOf(err) != "invalid_argument" {
		t.Errorf("two clients: %v", err)
	}
}

func TestU132_a_refused_address_is_not_shown_with_its_password(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://user:hush@host", "ftp://user:hush@host", "https://user:hush hush@host", "https://user:%hush@host"} {
		if _, err := flowfabric.Connect(address); flowfabric.CodeOf(err) != "invalid_argument" || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestU132_closing_ends_what_waits(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	_, client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
	})
	waited := make(chan error)
	go func() {
		_, err := client.Wait(context.WithoutCancel(t.Context()), "018f4e5e-0000-7000-8000-000000000001")
		waited <- err
	}()
	receive(t, came)
	if err := client.Close(inTime(t)); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, waited); flowfabric.CodeOf(err) != "shutting_down" {
		t.Errorf("what waited ended with %v, want shutting_down", err)
	}
	if _, err := client.Get(inTime(t), "018f4e5e-0000-7000-8000-000000000001"); flowfabric.CodeOf(err) != "shutting_down" {
		t.Errorf("a call after Close: %v, want shutting_down", err)
	}
}

func TestL117_a_claim_that_is_sent_again_says_so(t *testing.T) {
	t.Parallel()
	in, client := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, says(http.StatusOK, `{"tasks":[]}`))
	r := api.ClaimRequest{WorkerID: "w", InstanceID: "w1", Lanes: []string{"default"}, RequestKey: "r1"}
	for range 2 {
		if _, err := client.Work().Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r.Repeat = true
	}
	var said []string
	for _, letter := range in.all() {
		said = append(said, letter.Header.Get("Idempotency-Repeat"))
	}
	if want := []string{"", "true", "true"}; !slices.Equal(said, want) {
		t.Errorf("Idempotency-Repeat %q, want %q", said, want)
	}
}
