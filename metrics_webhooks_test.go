package flowfabric_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

// webhookCauses are those of U210.
var webhookCauses = []cause{
	{
		name: "a webhook whose receiver takes an event",
		do: func(t *testing.T, w *metered) {
			w.webhook(t, func(http.ResponseWriter, *http.Request) {})
		},
		moves: map[string]float64{`ff_webhook_deliveries_total{outcome="delivered"}`: 1},
	},
	{
		name: "a webhook whose receiver does not answer",
		do: func(t *testing.T, w *metered) {
			w.webhook(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		},
		moves: map[string]float64{`ff_webhooks_pending`: 1},
	},
}

// webhook sends an event to a receiver.
func (w *metered) webhook(t *testing.T, receive http.HandlerFunc) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		receive(a, r)
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(receiver.CloseClientConnections) // before Close, which waits for requests
	webhooks := w.Admin().Webhooks()
	endpoint := must[*api.SecretWebhook](t)(webhooks.Create(inTime(t), api.NewWebhook{URL: receiver.URL, Filter: &api.WebhookFilter{Kinds: []string{"bulk."}}}))
	must[*api.Delivery](t)(webhooks.Test(inTime(t), endpoint.ID))
}
