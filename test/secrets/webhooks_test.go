package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// hookSecret is the secret of a webhook that an operator brings along.
const hookSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// receiver has every event of the namespace sent to it from now on, and writes down what it gets. It returns the webhook.
func (w *world) receiver() (webhook string) {
	w.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(&w.received, "%v %s\n", r.Header, body)
	}))
	w.t.Cleanup(server.Close)
	made := w.issue("POST", "/v1/webhooks", `{"url":"`+server.URL+`/a-path-of-a-webhook","secret":"`+hookSecret+`","max_in_flight":64}`)
	w.hooks = append(w.hooks, field(w.t, made, "secret"))
	return field(w.t, made, "endpoint_id")
}

// webhooksOverHTTP makes secrets by every route that does, uses them, and sends them to where they do not belong.
func (w *world) webhooksOverHTTP(webhook string) {
	w.t.Helper()
	path := "/v1/webhooks/" + webhook
	for range 2 {
		rotated := w.issue("POST", path+"/rotate", `{}`)
		w.hooks = append(w.hooks, field(w.t, rotated, "secret"))
	}
	secret := w.hooks[len(w.hooks)-1]
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/v1/webhooks", `{"url":"https://example.com/","secret":"` + secret + `x"}`},
		{"POST", "/v1/webhooks", `{"url":"https://example.com/","secert":"` + secret + `"}`},
		{"POST", "/v1/webhooks", `{"url":"http://example.com/","secret":"` + secret + `"}`},
		{"POST", "/v1/webhooks", `{"url":"https://example.com/","secret":"` + secret + `",`},
		{"POST", path + "/rotate", `{"secret":"` + strings.TrimPrefix(secret, "whsec_") + `"}`},
		{"POST", path + "/rotate", `{"secret":"` + secret + `","overlap_ms":-1}`},
	} {
		if status, text := w.ask(&w.said, r.method, r.path, r.body); status < 400 {
			w.t.Errorf("%s %s %s: %d %s", r.method, r.path, r.body, status, text)
		}
	}
	tested := field(w.t, w.said.ok(w, "POST", path+"/test", `{}`), "event_id")
	if err := w.await(func() bool { return strings.Contains(w.received.String(), tested) }); err != nil {
		w.t.Fatal("the test of the webhook does not arrive: ", err)
	}
	for _, path := range []string{"/v1/webhooks", path, path + "/deliveries?limit=1000"} {
		w.said.ok(w, "GET", path, "")
	}
}

// await waits until something holds.
func (w *world) await(holds func() bool) error {
	ctx := w.ctx()
	for !holds() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.said.ok(w, "GET", "/v1/webhooks", "") // takes a moment
	}
	return nil
}

// secretsOfWebhooks are the secrets in the forms in which they may be kept.
func (w *world) secretsOfWebhooks() (all []string) {
	w.t.Helper()
	for _, text := range w.hooks {
		bare := strings.TrimPrefix(text, "whsec_")
		raw, err := base64.StdEncoding.DecodeString(bare)
		if err != nil || len(raw) != 32 {
			w.t.Fatalf("a secret of %d bytes: %v", len(raw), err)
		}
		all = append(all, strings.TrimRight(bare, "="), strings.TrimRight(base64.URLEncoding.EncodeToString(raw), "="))
		all = append(all, forms(hex.EncodeToString(raw))...)
	}
	return all
}
