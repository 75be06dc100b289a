package examples

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	webhooks "github.com/flowfabric/flowfabric/examples/webhooks/story"
)

func TestE42_a_receiver_handles_each_event_once_though_it_is_sent_again(t *testing.T) {
	t.Parallel()
	everywhere(t, webhooks.Webhooks, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		for _, x := range executions(t, c, p.Name) {
			if x.Status != flowfabric.StatusSucceeded || x.TotalAttempts != 1 {
				t.Errorf("%+v", x)
			}
		}
		for w, err := range c.Admin().Webhooks().List(t.Context()) {
			t.Errorf("a webhook is left: %+v, %v", w, err)
		}
	})
}

// verified is one request that the independent implementation was asked about.
type verified struct {
	id   string
	errs []error // by secret
	body string
}

// independent is a receiver that verifies with the library of the Standard Webhooks project.
func independent(t *testing.T, got chan<- verified, secrets func() []string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v := verified{id: r.Header.Get("webhook-id"), body: string(body)}
		for _, secret := range secrets() {
			hook, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Error(err)
				continue
			}
			v.errs = append(v.errs, hook.Verify(body, r.Header))
		}
		got <- v
	}))
	t.Cleanup(server.Close)
	return server
}

func TestE40_an_independent_implementation_of_the_standard_verifies_what_is_sent(t *testing.T) {
	t.Parallel()
	ctx := careless(t.Context())
	c, err := embedded.Open(ctx, sqliteStore(t), embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: slog.New(slog.DiscardHandler), Webhooks: api.WebhookTargets{AllowLoopback: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
	const foreign = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	secrets := make(chan []string, 1)
	got := make(chan verified, 8)
	server := independent(t, got, func() []string {
		now := <-secrets
		secrets <- now
		return now
	})
	hooks := c.Admin().Webhooks()
	made, err := hooks.Create(t.Context(), api.NewWebhook{URL: server.URL, Filter: &api.WebhookFilter{Kinds: []string{"execution.submitted"}}})
	if err != nil {
		t.Fatal(err)
	}
	secrets <- []string{made.Secret, foreign}
	x, err := c.Submit(t.Context(), flowfabric.Submission{Kind: "charge"})
	if err != nil {
		t.Fatal(err)
	}
	first := <-got
	if first.errs[0] != nil || first.errs[1] == nil || !strings.Contains(first.body, string(x.ID)) {
		t.Errorf("with its secret and another one: %v, of %s", first.errs, first.body)
	}
	rotated, err := hooks.Rotate(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	<-secrets
	secrets <- []string{made.Secret, rotated.Secret, foreign}
	if _, err := hooks.Test(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	second := <-got
	if second.errs[0] != nil || second.errs[1] != nil || second.errs[2] == nil || second.id == first.id {
		t.Errorf("with the old, the new and another secret: %v", second.errs)
	}
	if strings.Contains(first.body+second.body, "whsec_") {
		t.Error("a secret is in a body")
	}
}
