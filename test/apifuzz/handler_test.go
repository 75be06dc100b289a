package apifuzz

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// FuzzHandler gives the handler whatever may come out of net/http.
func FuzzHandler(f *testing.F) {
	w := newWorld(f, onSQLite(f), true)
	for _, o := range wire.Operations() {
		f.Add(o.Method, strings.NewReplacer("{", "", "}", "").Replace(o.Path), "Content-Type: application/json", []byte(`{}`))
	}
	for _, sent := range [][4]string{
		{"POST", "/v1/executions?wait_ms=1&tag.a=b", "Content-Type: application/json\nIdempotency-Key: k\nPrefer: wait=0", `{"kind":"k","input":[1e400],"tags":{"a":"b"}}`},
		{"POST", "/v1/executions?kind=k", "Content-Type: text/plain\nTraceparent: 00-1-1-1", "\xff\x00"},
		{"POST", "/v1/executions/bulk", "Content-Type: application/x-ndjson", "{\"kind\":\"k\"}\n{\n"},
		{"POST", "/v1/work/claim", "Content-Type: application/json", `{"worker_id":"w","worker_instance_id":"w-1","lanes":["default"],"max":1000}`},
		{"POST", "/v1/work/batch", "Content-Type: application/json", `{"items":[{"op":"step","execution_id":"x","lease":"a.1.b","name":"n","result":null}]}`},
		{"PUT", "/v1/lanes/%00%2f..", "If-Match: \"1\"\nContent-Type: application/json", `{"fairness_weights":{"a":-1},"state":"active","state":"paused"}`},
		{"GET", "/v1/events?after=start&limit=3", "Accept: text/event-stream\nLast-Event-ID: 9", ""},
		{"GET", "/v1/executions?cursor=AAAA&status=ready,,&q=%25", "Accept-Encoding: gzip\nIf-None-Match: *", ""},
		{"POST", "/v1/bulk", "Content-Type: application/json", `{"action":"tag","all":true,"args":{"tags":{"a":null}},"dry_run":true}`},
		{"OPTIONS", "/v1/lanes", "Origin: null\nAccess-Control-Request-Method: PUT", ""},
	} {
		f.Add(sent[0], sent[1], sent[2], []byte(sent[3]))
	}
	f.Fuzz(func(t *testing.T, method, target, head string, body []byte) {
		r, ok := arriving(method, target, head, body)
		if !ok {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		defer time.AfterFunc(givesUp, cancel).Stop()
		defer func() { // a client that has given up gets no answer, which net/http does by cutting its connection
			if cut := recover(); cut != nil && (cut != http.ErrAbortHandler || ctx.Err() == nil) { //nolint:errorlint // as net/http compares it
				panic(cut)
			}
		}()
		answer := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(answer, r.WithContext(ctx))
		unready := answer.Code == http.StatusServiceUnavailable && strings.HasPrefix(r.URL.Path, wire.GetReadiness.Path) // after a drain
		if answer.Code >= 500 && answer.Code != http.StatusNotImplemented && !unready {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		if text := w.log.String(); text != "" {
			t.Fatal(text)
		}
	})
}

// arriving is a request as net/http hands it to a handler; false for what it would not.
func arriving(method, target, head string, body []byte) (*http.Request, bool) {
	at, err := url.ParseRequestURI(target)
	if err != nil || method == "" || method == http.MethodConnect {
		return nil, false
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Method, r.URL, r.RequestURI, r.Host = method, at, target, "127.0.0.1"
	for line := range strings.SplitSeq(head, "\n") {
		if name, v, ok := strings.Cut(line, ":"); ok && name != "" {
			r.Header.Add(name, strings.TrimSpace(v))
		}
	}
	return r, true
}
