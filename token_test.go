package flowfabric_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// everyForm is everything that is printed, encoded or logged of a value.
func everyForm(t *testing.T, value any) map[string]string {
	t.Helper()
	forms := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10v"} {
		forms[verb] = fmt.Sprintf(verb, value)
	}
	forms["JSON"] = string(must[[]byte](t)(json.Marshal(value)))
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"slog JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var lines bytes.Buffer
		slog.New(handler(&lines)).Info("it is so", "value", value, slog.Group("group", "value", value))
		forms[name] = lines.String()
	}
	return forms
}

func TestW29_tokens_and_addresses_are_never_printed_encoded_or_logged(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("c0ffee42", 8)
	token := flowfabric.TokenOf("k1:" + digest)
	if token.Reveal() != "k1:"+digest || token.IsZero() || !flowfabric.TokenOf("").IsZero() {
		t.Fatal("a token does not hold its text")
	}
	w := flowfabric.Waitpoint{ID: "0198f0a0-0000-7000-8000-00000000000a", Key: "at-the-gate", Token: token, CallbackURL: "https://x.example/v1/callbacks/w/k1:" + digest}
	l := flowfabric.ApprovalLink{ID: "0198f0a0-0000-7000-8000-00000000000b", Approver: "at-the-gate", URL: "https://x.example/approve/l/k1:" + digest}
	for name, value := range map[string]any{
		"a token": token, "a pointer to one": &token, "tokens": []flowfabric.Token{token},
		"a waitpoint": w, "a pointer to a waitpoint": &w, "waitpoints": []flowfabric.Waitpoint{w}, "what is suspended": api.Suspended{Waitpoints: []flowfabric.Waitpoint{w}, Links: []flowfabric.ApprovalLink{l}},
		"a link": l, "a pointer to a link": &l, "links": map[string]flowfabric.ApprovalLink{"l": l}, "a page": api.LinkPage{ApprovalLink: l},
		"a signal": flowfabric.Signal{Token: token}, "an answer": api.WorkAnswer{Waitpoints: []flowfabric.Waitpoint{w}},
	} {
		for form, text := range everyForm(t, value) {
			for _, piece := range []string{digest[:8], fmt.Sprintf("%x", digest[:4]), fmt.Sprintf("%X", digest[:4]), strings.Trim(fmt.Sprint([]byte(digest[:3])), "[]")} {
				if strings.Contains(text, piece) {
					t.Errorf("%s as %s shows %q: %s", name, form, piece, text)
				}
			}
		}
	}
	if text := fmt.Sprintf("%v %+v", token, w); !strings.Contains(text, "k1:<redacted>") || !strings.Contains(text, "at-the-gate") {
		t.Errorf("too little is shown: %s", text)
	}
	for _, value := range []any{w, l} {
		if text := fmt.Sprintf("%+v", value); !strings.Contains(text, "Key:at-the-gate") && !strings.Contains(text, "Approver:at-the-gate") {
			t.Errorf("what may be shown is not: %s", text)
		}
	}
}

func TestU185_the_public_url_stands_before_addresses_and_must_be_absolute(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, base string) (*flowfabric.Client, error) {
		t.Helper()
		client, err := embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), stores["sqlite"](t),
			embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: silent(), PublicURL: base}})
		if err == nil {
			t.Cleanup(func() { _ = client.Close(t.Context()) })
		}
		return client, err
	}
	for _, wrong := range []string{"flow.example.com", "/flow", "ftp://flow.example.com", "https://", "https://flow.example.com/?a=b", "https://flow.example.com?", "https://flow.example.com/#a", "https://me@flow.example.com", "https://%"} {
		if _, err := open(t, wrong); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for base, want := range map[string]string{"": "/v1/callbacks/", "https://flow.example.com": "https://flow.example.com/v1/callbacks/", "http://x:8080/flow/": "http://x:8080/flow/v1/callbacks/"} {
		client := must[*flowfabric.Client](t)(open(t, base))
		h := hand{&world{Client: client}, t}
		id := h.submits()
		at := h.suspends(h.claims(patience), "k", "at").Waitpoints[0]
		if at.CallbackURL != want+at.ID+"/"+at.Token.Reveal() {
			t.Errorf("the address is at %s, want %s", strings.TrimSuffix(at.CallbackURL, at.Token.Reveal()), want)
		}
		link := must[flowfabric.ApprovalLink](t)(client.Waitpoints().NewLink(t.Context(), at.ID, ops.LinkOptions{Approver: "ann"}))
		if prefix := strings.TrimSuffix(want, "/v1/callbacks/") + "/approve/" + link.ID + "/"; !strings.HasPrefix(link.URL, prefix) {
			t.Errorf("the link is not at %s", prefix)
		}
		must[*flowfabric.Execution](t)(client.Cancel(t.Context(), id, ""))
	}
}
