package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// streamed serves a world again over HTTP/2.
func (w *world) streamed(t *testing.T, change func(*http.Server)) *httptest.Server {
	t.Helper()
	listener := httptest.NewUnstartedServer(nil)
	listener.Config, listener.Listener = w.server.HTTPServer(), w.server.Listener(listener.Listener)
	listener.EnableHTTP2 = true
	change(listener.Config)
	listener.StartTLS()
	t.Cleanup(listener.Close)
	t.Cleanup(listener.Client().CloseIdleConnections)
	return listener
}

// streams are clients that misbehave over HTTP/2: all share a connection, and end their streams by RST_STREAM.
func streams(t *testing.T, w *world) misbehaving {
	t.Helper()
	patient, impatient := w.streamed(t, func(*http.Server) {}), w.streamed(t, soon)
	// Open mode answers to names of this machine: its address is one.
	return func(t *testing.T, o *wire.Operation, r repeatable, sent, end int) *reply {
		t.Helper()
		listener := patient
		if end == stalled {
			listener = impatient
		}
		ctx, reset := context.WithTimeout(t.Context(), patience)
		defer reset()
		whole := sent == len(r.body)
		if whole && end == vanished { // as soon as all of it is on its way
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { reset() }})
		}
		var body io.Reader
		switch {
		case r.body != "" && whole:
			body = strings.NewReader(r.body)
		case end == stalled:
			rest, never := io.Pipe()
			defer never.Close()
			body = struct {
				io.Reader
				io.Closer // of a body that no reader waits for
			}{io.MultiReader(strings.NewReader(r.body[:sent]), rest), rest}
		case r.body != "":
			body = &cut{text: strings.NewReader(r.body[:sent]), reset: reset, reached: ctx.Done()}
		}
		request, err := http.NewRequestWithContext(ctx, o.Method, listener.URL+r.path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = int64(len(r.body))
		request.Header.Set("Idempotency-Key", "once")
		if r.body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		response, err := listener.Client().Do(request)
		if err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Fatal("the server keeps the stream")
			}
			return nil // the stream was reset before there was an answer
		}
		defer response.Body.Close()
		if response.ProtoMajor != 2 {
			t.Fatalf("it was answered by %s", response.Proto)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return nil // half an answer tells of nothing
		}
		return &reply{response.StatusCode, response.Header, text}
	}
}

// cut is the first part of a body, behind which its stream is reset.
type cut struct {
	text    io.Reader
	reset   func()
	reached <-chan struct{}
	once    sync.Once
}

func (c *cut) Read(into []byte) (int, error) {
	n, err := c.text.Read(into)
	if err == nil {
		return n, nil
	}
	c.once.Do(c.reset) // what came before is sent: each part is, before the next is asked for
	<-c.reached
	return 0, context.Canceled
}
