package flowfabric_test

import (
	"net/http/httptest"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
)

func TestU137_a_transactional_submit_is_judged_as_any_other(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		must[*api.Lane](t)(w.Lanes().Put(ctx, "shut", api.LaneSettings{State: api.LaneDisabled}))
		known := must[flowfabric.SubmitResult](t)(w.Submit(ctx, double.Submission(1, flowfabric.SubmitOptions{
			IdempotencyKey: "used", Policy: &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2}},
		})))
		policy := &flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 2}}

		submit, commit, _ := ownTx(t, w)
		refuses := func(what, code string, s flowfabric.Submission) {
			t.Helper()
			if _, err := submit(s); flowfabric.CodeOf(err) != code {
				t.Errorf("%s = %v, want %s", what, err, code)
			}
		}
		refuses("a lane that takes nothing", "lane_not_accepting", double.Submission(1, flowfabric.SubmitOptions{Lane: "shut"}))
		refuses("a key that was used for something else", "idempotency_conflict", double.Submission(2, flowfabric.SubmitOptions{IdempotencyKey: "used"}))
		refuses("an id that was used for something else", "id_conflict", double.Submission(2, flowfabric.SubmitOptions{ID: known.ID, Policy: policy}))
		refuses("too much input", "payload_too_large", echo.Submission(flowfabric.Bytes(make([]byte, 65<<20), "x/y")))
		same := must[*flowfabric.Execution](t)(submit(double.Submission(1, flowfabric.SubmitOptions{ID: known.ID, Policy: policy})))
		if same.ID != known.ID || same.Creator != w.who {
			t.Errorf("the same work again is %+v", same)
		}

		made := must[*flowfabric.Execution](t)(submit(double.Submission(5, flowfabric.SubmitOptions{IdempotencyKey: "new"})))
		if made.Creator != w.who || made.Namespace != "default" || made.Lane != "default" || made.Status != flowfabric.StatusReady {
			t.Errorf("made: %+v", made)
		}
		again := must[*flowfabric.Execution](t)(submit(double.Submission(5, flowfabric.SubmitOptions{IdempotencyKey: "new"})))
		if again.ID != made.ID {
			t.Errorf("the same key in the same transaction made %s and %s", made.ID, again.ID)
		}
		refuses("its key for something else", "idempotency_conflict", double.Submission(6, flowfabric.SubmitOptions{IdempotencyKey: "new"}))
		if err := commit(); err != nil { // the refusals left the transaction usable
			t.Fatal(err)
		}
		if x := must[*flowfabric.Execution](t)(w.Get(ctx, made.ID)); x.Creator != w.who || x.IdempotencyKey != "new" {
			t.Errorf("adopted: %+v", x)
		}
	})
}

func TestU137_a_transaction_on_another_database_is_refused(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, elsewhere := openWorld(t, address(t), engine.Hooks{}), openWorld(t, address(t), engine.Hooks{})
			for _, w := range []*world{here, here.overHTTP(t)} {
				submit, _, rollback := ownTx(t, &world{Client: w.Client, url: elsewhere.url})
				if _, err := submit(double.Submission(1)); flowfabric.CodeOf(err) != "wrong_database" {
					t.Errorf("SubmitTx on another database = %v, want wrong_database", err)
				}
				if err := rollback(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestU137_a_client_of_a_server_submits_for_its_key(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	w := openWorld(t, stores["postgres"](t), engine.Hooks{})
	s := must[*server.Server](t)(server.New(backend(w.Client), server.Config{Logger: silent()}))
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(listener.Close)
	created := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "shop", Roles: []string{"submit"}, Namespaces: []string{"acme"},
	}))
	reader := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "reader", Roles: []string{"read"}, Namespaces: []string{"acme"},
	}))
	if _, err := w.Admin().Namespaces().Put(ctx, "acme", api.NamespaceSettings{MaxPayloadBytes: 4}); err != nil {
		t.Fatal(err)
	}
	in := func(key string) *world {
		return &world{Client: connect(t, listener.URL, flowfabric.ConnectConfig{APIKey: key}), url: w.url}
	}
	submit, commit, _ := ownTx(t, in(created.Secret))
	if _, err := submit(echo.Submission(flowfabric.Text("too large"))); flowfabric.CodeOf(err) != "payload_too_large" {
		t.Errorf("more than the namespace allows = %v", err)
	}
	made := must[*flowfabric.Execution](t)(submit(echo.Submission(flowfabric.Text("x"))))
	if made.Namespace != "acme" || made.Creator != "shop" {
		t.Errorf("made: %+v", made)
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	submit, _, rollback := ownTx(t, in(reader.Secret))
	if _, err := submit(echo.Submission(flowfabric.Text("x"))); flowfabric.CodeOf(err) != "role_required" {
		t.Errorf("a key that may not submit = %v", err)
	}
	if err := rollback(); err != nil {
		t.Fatal(err)
	}
}

// The bound of the namespace may be lower than it was at the first try: a repeat is answered as such (L82, L117).
func TestU137_L117_a_repeat_in_a_transaction_is_one_though_the_namespace_takes_no_such_input_now(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	w := openWorld(t, stores["postgres"](t), engine.Hooks{})
	s := must[*server.Server](t)(server.New(backend(w.Client), server.Config{Logger: silent()}))
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(listener.Close)
	key := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "shop", Roles: []string{"submit"}, Namespaces: []string{"default"},
	}))
	external := &world{Client: connect(t, listener.URL, flowfabric.ConnectConfig{APIKey: key.Secret}), url: w.url}
	asked := echo.Submission(flowfabric.Text("large"))
	asked.IdempotencyKey = "once"
	var first flowfabric.ID
	for _, most := range []int{0, 4} {
		must[*api.Namespace](t)(w.Admin().Namespaces().Put(ctx, "default", api.NamespaceSettings{MaxPayloadBytes: most}))
		for _, from := range []*world{external, w} {
			submit, commit, _ := ownTx(t, from)
			made, err := submit(asked)
			if err != nil {
				t.Fatalf("with a bound of %d: %v", most, err)
			}
			if first == "" {
				first = made.ID
			}
			if made.ID != first {
				t.Errorf("with a bound of %d it is %s, before %s", most, made.ID, first)
			}
			if err := commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
